"""The literature behind measures and methods, by the keys that docstrings use."""

from __future__ import annotations

from typing import NamedTuple


class Citation(NamedTuple):
    """A publication: ``text`` is authors, title, venue and year, without a final period."""

    text: str
    url: str


CITATIONS = {
    "RS20": Citation(
        "Rekabsaz and Schedl: Do neural ranking models intensify gender bias? SIGIR 2020",
        "https://doi.org/10.1145/3397271.3401280",
    ),
    "RKS21": Citation(
        "Rekabsaz, Kopeinik and Schedl: Societal biases in retrieved contents: measurement framework and "
        "adversarial mitigation of BERT rankers. SIGIR 2021",
        "https://doi.org/10.1145/3404835.3462949",
    ),
    "BEU19": Citation(
        "Beutel et al.: Fairness in recommendation ranking through pairwise comparisons. KDD 2019",
        "https://doi.org/10.1145/3292500.3330745",
    ),
    "IBBR": Citation(
        "Li et al.: Debiasing neural retrieval via in-batch balancing regularization. GeBNLP 2022",
        "https://aclanthology.org/2022.gebnlp-1.5",
    ),
    "BAS": Citation(
        "Bigdeli et al.: A light-weight strategy for restraining gender biases in neural rankers. ECIR 2022",
        "https://doi.org/10.1007/978-3-030-99739-7_6",
    ),
    "POS": Citation(
        "Hofstätter et al.: Mitigating the position bias of transformer models in passage re-ranking. ECIR 2021",
        "https://doi.org/10.1007/978-3-030-72113-8_16",
    ),
    "PSI": Citation(
        "Zeng et al.: An empirical study of position bias in modern information retrieval. Findings of EMNLP 2025",
        "https://arxiv.org/abs/2505.13950",
    ),
    "SJ18": Citation(
        "Singh and Joachims: Fairness of exposure in rankings. KDD 2018",
        "https://doi.org/10.1145/3219819.3220088",
    ),
    "SAP19": Citation(
        "Sapiezynski et al.: Quantifying the impact of user attention on fair group representation in ranked lists. "
        "WWW companion 2019",
        "https://arxiv.org/abs/1901.10437",
    ),
    "GEY19": Citation(
        "Geyik, Ambler and Kenthapadi: Fairness-aware ranking in search & recommendation systems with application to "
        "LinkedIn talent search. KDD 2019",
        "https://arxiv.org/abs/1905.01989",
    ),
    "Zehlike et al. 2017": Citation(
        "Zehlike et al.: FA*IR: a fair top-k ranking algorithm. CIKM 2017",
        "https://arxiv.org/abs/1706.06368",
    ),
    "DIA20": Citation(
        "Diaz et al.: Evaluating stochastic rankings with expected exposure. CIKM 2020",
        "https://doi.org/10.1145/3340531.3411962",
    ),
    "RE22": Citation(
        "Raj and Ekstrand: Measuring fairness in ranked results: an analytical and empirical comparison. SIGIR 2022",
        "https://doi.org/10.1145/3477495.3532018",
    ),
    "TREC22": Citation(
        "Ekstrand et al.: Overview of the TREC 2022 fair ranking track. TREC 2022",
        "https://arxiv.org/abs/2302.05558",
    ),
    "Bolukbasi et al. 2016": Citation(
        "Bolukbasi et al.: Man is to computer programmer as woman is to homemaker? Debiasing word embeddings. "
        "NeurIPS 2016",
        "https://arxiv.org/abs/1607.06520",
    ),
    "Gonen & Goldberg 2019": Citation(
        "Gonen and Goldberg: Lipstick on a pig: debiasing methods cover up systematic gender biases in word "
        "embeddings but do not remove them. NAACL 2019",
        "https://aclanthology.org/N19-1061",
    ),
    "Belrose et al. 2023": Citation(
        "Belrose et al.: LEACE: perfect linear concept erasure in closed form. NeurIPS 2023",
        "https://arxiv.org/abs/2306.03819",
    ),
    "Ganin & Lempitsky 2015": Citation(
        "Ganin and Lempitsky: Unsupervised domain adaptation by backpropagation. ICML 2015",
        "https://arxiv.org/abs/1409.7495",
    ),
    "Cameron, Gelbach & Miller": Citation(
        "Cameron, Gelbach and Miller: Robust inference with multiway clustering. Journal of Business & Economic "
        "Statistics 29(2), 2011",
        "https://doi.org/10.1198/jbes.2010.07136",
    ),
}
CITATIONS["Hofstätter et al., ECIR 2021"] = CITATIONS["POS"]
