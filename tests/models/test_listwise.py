"""Listwise re-ranking: what the ranker is given, what is written, and what an audit says of the order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import evenrank
from evenrank.files import EvenrankError, InputError, Run, read_run

pytest.importorskip("torch", reason="needs the extra [neural]")

WORDS = {"m": "he and his father", "f": "she and her mother", "n": "a stone bridge"}
TEXTS = {f"{kind}{i}": f"{i} {text}" for i in range(3) for kind, text in WORDS.items()}
DOCS = list(TEXTS)
RUN = {f"q{q}": {doc: float(-((i * 5 + q) % 9)) for i, doc in enumerate(DOCS)} for q in range(4)}
QUERIES = {query: f"text of {query}" for query in RUN}
MEASURES = "NFaiRR@3 ARaB(magnitude='bool')@3"

Asked = list[tuple[str, list[str]]]


def recording(scores: Callable[[list[str]], list[float]]) -> tuple[Callable[[str, list[str]], list[float]], Asked]:
    asked: Asked = []

    def rank(query: str, passages: list[str]) -> list[float]:
        asked.append((query, list(passages)))
        return scores(passages)

    return rank, asked


def falling(passages: list[str]) -> list[float]:
    """Scores that keep the order given: position bias and nothing else."""
    return [-float(place) for place in range(len(passages))]


def pointwise(passages: list[str]) -> list[float]:
    return [sum(map(ord, passage)) % 97 for passage in passages]


def listwise(ranker: Callable[[str, list[str]], list[float]], run: object = RUN, **settings: object) -> Run:
    return evenrank.rerank(run, model=ranker, collection=TEXTS, queries=QUERIES, listwise=True, quiet=True, **settings)  # type: ignore[arg-type]


def ids(run: Run, query: str) -> list[str]:
    return run.table.filter(run.table["query_id"] == query)["doc_id"].to_list()


def test_each_list_is_given_whole_in_the_runs_order_and_in_five_shuffles() -> None:
    ranker, asked = recording(falling)
    result = listwise(ranker)
    first = Run.from_table(RUN)
    assert len(asked) == 6 * len(RUN)
    assert len(result.orders) == 5
    by_text = {text: doc for doc, text in TEXTS.items()}
    for query in RUN:
        given = [[by_text[text] for text in passages] for text, passages in asked if text == QUERIES[query]]
        assert given[0] == ids(first, query)
        assert len(set(map(tuple, given))) == 6
        assert {tuple(sorted(order)) for order in given} == {tuple(sorted(DOCS))}
        # The scores are those of the order that was asked for, each with its own document.
        assert [ids(run, query) for run in (result, *result.orders)] == given
    assert len({tuple(ids(order, query)) for query in RUN for order in result.orders}) == 20


def test_a_shuffle_depends_on_its_seed_and_its_query_alone() -> None:
    def orders(run: object = RUN, seed: int = 0) -> list[dict[str, list[str]]]:
        result = listwise(recording(falling)[0], run, seed=seed)
        return [{query: ids(order, query) for query in order.queries} for order in result.orders]

    assert orders() == orders()
    assert orders() != orders(seed=1)
    alone = orders({"q2": RUN["q2"]})
    assert alone == [{"q2": order["q2"]} for order in orders()]


def lean(order: list[str]) -> float:
    """ARaB(magnitude='bool')@3 of one list, rank by rank."""
    sides = [{"m": 1, "f": -1, "n": 0}[doc[0]] for doc in order]
    return sum(sum(sides[:t]) / t for t in (1, 2, 3)) / 3


def test_an_audit_has_every_figure_over_the_orders() -> None:
    ranker, asked = recording(falling)
    run = listwise(ranker)
    result = evenrank.audit({"L": run}, collection=TEXTS, measures=MEASURES)
    by_text = {text: doc for doc, text in TEXTS.items()}
    # From what the ranker was given: the k-th list of each query is that of order k.
    leans: list[list[float]] = [[] for _ in range(6)]
    for query in RUN:
        for number, passages in enumerate(p for text, p in asked if text == QUERIES[query]):
            leans[number].append(lean([by_text[text] for text in passages]))
    means = [float(np.mean(one)) for one in leans]
    figure = result["L", "ARaB(magnitude='bool')@3"]
    assert figure.mean == pytest.approx(means[0])
    assert figure.order_mean == pytest.approx(np.mean(means))
    assert figure.order_range == pytest.approx((min(means), max(means)))
    value = result.to_dict()["runs"]["L"]["measures"]["ARaB(magnitude='bool')@3"]  # type: ignore[index]
    assert value["order_range"] == pytest.approx([min(means), max(means)])
    assert value["order_mean"] == figure.order_mean
    rows = result.to_polars().filter(measure="ARaB(magnitude='bool')@3", run="L")
    assert rows.select("order_low", "order_high").row(0) == figure.order_range
    # NFaiRR: the background is the run itself, whichever order is looked at.
    neutral = [
        np.mean([np.sum([(d[0] == "n") / np.log2(2 + i) for i, d in enumerate(ids(one, q)[:3])]) for q in RUN])
        for one in (run, *run.orders)
    ]
    best = sum(1 / np.log2(2 + i) for i in range(3))
    assert result["L", "NFaiRR@3"].order_range == pytest.approx((min(neutral) / best, max(neutral) / best))
    spread = "L: mean and range over the orders in which its passages were given: NFaiRR@3"
    assert any(note.startswith(spread) for note in result.notes)


ONE = {"q0": RUN["q0"]}


def flags(result: evenrank.AuditResult) -> list[str]:
    return [note for note in result.notes if "the order in which passages were given moves" in note]


def test_a_figure_that_the_order_moves_is_flagged() -> None:
    result = evenrank.audit({"L": listwise(falling_function, ONE)}, collection=TEXTS, measures=MEASURES)
    # One query has no interval: any effect counts.
    moved = ", ".join(key for key, figure in result["L"].figures.items() if figure.order_sensitive)
    assert moved == "NFaiRR@3, ARaB(magnitude='bool')@3"
    note = f"L: the order in which passages were given moves {moved} by more than its interval is wide."
    assert flags(result) == [note]
    assert result["L", "NFaiRR@3"].order_range == pytest.approx((0, 0.531), abs=5e-4)
    sentence = "Order of passages: another could move NFaiRR@3 of L to between .000 and .531."
    assert [one.text for one in result.findings if one.key == "orders"] == [sentence]
    text, page = " ".join(result.table(full=True).split()), result.html().replace("&#39;", "'")
    for part in (note, sentence):
        assert part in text
        assert part in page


def falling_function(query: str, passages: list[str]) -> list[float]:
    return falling(passages)


def pointwise_function(query: str, passages: list[str]) -> list[float]:
    return pointwise(passages)


def test_a_pointwise_function_is_not_flagged() -> None:
    for run in (RUN, ONE):
        result = evenrank.audit({"P": listwise(pointwise_function, run)}, collection=TEXTS, measures=MEASURES)
        for figure in result["P"].figures.values():
            assert figure.order_range == (figure.mean, figure.mean)
            assert not figure.order_sensitive
        assert flags(result) == []


def test_a_run_that_is_not_listwise_has_no_orders() -> None:
    run = evenrank.rerank(RUN, model=pointwise_function, collection=TEXTS, queries=QUERIES, quiet=True)
    assert run.orders == ()
    result = evenrank.audit({"P": run}, collection=TEXTS, measures=MEASURES)
    assert result["P", "NFaiRR@3"].order_range is None
    assert "order_range" not in result.to_dict()["runs"]["P"]["measures"]["NFaiRR@3"]  # type: ignore[index]


# --- files -----------------------------------------------------------------------------------------------------------


def test_files_of_orders_are_audited_as_the_runs_in_memory(tmp_path: Path) -> None:
    out = tmp_path / "l.run"
    run = listwise(falling_function, out=out)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("l.run", "l.run.card.json"),
        *(f"l.run.order-{number}" for number in range(1, 6)),
    ]
    for number, order in enumerate(run.orders, 1):
        assert read_run(f"{out}.order-{number}").table.equals(order.table)
    card = json.loads(Path(f"{out}.card.json").read_text())["made_by"]
    assert card["listwise"]["seed"] == 0
    assert [order["file"] for order in card["listwise"]["orders"]] == [f"l.run.order-{n}" for n in range(1, 6)]
    from_file = evenrank.audit({"L": out}, collection=TEXTS, measures=MEASURES)
    in_memory = evenrank.audit({"L": run}, collection=TEXTS, measures=MEASURES)
    for key, figure in in_memory["L"].figures.items():
        assert figure.order_range is not None
        assert from_file["L", key].order_range == figure.order_range
        assert from_file["L", key].order_mean == figure.order_mean
    some = evenrank.audit(
        {"L": out}, collection=TEXTS, measures=MEASURES, queries={"q0": "x", "q1": "y"}, only_queries=True
    )
    two = [[lean(ids(order, query)) for query in ("q0", "q1")] for order in (run, *run.orders)]
    means = [float(np.mean(one)) for one in two]
    assert some["L", "ARaB(magnitude='bool')@3"].order_range == pytest.approx((min(means), max(means)))


@pytest.mark.parametrize("change", ["gone", "changed", "elsewhere", "nonsense"])
def test_orders_that_are_not_the_cards_give_a_note_and_no_figures(tmp_path: Path, change: str) -> None:
    out = tmp_path / "l.run"
    listwise(falling_function, out=out)
    second, card = Path(f"{out}.order-2"), Path(f"{out}.card.json")
    said = "the run of another order, l.run.order-2, is missing or has changed"
    if change == "gone":
        second.unlink()
    elif change == "changed":
        second.write_text(second.read_text().replace("q0", "q9"))
    else:
        name = {"elsewhere": '"../l.run.order-2"', "nonsense": "7"}[change]
        card.write_text(card.read_text().replace('"l.run.order-2"', name))
        said = "its card does not name the runs of other orders"
    result = evenrank.audit({"L": out}, collection=TEXTS, measures=MEASURES)
    assert result["L", "NFaiRR@3"].order_range is None
    assert f"L: {said}: how far the order of passages moves its figures is unknown." in result.notes


def test_outputs_are_never_inputs(tmp_path: Path) -> None:
    queries = tmp_path / "l.run.order-3"
    queries.write_text("".join(f"{query}\t{text}\n" for query, text in QUERIES.items()))
    with pytest.raises(InputError, match=r"l\.run\.order-3: cannot be written: it is an input$"):
        evenrank.rerank(
            RUN,
            model=falling_function,
            collection=TEXTS,
            queries=queries,
            listwise=True,
            out=tmp_path / "l.run",
            quiet=True,
        )
    assert [path.name for path in tmp_path.iterdir()] == ["l.run.order-3"]


def test_a_stream_cannot_take_several_runs() -> None:
    with pytest.raises(EvenrankError) as caught:
        listwise(falling_function, out="/dev/null")
    message = "`listwise` writes several files: expected a local file as `out`, found '/dev/null'"
    assert str(caught.value) == message


def test_only_for_what_can_depend_on_other_passages(tmp_path: Path) -> None:
    from tiny_models import tiny_bert

    model = tiny_bert(tmp_path / "tiny", head=True)
    with pytest.raises(EvenrankError) as caught:
        evenrank.rerank(RUN, model=model, collection=TEXTS, queries=QUERIES, listwise=True, quiet=True)
    assert str(caught.value) == (
        "`listwise`: expected a function or an endpoint that re-ranks: the scores of tiny do not depend on other"
        " passages"
    )


def test_no_verdict_on_what_the_order_decides() -> None:
    """A ranker with nothing but position bias keeps BM25's order, and so its effectiveness: that is no merit."""
    result = listwise(recording(falling)[0])
    qrels = {query: {sorted(docs, key=lambda doc: -docs[doc])[0]: 1} for query, docs in RUN.items()}
    runs = {"BM25": Run.from_table(RUN), "list": result}
    audit = evenrank.audit(runs, baseline="BM25", collection=TEXTS, qrels=qrels, measures=f"RR@3 {MEASURES}")
    first = audit.findings[0]
    assert (first.key, first.level) == ("passage_order", "cannot be told")
    figure = audit["list", "RR@3"]
    assert figure.mean == 1
    assert figure.order_mean is not None
    assert figure.order_mean < 0.9
    steady = evenrank.audit(
        {**runs, "list": listwise(recording(pointwise)[0])}, baseline="BM25", collection=TEXTS, qrels=qrels,
        measures=f"RR@3 {MEASURES}",
    )  # fmt: skip
    assert steady.findings[0].key != "passage_order"
