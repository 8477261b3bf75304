"""The notes of the position experiment's page."""

from __future__ import annotations

from .position_setup import BIASED, OTHER, Settings


def notes(settings: Settings) -> tuple[str, ...]:
    """What a reader has to know, and everything that differs from the paper."""
    common = (
        "original, debiased: the collection as it is, and with every passage rotated by word, once. The first-stage"
        " lists are the same for both: BM25 does not see the order of words.",
        "Nothing was chosen on test queries: the checkpoint and the re-ranking depth by nDCG@10 on validation queries,"
        f" the settings {_chosen(settings)}.",
    )
    if settings.early is not None:
        return (*common, *_real(settings))
    claims = (
        "Claims: for one seed paired t over queries, for several the mixed view (queries nested in seeds);"
        " equivalence: two one-sided 5% tests, together with a floor: the ranker is above BM25.",
        "Loses at most 15%: this margin was set after looking at development data of tiny, where training on rotated"
        " passages, with earlier settings, cost BERT_DOT 9.6% and BERT_CAT 12.6% on the original test; the published"
        " losses are 3% to 4%.",
        "Controls: BM25, blind to order by design, and random. Masking words and neutral-first say nothing about"
        " position.",
        "MATS as printed, with 1/(Δmax − 1); its terms change with the distance, so it is also computed over the terms"
        " that occur at every distance.",
    )
    return (*common, *claims, *(_full() if settings.planted is None else _tiny(settings)))


def _chosen(settings: Settings) -> str:
    """Where the settings of a scale come from."""
    if settings.early is not None:
        return "on the training articles, divided once more, or as those of tiny"
    if settings.planted is None:
        return "are the paper's"
    return f"on other data (seeds {', '.join(map(str, settings.development))})"


def _tiny(settings: Settings) -> tuple[str, ...]:
    assert settings.planted is not None
    one, other = settings.planted[BIASED], settings.planted[OTHER]
    layers = settings.rankers["BERT_CAT"]["ranker"].get("layers") if "BERT_CAT" in settings.rankers else None
    cue = (
        (
            f"A second cue that has nothing to do with place: {one.relevance_gender_rate:.0%} of the relevant passages,"
            f" and {one.gender_rate:.0%} of all, mention men or women. Without it a cross-encoder of two layers learned"
            " nothing but the place in the minutes of this scale: trained on rotated passages it stayed at chance.",
        )
        if one.relevance_gender_rate is not None
        else ()
    )
    return (
        f"Scale tiny: built-in collections stand for {BIASED} ({', '.join(one.kinds)}: relevant passages answer early,"
        f" at {one.mean_position(relevant=True):g} of the passage on average, facts and decoys of others stand at"
        f" {one.mean_position(relevant=False):g}) and {OTHER} ({', '.join(other.kinds)}: anywhere). They share neither"
        " topics nor kinds of questions, each is generated for each seed, and training, validation and test have"
        " different entities.",
        *cue,
        *_precision(settings),
        f"Departures from the paper at tiny: the encoders are the first {layers} layers of all-MiniLM-L6-v2 instead of"
        " DistilBERT, their word table is frozen, and batches have 8 lists; TK has smaller layers and vectors of 64"
        " numbers trained on the two collections instead of GloVe; learning rates are higher for far fewer steps (3e-4"
        " instead of 7e-6, 1e-3 for BERT_CAT's new head, 5e-4 instead of 1e-4); BERT_DOT pools by mean, as MiniLM was"
        " trained. Hinge, Adam, shared towers and kernel rates are the paper's; so are early stopping (after 3"
        " validations without a better one) and depth tuning, but the encoders' three or four validations are too few"
        " to stop early. TK's lists have three negatives in batches of 16, the encoders' one.",
        f"BM25's first {settings.depth[BIASED]} passages are re-ranked, or {settings.depths[0]} (published: 1,000 and"
        " 100): Recall@10 cannot change.",
    )


def _precision(settings: Settings) -> tuple[str, ...]:
    encoder = settings.rankers["BERT_CAT"]["training"] if "BERT_CAT" in settings.rankers else {}
    if encoder.get("precision") != "bfloat16":
        return ()
    return ("BERT_CAT and BERT_DOT train and rank in bfloat16, which this processor supports.",)


def _full() -> tuple[str, ...]:
    return (
        f"{BIASED}'s answers are those of its question answering data set (irds:msmarco-qna/train), matched in its own"
        " texts; its rotated version is not drawn.",
        "Each training query keeps 10 negatives drawn from BM25's list while it is searched, of which each epoch draws"
        " its own: a run of all training lists would fill 77 GB.",
        "The paper does not state its number of epochs or how often it validates: here up to 10 epochs, a validation"
        " every 4,000 steps, and early stopping after 5 without a better one.",
        "Duplicate passages of SQuAD are one document, so it can have slightly fewer than published.",
    )


def _real(settings: Settings) -> tuple[str, ...]:
    assert settings.early is not None
    return (
        f"Scale real: {OTHER} divided by article into training, validation and test. Training questions are those whose"
        f" first annotated answer begins in the first {settings.early:.0%} of its passage; test questions have answers"
        " anywhere. BERT_DOT starts from all-MiniLM-L6-v2, BERT_CAT from its first two layers and a new head, TK and"
        " KNRM from vectors of 64 numbers trained on the collection.",
        *_precision(settings),
        "TK and BERT_CAT have the learning rates of tiny, KNRM those of TK; the rate of BERT_DOT (1e-4) and its 60"
        " steps come from one unfinished run on the training articles, BERT_CAT's two layers from the training loss of"
        " another, with six, that was stopped. Everything else was set by the time available: lists of one"
        " negative, re-ranking of BM25's first five passages or three (so that Recall@10 cannot change), one layer in"
        " TK, batches of 8 and 16 lists, a frozen word table in the encoders.",
        "BM25 is strong on these questions, which repeat the words of their passages. A ranker below it is named with a"
        " warning, and no claim rests on it.",
        "By fifth: questions of different fifths differ in more than the answer's place, so the two trainings are"
        " compared on the same questions; KNRM, which cannot see order, and BM25 are controls.",
    )
