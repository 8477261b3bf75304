"""One way in: the readers make the same of all forms of a thing, and every public name refuses all else in one line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError, Run, groups, measures, papers, search
from evenrank import options as opt
from evenrank.files import as_batches, as_qrels, as_queries, as_run
from evenrank.search.debias_file import debias_file

# PyTerrier uses what pandas will drop.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

RUN = {"q1": {"d1": -1.0, "d2": -2.0, "d3": -3.0}, "q2": {"d2": -1.0, "d3": -2.0, "d4": -3.0}}
QRELS = {"q1": {"d1": 1}, "q2": {"d3": 1}}
TEXTS = {"d1": "She said that she knew", "d2": "He said he did", "d3": "nothing he knew", "d4": "a word of her own"}
QUERIES = {"q1": "who knew", "q2": "who said nothing"}
LEXICON = {"f": ["she", "her"], "m": ["he", "his"]}
LABELS = {"d1": "f", "d2": "m", "d3": "m", "d4": "f"}
MEASURES = "nDCG@10 ARaB@10"
SCORING = evenrank.Scoring(evenrank.load_lexicon(LEXICON))
SCORES = groups.score_in_memory(TEXTS, SCORING)
VECTORS = search.Vectors(("who", "knew", "said", "nothing"), np.eye(4, dtype=np.float32))
BUDGET = {"rule": [{"measure": "nDCG@10", "at_least": 0.1}]}


def by_length(query: str, passages: list[str]) -> list[float]:
    return [float(len(passage)) for passage in passages]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each thing as a file."""
    place = tmp_path_factory.mktemp("inputs")
    for name, texts in {"texts.tsv": TEXTS, "queries.tsv": QUERIES}.items():
        (place / name).write_text("".join(f"{key}\t{text}\n" for key, text in texts.items()))
    (place / "empty").mkdir()
    (place / "labels.csv").write_text("doc_id,group\n" + "".join(f"{key},{group}\n" for key, group in LABELS.items()))
    (place / "lexicon.csv").write_text("".join(f"{word},{group}\n" for group in LEXICON for word in LEXICON[group]))
    (place / "qrels").write_text("".join(f"{q} 0 {d} {grade}\n" for q, of in QRELS.items() for d, grade in of.items()))
    evenrank.write_run(RUN, place / "run")
    evenrank.score(TEXTS, out=place / "scores.parquet")
    evenrank.build_index(TEXTS, out=place / "index", quiet=True)
    return place


def rows(given: dict[str, dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(query, document, value) for query, of in given.items() for document, value in of.items()]


def frames(given: list[tuple[Any, ...]], *names: str) -> dict[str, Any]:
    of = pl.DataFrame(given, list(names), orient="row")
    return {"polars": of, "lazy": of.lazy(), "arrow": of.to_arrow(), "pandas": of.to_pandas(), "records": of.to_dicts()}


def texts(given: dict[str, str], key: str, path: Path) -> dict[str, Any]:
    whole = {"dict": given, "path": path, "str": str(path), "series": pd.Series(given)}
    return whole | frames(list(given.items()), key, "text")


def forms(kind: str, folder: Path) -> dict[str, Any]:
    """A thing in all its forms, the plainest first."""
    if kind == "run":
        ranked = {query: list(of) for query, of in RUN.items()}
        found = {"dict": RUN, "path": folder / "run", "Run": Run.from_table(RUN), "ranked": ranked}
        return found | frames(rows(RUN), "query_id", "doc_id", "score") | frames(rows(RUN), "qid", "docno", "score")
    if kind == "qrels":
        found = {"dict": QRELS, "path": folder / "qrels", "sets": {"q1": {"d1"}, "q2": {"d3"}}}
        found |= {"Qrel": [ir_measures.Qrel(*row) for row in rows(QRELS)]}
        return found | frames(rows(QRELS), "qid", "docno", "label")
    if kind == "collection":
        return texts(TEXTS, "doc_id", folder / "texts.tsv")
    if kind == "queries":
        return texts(QUERIES, "query_id", folder / "queries.tsv")
    if kind == "labels":
        tables = frames(list(LABELS.items()), "doc_id", "group")
        del tables["records"]
        return {"dict": LABELS, "path": folder / "labels.csv", "GroupTable": evenrank.as_labels(LABELS), **tables}
    if kind == "lexicon":
        return {"dict": LEXICON, "path": folder / "lexicon.csv", "Lexicon": SCORING.lexicon}
    if kind == "scores":
        return {"GroupTable": SCORES, "path": folder / "scores.parquet"}
    assert kind == "measures"
    listed = ir_measures.nDCG @ 10, measures.ARaB @ 10
    return {"str": MEASURES, "list": MEASURES.split(), "measures": listed, "both": [listed[0], "ARaB@10"]}


WHERE = {
    "run": "run runs candidates background",
    "qrels": "qrels relevant",
    "collection": "collection corpus texts",
    "queries": "queries",
    "labels": "labels",
    "lexicon": "lexicon",
    "scores": "scores table",
    "measures": "measures",
}
KINDS = {name: kind for kind, names in WHERE.items() for name in names.split()}
"""What a parameter takes, by its name."""


def calls(folder: Path, out: Path) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
    """Public names, each called with the plainest form of what it takes."""
    listed = {"run": RUN, "collection": TEXTS, "queries": QUERIES}
    judged = {**listed, "qrels": QRELS}
    found: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (evenrank.as_labels, {"given": LABELS}),
        (evenrank.build_index, {"collection": TEXTS, "out": out / "index", "quiet": True}),
        (evenrank.check_lexicon, {"lexicon": LEXICON, "collection": TEXTS, "labels": LABELS}),
        (evenrank.expand, {"queries": QUERIES, "vectors": VECTORS, "k": 1, "stopwords": ()}),
        (evenrank.gate, {"audited": AUDIT, "budget": BUDGET}),
        (evenrank.interpolate, {"runs": {"a": RUN, "b": RUN}, "weights": [0.5, 0.5]}),
        (evenrank.named_runs, {"arguments": [folder / "run"]}),
        (evenrank.open_index, {"path": folder / "index"}),
        (evenrank.read_group_table, {"path": folder / "scores.parquet"}),
        (evenrank.read_qrels, {"path": folder / "qrels"}),
        (evenrank.read_queries, {"path": folder / "queries.tsv"}),
        (evenrank.read_run, {"path": folder / "run"}),
        (evenrank.rebalance, {"run": RUN, "strength": 1, "collection": TEXTS, "qrels": QRELS, "lexicon": LEXICON}),
        (evenrank.rebalance, {"run": RUN, "strength": 1, "scores": SCORES}),
        (evenrank.rebalance, {"run": RUN, "strength": 1, "labels": LABELS}),
        (evenrank.rerank, {**listed, "model": by_length, "quiet": True}),
        (evenrank.retrieve, {"collection": TEXTS, "queries": QUERIES, "quiet": True}),
        (evenrank.score, {"collection": TEXTS, "out": out / "scores.parquet"}),
        (evenrank.score, {"labels": LABELS, "out": out / "labels.parquet", "collection": TEXTS}),
        (evenrank.write_negatives, {**judged, "out": out / "negatives.parquet", "n": 1, "lexicon": LEXICON}),
        (evenrank.write_negatives, {"run": RUN, "qrels": QRELS, "out": out / "n.parquet", "n": 1, "labels": LABELS}),
        (evenrank.write_run, {"run": RUN, "out": out / "a.run"}),
        (groups.score_in_memory, {"texts": TEXTS, "scoring": SCORING}),
        (measures.parse_measures, {"given": MEASURES}),
    ]
    for more in ({"collection": TEXTS, "lexicon": LEXICON, "queries": QUERIES}, {"labels": LABELS}, {"scores": SCORES}):
        audited = {"runs": RUN, "qrels": QRELS, "measures": MEASURES, "background": RUN}
        found += [(evenrank.audit, audited | more)]
    if find_spec("sentence_transformers"):
        from evenrank.training.sentence_transformers import BiasEvaluator

        texts = {"queries": QUERIES, "corpus": TEXTS, "relevant": QRELS, "candidates": RUN, "measures": MEASURES}
        found += [(BiasEvaluator, texts | {name: value}) for name, value in OF_GROUPS.items()]
        found.append((evenrank.training_lists, {**judged, "lexicon": LEXICON, "out": out / "lists"}))
    if find_spec("pyterrier"):
        found += [(pyterrier_rebalanced, {name: value}) for name, value in OF_GROUPS.items()]
    return found


def pyterrier_rebalanced(**given: Any) -> object:
    from evenrank.decide.pyterrier import EvenrankRebalancer

    ranked = pd.DataFrame(rows(RUN), columns=["qid", "docno", "score"]).assign(text=lambda of: of["docno"].map(TEXTS))
    return EvenrankRebalancer(**given).transform(ranked).to_dict("list")


def others(out: Path) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
    """Public names that are not called to the end: what they take is refused before they begin."""
    found: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (evenrank.best_passages, {"run": {"q": {"a#1": 1.0}}, "passages": {"a#1": "a"}}),
        (evenrank.cut_passages, {"collection": TEXTS, "out": out / "cut"}),
        (evenrank.Encoding, {}),
        (evenrank.Endpoint, {"url": "http://localhost:1", "api": "tei"}),
        (papers.ExperimentOptions, {}),
        (evenrank.fetch, {"name": "none", "out": out}),
        (evenrank.load_lexicon, {}),
        (evenrank.load_ranker, {"model": by_length}),
        (evenrank.mask_texts, {"texts": pl.Series(list(TEXTS.values())), "scoring": SCORING}),
        (evenrank.position_answers, {"squad": "none.json"}),
        (evenrank.position_sensitivity, {"model": by_length}),
        (evenrank.position_similarity, {"model": "none", "collection": TEXTS}),
        (evenrank.probe, {"model": by_length, "variants": OTHER, "collection": TEXTS, "queries": QUERIES}),
        (evenrank.read_stop_words, {"source": "english"}),
        (evenrank.read_vectors, {"path": "none.npy"}),
        (evenrank.rotate_collection, {"collection": "none.tsv", "out": out}),
        (evenrank.RM3, {}),
        (evenrank.Run, {"name": "a", "table": SCORES.table}),
        (papers.run_experiment, {"name": "ibbr", "out": out}),
        (evenrank.run_name, {"path": "a.run"}),
        (evenrank.Scoring, {"lexicon": SCORING.lexicon}),
        (evenrank.tune, {"runs": {"a": RUN, "b": RUN}, "qrels": QRELS, "folds": 2, "restarts": 1}),
        (evenrank.variants, {"collection": TEXTS, "kind": "swap"}),
        (evenrank.write_squad_collection, {"files": ["none.json"], "to": out}),
        (search.audit_file, {"vectors": "none.npy"}),
        (debias_file, {"vectors": "none.npy", "out": out}),
        (search.load_word_sets, {}),
        (measures.provider, {"table": SCORES, "background": RUN}),
    ]
    if find_spec("sentence_transformers"):
        found += [(evenrank.IBBR, {}), (evenrank.train, {"ranker": "none", "lists": []})]
        found += [(evenrank.train_recipe, {"recipe": "none.toml"}), (evenrank.training_summary, {"folder": out})]
    if find_spec("pyterrier"):
        from evenrank.decide.pyterrier import EvenrankRebalancer, EvenrankReranker

        found += [(EvenrankRebalancer, {}), (EvenrankReranker, {"ranker": by_length})]
    return found


OTHER = {"other": {document: f"{text}, he or she" for document, text in TEXTS.items()}}
OF_GROUPS = {"lexicon": LEXICON, "labels": LABELS, "scores": SCORES}
AUDIT = evenrank.audit({"a": RUN, "b": RUN}, collection=TEXTS, qrels=QRELS, baseline="a")


READERS: dict[str, Callable[[Any], Any]] = {
    "run": lambda given: as_run(given).table.rows(),
    "qrels": lambda given: as_qrels(given).rows(),
    "collection": lambda given: sorted(pl.concat(as_batches(given)).rows()),
    "queries": lambda given: as_queries(given).rows(),
    "labels": lambda given: evenrank.as_labels(given).table.rows(),
    "lexicon": lambda given: sorted(evenrank.load_lexicon(given).words),
    "scores": lambda given: groups.as_group_table(given).table.rows(),
    "measures": lambda given: [str(one) for one in measures.parse_measures(given)],
}


@pytest.mark.parametrize("kind", READERS)
def test_all_forms_of_a_thing_are_the_same(folder: Path, kind: str) -> None:
    found = {form: READERS[kind](given) for form, given in forms(kind, folder).items()}
    assert [form for form in found if found[form] != found[next(iter(found))]] == []


OBJECT = object()
WRONG: dict[str, Any] = {"5": 5, "object": OBJECT, "function": print, "list": [1], "dict": {"a": OBJECT}}
DATA = {*KINDS, "model", "ranker", "lists", "variants", "placebos", "answers", "given", "ids", "target", "guess"}
DATA |= {"validation_queries"}
"""Converted where they are used, so that what is not used is not looked at."""
FITTING = {"5": "int|float|Weight", "function": "Callable|RankerLike|Loss|Term", "list": "float\\]|Container"}
FITTING["dict"] = "Mapping|Container"
"""The annotations, in part, that allow it."""


def annotated(function: Callable[..., Any]) -> dict[str, str]:
    """What a function takes, by name: its annotations as text, those of options and of groups without their help."""
    found = {}
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_KEYWORD and "GroupOptions" in str(one.annotation):
            found |= {name: str(get_args(kind)[0]) for name, kind in opt.GroupOptions.__annotations__.items()}
        elif one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            alias = re.fullmatch(r"opt\.(\w+)", str(one.annotation))
            found[one.name] = str(get_args(getattr(opt, alias[1]))[0]) if alias else str(one.annotation)
    return found


def test_all_else_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    wrong = []
    for function, arguments in [*calls(folder, tmp_path / "out"), *others(tmp_path / "out")]:
        for name, kind in annotated(function).items():
            for what, given in WRONG.items():
                if re.search(FITTING.get(what, "^$"), kind):
                    continue
                try:
                    function(**{**arguments, name: given})
                except EvenrankError as error:
                    named = name in DATA or str(error).startswith(f"`{name}`: expected ")
                    if not named or "\n" in str(error):
                        wrong.append(f"{function.__name__}: {name} as {what}: {error}")
                except Exception as error:
                    wrong.append(f"{function.__name__}: {name} as {what}: {error!r}")
                else:
                    if name not in DATA or name in arguments:
                        wrong.append(f"{function.__name__}: {name} as {what} is accepted")
    assert not wrong, "\n".join(wrong)
