"""What a reader of the IBBR experiment's page has to know beside the tables."""

from __future__ import annotations

from collections.abc import Mapping

from evenrank.groups import Scoring

from .ibbr_data import MSMARCO_BM25
from .ibbr_measured import Figures
from .ibbr_setup import Settings
from .ibbr_trainings import DEV

Chosen = Mapping[tuple[str, str], float]


def notes(settings: Settings, chosen: Chosen, figures: Mapping[str, Figures], scoring: Scoring) -> tuple[str, ...]:
    """The settings, what differs from the paper, and the frontier."""
    found = [
        _development(settings),
        f"Bias measures and the term: lexicon {scoring.lexicon.name}, {scoring.tokens} tokens.",
        "Our reading: the ranker is trained with nll on the DPR queries, and continues with the fairness queries; none"
        " and blind go on with them too, without the term, so that rows differ by the term alone. Every training on the"
        " fairness queries keeps its last checkpoint: MRR alone would choose one from before the term acted.",
        f"A query's list: its clicked passage and BM25's first {settings.listed - 1} others (of the first"
        f" {settings.depth}); a clicked passage that BM25 did not find comes last.",
        "λ best was chosen on the development queries of one seed and then used for all; nothing was chosen on"
        f" test queries. The trained λ has a learning rate of {settings.auto_rate:g} of its own (the paper does not"
        " give one).",
        *_of_lines(settings),
        "shift, blind, random and neutral-first are controls; random is the expectation over random orders.",
        *_of_scale(settings),
        *([_SHARED] if any(own.same_queries for own in figures.values()) else []),
        *_shift_notes(figures),
    ]
    for (encoder, term), weight in chosen.items():
        if not weight:
            found.append(f"{encoder} {term}: no weight of the grid kept 0.95 of the MRR; its best row is that of none.")
    return tuple(found)


def _of_lines(settings: Settings) -> list[str]:
    """Where the weight of evenrank's own lines comes from."""
    if settings.dev_weight is None:
        return ["evenrank's own lines (removed, kept) rest on the row of TS with λ best."]
    return [
        f"TS dev: λ {settings.dev_weight:g}, between two weights that on the data of the development seeds removed more"
        " than three quarters of |ΔA-PRF| and kept more than 97% of MRR. evenrank's own lines (removed, kept) rest on"
        " it; the paper's claims rest on λ best, whose rule allows a loss of 5% of MRR."
    ]


def _development(settings: Settings) -> str:
    reported = ", ".join(map(str, settings.seeds))
    if settings.development:
        chosen = ", ".join(map(str, settings.development))
        return f"Settings were chosen on the development seeds {chosen}; reported are the seeds {reported}."
    if settings.options is not None:
        return (
            "Nothing was developed on these data: sizes and rates were set from estimates of the time. Reported are the"
            f" seeds {reported}."
        )
    return f"The settings are the paper's, or stand below; reported are the seeds {reported}."


_SHARED = (
    "Seeds share test queries, which are no new evidence. So the variance over seeds and that over queries add:"
    " Recall, MRR and nDCG by a mixed view of queries crossed with seeds; ΔA-PRF and RaB by bootstrap draws of the"
    " queries, the same for all seeds (an error too large rather than too small). n is of seeds or queries, whichever"
    " the error mostly comes from. Intervals of qRaB, of ΔA-PRF on clicks and of random and neutral-first are over"
    " seeds alone."
)


def _of_scale(settings: Settings) -> list[str]:
    planted = settings.planted
    if planted is not None:
        return [
            f"Scale tiny: the built-in collection ({planted.passages:,} passages, generated for each seed). In training"
            f" {planted.click_share('train'):.0%} of the gendered clicks are male, in development and test"
            f" {planted.click_share('test'):.0%}; development and test queries, about other entities, are judged by"
            f" planted relevance. Group words decide {planted.group_query_rate:.0%} of the queries, half for each"
            " group: the paper's fairness queries are all neutral; without these, masking would cost nothing.",
            f"The encoder has {settings.small_bert.layers} transformer layers (word vectors, layer norm and their mean)"
            f" and {settings.small_bert.hidden} dimensions in place of BERT-L2's two, and starts from random weights;"
            " no BERT-L4; kernel rankers with vectors made here. On the fairness queries only the projection after the"
            " encoder moves: the whole encoder learns those queries by heart, and |ΔA-PRF| falls on them alone.",
        ]
    if settings.options is not None:
        return [
            "Scale real: the first 2 and 4 layers of the encoder stand for BERT-L2 and BERT-L4, trained briefly on"
            " SQuAD's questions; the fairness set is Grep-BiasIR's queries, divided anew for each seed. In training"
            f" {settings.click_male_share:.0%} of the clicks are on the male wording of the relevant document, else on"
            " the female one; development and test count every wording of it. So few queries decide little: the"
            " claims say what n would.",
        ]
    return [
        "The paper does not say which 1,252 of the 1,765 neutral annotated queries it takes: a seeded draw of those"
        " that are judged. DPR queries: a seeded draw of all other judged queries of train and dev. Kernel rankers"
        " learn their word vectors from the collection unless `vectors` names a file (the papers: GloVe 42B).",
        "Learning rate and batch of DPR are chosen from the published grids by validation MRR on the first seed.",
        f"BM25 (also for RM3) has k1 {MSMARCO_BM25['k1']:g}, b {MSMARCO_BM25['b']:g}; the paper does not give them.",
        "The paper gives neither the length of a training nor when it stops. Here DPR trains for"
        f" {settings.base['epochs']:g} epochs, validated every {settings.base['evaluate_every']} steps, and stops after"
        f" {settings.base['patience']} validations without a better one; the trainings on the fairness queries take"
        f" {settings.going_on['epochs']:g} epochs. Nor does it give the kernel rankers' settings:"
        f" {_kernels(settings)}.",
        "blind masks the words of gender-en; all other rows use the published lexicon.",
    ]


def _kernels(settings: Settings) -> str:
    of = {
        f"batches of {one['training']['batch']}, {str(one['training'].get('optimizer', 'adamw')).capitalize()} at"
        f" {one['training'].get('learning_rate', 0.001):g}"
        for one in settings.baselines.values()
    }
    return "; ".join(sorted(of)) or "none are trained"


def _shift_notes(figures: Mapping[str, Figures]) -> list[str]:
    """By how much the ideal offset does better than TS, or worse."""
    found = []
    for encoder, own in figures.items():
        names = ("none", "TS best", *([DEV] if DEV in own.systems else []), "shift", "blind")
        rows = {name: own.row(name, ["mrr", "delta_aprf_abs"]) for name in names}
        if not all(len(row) == 2 for row in rows.values()):
            continue
        said = "; ".join(
            f"{name}: MRR {row['mrr'].mean:.4f}, |ΔA-PRF| {row['delta_aprf_abs'].mean:.4f}"
            for name, row in rows.items()
        )
        found.append(f"Frontier {encoder}: {said}.")
    return found
