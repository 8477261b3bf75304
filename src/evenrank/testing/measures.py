"""The contract of measures of bias, and random runs to try measures on."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl

from evenrank.files import Run
from evenrank.files.types import Array
from evenrank.groups import GroupTable, as_labels
from evenrank.measures import BiasMeasure, Evaluation, LinearMeasure

_RUN = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}


def random_case(
    seed: int, *, queries: int = 4, documents: int = 12, longest: int = 6, levels: int = 3
) -> tuple[pl.DataFrame, GroupTable, pl.DataFrame]:
    """A run with ties, the group table of its documents, and judgements; one judged query is not in the run.

    ``longest``: of a list; ``levels``: how many different scores there are.
    """
    rng = np.random.default_rng(seed)
    names = [f"d{i}" for i in range(documents)]
    rows: list[tuple[str, str, float]] = []
    for query in range(queries):
        length = int(rng.integers(1, longest + 1))
        docs = rng.permutation(names)[:length]
        rows += [(str(query), str(doc), float(rng.integers(0, levels))) for doc in docs]
    judged = [
        (str(query), name, int(rng.integers(0, 4)))
        for query in range(queries + 1)
        for name in names
        if rng.random() < 0.5
    ]
    qrels = pl.DataFrame(judged, {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row")
    counts = rng.integers(0, 4, (documents, 2))
    words = rng.random((documents, 2)) * counts
    total = counts.sum(axis=1)
    # Up to one group word is neutral; from two on: 1 − the distance of their shares from a half each.
    distance = np.abs(counts / np.maximum(total, 1)[:, None] - 0.5).sum(axis=1)
    table = pl.DataFrame(
        {
            "doc_id": names,
            "tokens": [10] * documents,
            "count_f": counts[:, 0],
            "count_m": counts[:, 1],
            "magnitude_tf_words_f": words[:, 0],
            "magnitude_tf_words_m": words[:, 1],
            "neutrality": np.where(total > 1, 1 - distance, 1.0),
        }
    )
    return pl.DataFrame(rows, _RUN, orient="row"), GroupTable.of(table), qrels


def rankings(run: Run) -> dict[str, list[tuple[str, float]]]:
    """Each query's documents with their scores, in the run's order."""
    table: dict[str, list[tuple[str, float]]] = {}
    for query, doc, score in run.table.select("query_id", "doc_id", "score").iter_rows():
        table.setdefault(query, []).append((doc, score))
    return table


def every_order(ranking: list[tuple[str, float]]) -> list[list[str]]:
    """Every order of documents (given with their scores) that keeps falling scores."""
    ranking = sorted(ranking, key=lambda item: -item[1])
    groups = [[doc for doc, _ in group] for _, group in itertools.groupby(ranking, key=lambda item: item[1])]
    return [list(itertools.chain(*parts)) for parts in itertools.product(*map(itertools.permutations, groups))]


def check_measure(measure: BiasMeasure) -> None:
    """Checks that a measure (its cutoff and parameters set) keeps what audits rely on.

    - One value per query, from ``least`` to ``most`` or NaN, the same when it is asked again, whatever the order in
      which queries come and however far apart scores are that keep their order.
    - With a ``cutoff``: documents below it may change places.
    - What ties do: the run's figure lies within their range; over every order of tied documents (and over every order
      at all, for the random reference), the expectation is the mean and the range reaches from the least to the most,
      within 200 draws if it is drawn.
    - Bounds over unknown labels, where there are any, hold for every label tried.

    Raises AssertionError with the first that is broken.
    """
    cases = [random_case(seed, queries=3, longest=4, levels=2) for seed in range(6)]
    evaluations = [_evaluated(*case) for case in cases]
    of_one_query = [_evaluated(run.filter(pl.col("query_id") == "0"), groups, qrels) for run, groups, qrels in cases]
    for check in (_check_values, _check_ties, _check_labels):
        for evaluation in evaluations:
            check(measure, evaluation)
    for evaluation in of_one_query:
        _check_orders(measure, evaluation)


def _evaluated(frame: pl.DataFrame, groups: GroupTable, qrels: pl.DataFrame | None) -> Evaluation:
    """A run with all that a measure may need, the run's own documents as background."""
    evaluation = Evaluation(Run.from_table(frame), groups, qrels)
    evaluation.background = evaluation.as_background("run")
    return evaluation


def _like(evaluation: Evaluation, frame: pl.DataFrame) -> Evaluation:
    """Another run with the same labels, judgements and background."""
    other = Evaluation(Run.from_table(frame), evaluation.group_table, evaluation.qrels)
    other.background = evaluation.background
    return other


def _by_query(measure: BiasMeasure, evaluation: Evaluation) -> dict[str, float]:
    return dict(zip(measure.queries(evaluation), measure.values(evaluation).tolist(), strict=True))


def _check_values(measure: BiasMeasure, evaluation: Evaluation) -> None:
    values = measure.values(evaluation)
    assert values.shape == (len(measure.queries(evaluation)),), f"{measure}: not one value for each query"
    defined = values[~np.isnan(values)]
    inside = (defined >= measure.least - 1e-12) & (defined <= measure.most + 1e-12)
    assert inside.all(), f"{measure}: a value beyond its least and most: {defined[~inside]}"
    np.testing.assert_array_equal(measure.values(evaluation), values, f"{measure}: other values when asked again")
    own, frame = _by_query(measure, evaluation), evaluation.run.table.select(*_RUN)
    # Only what is tied, and what stands above what, counts. The last query first, the scores cubed.
    turned = frame.sort("query_id", descending=True, maintain_order=True).with_columns(pl.col("score") ** 3 + 1)
    _check_same(measure, own, _by_query(measure, _like(evaluation, turned)), "queries in another order, scores cubed")
    if "cutoff" in measure.params:
        ranked = frame.with_columns(rank=pl.int_range(pl.len()).over("query_id"))
        below = pl.col("rank") >= measure.params["cutoff"]
        in_order = ranked.with_columns(score=-pl.col("rank")).select(*_RUN)
        reversed_below = ranked.with_columns(
            score=-pl.when(below).then(1000 - pl.col("rank")).otherwise(pl.col("rank"))
        ).select(*_RUN)
        own, other = (_by_query(measure, _like(evaluation, run)) for run in (in_order, reversed_below))
        _check_same(measure, own, other, "documents below the cutoff in another order")


def _check_same(measure: BiasMeasure, own: dict[str, float], other: dict[str, float], change: str) -> None:
    """That no query's value has changed."""
    assert own.keys() == other.keys(), f"{measure}: {change}: other queries have values"
    for query, value in own.items():
        same = np.isclose(other[query], value, rtol=0, atol=1e-12, equal_nan=True)
        assert same, f"{measure}: {change}: {value} becomes {other[query]}"


def _check_ties(measure: BiasMeasure, evaluation: Evaluation) -> None:
    figure, ties, values = (
        measure.figure(measure.parts(evaluation)),
        measure.ties(evaluation),
        measure.values(evaluation),
    )
    if ties.expected is not None and not measure.whole_run:
        same = np.array_equal(np.isnan(ties.expected), np.isnan(values))
        assert same, f"{measure}: queries with a value and queries with an expectation over ties differ"
    assert (ties.range is None) == np.isnan(figure), f"{measure}: a range of ties without a figure, or none with one"
    if ties.range is not None:
        assert ties.range[0] <= figure <= ties.range[1], f"{measure}: its figure is not in the range that ties give it"
        assert ties.mean is not None
        assert ties.range[0] <= ties.mean <= ties.range[1], f"{measure}: its mean over ties is not in their range"


def _check_orders(measure: BiasMeasure, evaluation: Evaluation) -> None:
    """Against every order of one list."""
    ((_, ranking),) = rankings(evaluation.run).items()
    exact = isinstance(measure, LinearMeasure) and not measure.drawn
    ties = measure.ties(evaluation)
    tied = _figures(measure, evaluation, every_order(ranking))
    shuffled = _figures(measure, evaluation, every_order([(doc, 0.0) for doc, _ in ranking]))
    if not (measure.whole_run or np.isnan(shuffled).any()):
        random = measure.figure(measure.parts(evaluation, random=True))
        for values, expected, of in ((tied, ties.mean, "the orders of ties"), (shuffled, random, "all orders")):
            # A mean of 200 draws is nearer than a quarter of the range.
            near = 1e-9 if exact else 0.25 * np.ptp(values) + 1e-9
            assert expected is not None, f"{measure}: no mean over {of}"
            assert abs(expected - values.mean()) <= near, f"{measure}: {expected} is not its mean over {of}"
    if ties.range is not None and not measure.drawn:
        ends = float(np.nanmin(tied)), float(np.nanmax(tied))
        assert np.allclose(ties.range, ends, rtol=0, atol=1e-9), f"{measure}: ties reach from {ends}, not {ties.range}"


def _figures(measure: BiasMeasure, evaluation: Evaluation, orders: list[list[str]]) -> Array:
    """The figure of each order of the documents of a run of one query: of all at once, each a query of its own."""
    (query,) = evaluation.run.queries
    rows = [(str(name), doc, -float(place)) for name, docs in enumerate(orders) for place, doc in enumerate(docs)]
    names = pl.DataFrame({"query_id": map(str, range(len(orders)))})
    judged = evaluation.qrels
    if judged is not None:
        judged = names.join(judged.filter(pl.col("query_id") == query).drop("query_id"), how="cross")
    reordered = _evaluated(pl.DataFrame(rows, _RUN, orient="row"), evaluation.required_table, judged)
    parts, places = measure.parts(reordered), {name: at for at, name in enumerate(measure.queries(reordered))}
    chosen = [places.get(name) for name in names["query_id"]]
    return np.array([np.nan if at is None else measure.figure([part[at : at + 1] for part in parts]) for at in chosen])


def _check_labels(measure: BiasMeasure, evaluation: Evaluation) -> None:
    """Labels of which some are unknown, against five ways to label those."""
    rng = np.random.default_rng(0)
    docs = evaluation.required_table.table["doc_id"].to_list()
    known = {doc: str(rng.choice(["f", "m", "none"])) for doc in docs[1:] if rng.random() < 0.6}
    ends = measure.label_bounds(_labelled(evaluation, known))
    if ends is None:
        return
    for _ in range(5):
        labels = {doc: known.get(doc) or str(rng.choice(["f", "m", "none"])) for doc in docs}
        values = measure.values(_labelled(evaluation, labels))
        outside = (values < ends[0] - 1e-9) | (values > ends[1] + 1e-9)
        assert not outside.any(), f"{measure}: labels that could be give a value outside its bounds over unknown labels"


def _labelled(evaluation: Evaluation, labels: dict[str, str]) -> Evaluation:
    """The same run with other labels."""
    # Every group is there, whatever was drawn.
    table = as_labels(labels | dict.fromkeys(["another", "third"], "f") | {"fourth": "m"}, neutral="none", poles="m,f")
    other = Evaluation(evaluation.run, table, evaluation.qrels, missing="bounds")
    other.background = other.as_background("run")
    return other
