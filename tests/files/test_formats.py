"""One list of formats: runs, judgements, collections and queries are the same from each of them."""

from __future__ import annotations

import gzip
import json
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError, InputError, TextFile, audit, beir, read_qrels, read_queries, read_run, write_run
from evenrank.files.texts import map_passages, read_texts, scan_collection

TEXTS = {
    "d1": 'She said "well",\tand left',
    "d2": "He said he did; é",
    "d3": "nothing he knew, 'quoted",
    "d4": "a word of her own",
}
QUERIES = {"q1": "who knew, and when", "q2": "who said nothing", "q3": "said, not judged"}
RUN = {"q2": {"d4": 1.5, "d2": 1.5, "d1": 0.1 + 0.2}, "q1": {"d1": 3.25, "d3": 1e-17, "d2": 1e-17}}
QRELS = {"q1": {"d1": 1, "d3": 2}, "q2": {"d2": 0, "d4": 1}}
Write = Callable[[Path], object]


def zst(data: bytes) -> bytes:
    """A zst frame without compression (magic, descriptor of a frame with four bytes of size, one raw block), behind
    one that is to be skipped, as parallel compressors write it."""
    blocks = (1 | len(data) << 3).to_bytes(3, "little") + data
    return b"\x50\x2a\x4d\x18\x01\0\0\0x" + b"\x28\xb5\x2f\xfd\xa0" + len(data).to_bytes(4, "little") + blocks


def nested(given: dict[str, dict[str, Any]], *names: str) -> pl.DataFrame:
    return pl.DataFrame([(q, d, v) for q, of in given.items() for d, v in of.items()], list(names), orient="row")


def trec(given: dict[str, dict[str, Any]], form: str) -> str:
    rows = [(q, d, n, v) for q, of in given.items() for n, (d, v) in enumerate(of.items(), 1)]
    return "".join(form.format(query=q, doc=d, rank=n, value=repr(v)) for q, d, n, v in rows)


def packed(text: str) -> dict[str, bytes]:
    return {"plain": text.encode(), "gzip": gzip.compress(text.encode()), "zst": zst(text.encode())}


def tables(frame: pl.DataFrame, kind: str) -> dict[str, Write]:
    forms: dict[str, Write] = {
        "csv": frame.write_csv,
        "tsv": lambda path: frame.write_csv(path, separator="\t", quote_style="never"),
        "jsonl": frame.write_ndjson,
        "parquet": frame.write_parquet,
    }
    return {f"{kind}.{name}": write for name, write in forms.items()}


def written(given: dict[str, bytes], kind: str) -> dict[str, Write]:
    return {f"{kind}.{name}": lambda path, data=data: path.write_bytes(data) for name, data in given.items()}


HIT = {"_index": "notes", "_source": {"body": "the text"}}


def answers(given: dict[str, dict[str, float]], named: bool = True) -> list[dict[str, Any]]:
    """What ``_search`` answers to each query, as Elasticsearch 8 and OpenSearch 2 document it."""
    found = []
    for query, of in given.items():
        name = {"matched_queries": [query]} if named else {}
        hits = [{**HIT, "_id": document, "_score": score, **name} for document, score in of.items()]
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        total = {"value": len(hits), "relation": "eq"}
        inside = {"total": total, "max_score": max(of.values()), "hits": hits}
        found.append({"took": 2, "timed_out": False, "_shards": shards, "hits": inside})
    return found


EXPORTS = Path(__file__).with_name("exports")
"""What other programs wrote, of RUN and of QRELS."""


RUNS = {
    **written(packed(trec(RUN, "{query} Q0 {doc} {rank} {value} t\n")), "trec"),
    **written(packed(json.dumps(RUN, indent=1)), "json"),
    **written(packed(nested(RUN, "query_id", "doc_id", "score").write_csv()), "packed"),
    **tables(nested(RUN, "query_id", "doc_id", "score"), "named"),
    **tables(nested(RUN, "qid", "docno", "score").with_columns(rank=0), "pyterrier"),
    **written(packed(json.dumps({"took": 5, "responses": answers(RUN)}, indent=1)), "msearch-elasticsearch-8"),
    "search-by-query.json": lambda path: path.write_text(json.dumps(dict(zip(RUN, answers(RUN, False), strict=True)))),
    "search-opensearch-2.jsonl": lambda path: path.write_text("\n".join(map(json.dumps, answers(RUN)))),
    "search.csv": nested(RUN, "query", "_id", "_score").with_columns(position=0).write_csv,
    "decimal-comma.csv": lambda path: path.write_text(
        nested(RUN, "query", "_id", "_score").write_csv(separator=";").replace(".", ",")
    ),
    "mteb-2.26.24.json": lambda path: shutil.copy(EXPORTS / "mteb-2.26.24.json", path),
}
JUDGED = {
    **written(packed(trec(QRELS, "{query} 0 {doc} {value}\n")), "trec"),
    **written(packed(json.dumps(QRELS)), "json"),
    **tables(nested(QRELS, "query-id", "corpus-id", "score"), "beir"),
    **tables(nested(QRELS, "query_id", "doc_id", "relevance"), "named"),
    "quepid.csv": nested(QRELS, "query", "docid", "rating").write_csv,
}


def texts(given: dict[str, str]) -> dict[str, Write]:
    frame = pl.DataFrame({"_id": list(given), "text": list(given.values())})
    # A tab stays where it is in a TSV without a heading; with one, it would begin another value.
    plain = frame.write_csv(include_header=False, separator="\t", quote_style="never")
    titled = frame.with_columns(
        title=pl.col("text").str.extract(r"^(\S+) "), text=pl.col("text").str.replace(r"^\S+ ", "")
    )
    found = {**written(packed(plain), "tsv"), **tables(frame, "named"), **tables(titled, "titled")}
    del found["titled.tsv"]
    return found | written(packed(titled.write_csv(separator=";")), "semicolons")


COLLECTIONS, ASKED = texts(TEXTS), texts(QUERIES)
FORMS = {"run": RUNS, "qrels": JUDGED, "collection": COLLECTIONS, "queries": ASKED}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Each thing in its first form."""
    made = {}
    for name, forms in FORMS.items():
        made[name] = tmp_path / f"{name}.first"
        next(iter(forms.values()))(made[name])
    return made


def lines(out: Path) -> list[list[str]]:
    return [line.split()[:5] for line in out.read_text().splitlines()]


READ: dict[str, Callable[[Path], list[tuple[Any, ...]]]] = {
    "run": lambda path: [*read_run(path).table.rows(), *read_run(path, order="file").table.rows()],
    "qrels": lambda path: read_qrels(path).rows(),
    "collection": lambda path: pl.concat(scan_collection(path)).rows(),
    "queries": lambda path: read_queries(path).rows(),
}


@pytest.mark.parametrize(("role", "form"), [(role, form) for role, forms in FORMS.items() for form in forms])
def test_every_form_gives_the_same(role: str, form: str, tmp_path: Path) -> None:
    first = next(iter(FORMS[role]))
    FORMS[role][first](tmp_path / "first")
    FORMS[role][form](tmp_path / "given")
    assert READ[role](tmp_path / "given") == READ[role](tmp_path / "first")


def test_ties_fall_by_the_bytes_of_ids(files: dict[str, Path]) -> None:
    assert read_run(files["run"]).table["doc_id"].to_list() == ["d4", "d2", "d1", "d1", "d3", "d2"]


RANKED = {query: dict(zip(of, range(-1, -1 - len(of), -1), strict=True)) for query, of in RUN.items()}
NUMBERED = "r: the answers name no queries: they are numbered, 1 the first"
IN_ORDER = "r: the answers name no queries: they are taken as the queries', in their order"
UNSCORED = "r: there are no scores: score = −rank"


@pytest.mark.parametrize("rank", ["rank", "position"])
def test_ranks_alone(rank: str, tmp_path: Path) -> None:
    rows = [(q, d, n) for q, of in RUN.items() for n, d in enumerate(of, 1)]
    frame = pl.DataFrame(rows, ["query", "_id", rank], orient="row")
    frame.sample(fraction=1, shuffle=True, seed=1).write_csv(tmp_path / "r")
    for run in (read_run(tmp_path / "r"), evenrank.Run.from_table(frame, "r")):
        assert run.to_dict() == RANKED
        assert run.notes == (UNSCORED,)
    with pytest.raises(InputError, match="expected a finite number as rank, found 'x'"):
        read_run(written({"x": b"query,_id,rank\nq,d,x\n"}, "")[".x"](tmp_path / "x") and tmp_path / "x")


def test_answers_without_names_of_queries(tmp_path: Path, files: dict[str, Path], evenrank: Any) -> None:
    """They are of the queries in their order, else numbered; what is sorted by a field has no scores."""
    unnamed = answers(RUN, False)
    for of in unnamed[0]["hits"]["hits"]:
        of["_score"] = None
    (tmp_path / "r").write_text(json.dumps({"took": 1, "responses": unnamed}))
    (tmp_path / "q.tsv").write_text("q2\twho\nq1\tshe\n")
    assert read_run(tmp_path / "r").to_dict() == {"1": RANKED["q2"], "2": RANKED["q1"]}
    assert read_run(tmp_path / "r").notes == (NUMBERED, UNSCORED)
    run = read_run(tmp_path / "r", queries=tmp_path / "q.tsv")
    assert (run.to_dict(), run.notes) == (RANKED, (IN_ORDER, UNSCORED))
    command = ["fuse", f"a={tmp_path / 'r'}", f"b={files['run']}", "--weight", "1", "--out", "-"]
    assert {line.split()[0] for line in evenrank(*command).out.splitlines()} == {"1", "2", "q1", "q2"}
    measured = ["--qrels", files["qrels"], "--measures", "RR@3", "--json", "-"]
    done = evenrank("audit", f"r={tmp_path / 'r'}", "--queries", tmp_path / "q.tsv", *measured)
    assert json.loads(done.out)["runs"]["r"]["measures"]["RR@3"]["n"] == 2, done.err
    done = evenrank("audit", f"r={tmp_path / 'r'}", "--queries", files["queries"], *measured)
    assert done.err == f"evenrank: {tmp_path / 'r'}: expected an answer for each of the 3 queries, found 2\n"
    for part, why in (({"timed_out": True}, "it timed out"), ({"_shards": {"failed": 2}}, "2 of its shards failed")):
        with pytest.raises(EvenrankError, match=f"found a part as answer 2: {why}"):
            audit({"responses": [unnamed[0], unnamed[1] | part]}, qrels=QRELS, measures="RR@3")
    unnamed[1] = {"error": {"type": "index_not_found_exception", "reason": "no such index"}, "status": 404}
    with pytest.raises(EvenrankError, match="found an error as answer 2: 'index_not_found_exception'"):
        audit({"responses": unnamed}, qrels=QRELS, measures="RR@3")


def test_headings_as_spreadsheets_write_them(tmp_path: Path) -> None:
    (tmp_path / "judged.csv").write_text('Query;Document;Grade;Comment\nq1;d1;1;\nq2;d4;0;a "remark"\n')
    assert read_qrels(tmp_path / "judged.csv").rows() == [("q1", "d1", 1), ("q2", "d4", 0)]
    (tmp_path / "r").write_text("Query,_ID,Position\nq1,d2,2\nq1,d1,1\n")
    assert read_run(tmp_path / "r").to_dict() == {"q1": {"d1": -1, "d2": -2}}


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_ranx_0_3_21(form: str) -> None:
    """It sorts queries and documents: the same pairs, in another order than RUN's."""
    assert read_run(EXPORTS / f"ranx-0.3.21.{form}").to_dict() == RUN
    judged = read_qrels(EXPORTS / f"ranx-qrels-0.3.21.{form}")
    assert sorted(judged.rows()) == sorted(nested(QRELS, "query", "document", "grade").rows())


def test_other_names_of_columns_of_runs(tmp_path: Path, files: dict[str, Path], evenrank: Any) -> None:
    nested(RUN, "search", "page", "value").with_columns(score=pl.lit(0.0)).write_csv(tmp_path / "r.csv")
    names = "query=search,document=page,score=value"
    columns = dict(pair.split("=") for pair in names.split(","))
    assert read_run(tmp_path / "r.csv", columns=columns).table.equals(read_run(files["run"]).table)
    command = ["fuse", tmp_path / "r.csv", f"b={files['run']}", "--weight", "0.5", "--out", "-"]
    usual = evenrank("fuse", f"r={files['run']}", f"b={files['run']}", "--weight", "0.5", "--out", "-")
    assert evenrank(*command, "--run-columns", names).out == usual.out != ""
    for odd, message in (
        ("query", "--run-columns: expected query=NAME,document=NAME,score=NAME, found 'query'"),
        ("page=x", "--run-columns: expected query, document, score, rank, found 'page'"),
    ):
        assert evenrank(*command, "--run-columns", odd).err == f"evenrank: {message}\n"


HALVES = [dict(list(TEXTS.items())[:2]), dict(list(TEXTS.items())[2:])]


def test_shards_of_the_hub(home: Path, tmp_path: Path) -> None:
    """``data/train-00000-of-00002.parquet`` beside a README; judgements of BEIR as ``data/test-…``."""
    hub, whole = tmp_path / "hub", tmp_path / "whole"
    for file, write in {
        "corpus/corpus": COLLECTIONS["titled.parquet"],
        "queries/queries": ASKED["named.parquet"],
        "data/test": JUDGED["beir.parquet"],
    }.items():
        (hub / file).parent.mkdir(parents=True)
        write(hub / f"{file}-00000-of-00001.parquet")
    (hub / "README.md").write_text("# A data set\n")
    assert beir(hub).keys() == beir(home).keys()
    first, second = (read_qrels(beir(folder)["qrels"]).sort("query_id", "doc_id") for folder in (hub, home))
    assert first.equals(second)
    (whole / "data").mkdir(parents=True)
    (whole / "README.md").write_text("# A data set\n")
    for number, half in enumerate(HALVES):
        texts(half)["named.parquet"](whole / "data" / f"train-{number:05}-of-00002.parquet")
    assert pl.concat(scan_collection(whole)).rows() == list(TEXTS.items())


@pytest.mark.parametrize("form", COLLECTIONS)
def test_parts_and_partitions(form: str, tmp_path: Path) -> None:
    for year, half in enumerate(HALVES):
        folder = tmp_path / "all" / f"year=202{year}" / "lang=en"
        folder.mkdir(parents=True)
        texts(half)[form](folder / "part")
    (tmp_path / "all" / "other").mkdir()
    (tmp_path / "all" / "other" / "left-out.tsv").write_text("d9\tx\n")
    whole = pl.DataFrame({"doc_id": list(TEXTS), "text": list(TEXTS.values())})
    assert pl.concat(scan_collection(tmp_path / "all")).equals(whole)
    assert pl.concat(map_passages(tmp_path / "all", lambda batch: batch)).equals(whole)
    assert read_texts(tmp_path / "all", pl.Series(["d3"])).equals(whole[2:3])


ENDINGS = pytest.mark.parametrize("form", [".csv", ".tsv", ".jsonl", ".parquet"])


@ENDINGS
def test_other_names_of_columns(form: str, tmp_path: Path, evenrank: Any) -> None:
    """Those of a collection and of queries are named apart; several are joined, without what is empty or missing."""
    parts = {"key": ["d1", "d2"], "body": ["a ship", ""], "head": ["", "his"], "foot": ["sails", "end"], "text": "x"}
    tables(pl.DataFrame(parts), "")[form](tmp_path / "c")
    found = [batch.rows() for batch in scan_collection(TextFile(tmp_path / "c", "key", "head,body,foot"))]
    assert found == [[("d1", "a ship sails"), ("d2", "his end")]]
    tables(pl.DataFrame({"id": ["q1"], "ask": ["ships"], "body": ["x"]}), "")[form](tmp_path / "q")
    command = ["retrieve", tmp_path / "c", tmp_path / "q", "--id-column", "key", "--out", "-", "--quiet"]
    done = evenrank(*command, "--text-column", "head,body,foot", "--query-text-column", "ask")
    assert done.out.startswith("q1 Q0 d1 1 "), done.err
    done = evenrank(*command, "--text-column", "head,none", "--query-text-column", "ask")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "none" in done.err
    done = evenrank("audit", tmp_path / "c", "--query-text-column", "ask")
    assert done.err == "evenrank: --query-text-column needs --queries\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder in BEIR's form."""
    home = tmp_path / "set"
    (home / "qrels").mkdir(parents=True)
    COLLECTIONS["titled.jsonl"](home / "corpus.jsonl")
    ASKED["named.jsonl"](home / "queries.jsonl")
    JUDGED["beir.tsv"](home / "qrels" / "test.tsv")
    return home


def test_a_folder_of_beir(home: Path, files: dict[str, Path], tmp_path: Path, evenrank: Any) -> None:
    run, every = tmp_path / "set.run", tmp_path / "every.run"
    assert evenrank("retrieve", "--beir", home, "--out", run).status == 0
    # Those that are judged.
    assert {query for query, *_ in lines(run)} == {"q1", "q2"}
    measures = ("--measures", "nDCG@2 ARaB@2", "--json", "-")
    done = evenrank("audit", run, "--beir", home, *measures)
    apart = evenrank("audit", run, "--collection", files["collection"], "--qrels", files["qrels"], *measures)
    assert json.loads(apart.out)["runs"] == json.loads(done.out)["runs"]
    found = audit(run, **beir(home), measures="nDCG@2 ARaB@2")
    assert found.to_dict()["runs"] == json.loads(done.out)["runs"]
    # A run of more than the judged queries, and judgements of others in their place.
    assert evenrank("retrieve", files["collection"], files["queries"], "--out", every).status == 0
    assert {query for query, *_ in lines(every)} == {"q1", "q2", "q3"}
    (tmp_path / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq3\td1\t1\n")
    for given in ([], ["--qrels", tmp_path / "dev.tsv"]):
        assert evenrank("audit", every, "--beir", home, *given, *measures).status == 0
    # Judgements in parts; without any, all queries are ranked.
    whole = evenrank("audit", every, "--beir", home, *measures).out
    (home / "qrels" / "test.tsv").unlink()
    (home / "qrels" / "test").mkdir()
    for query, of in QRELS.items():
        nested({query: of}, "query-id", "corpus-id", "score").write_csv(home / "qrels" / "test" / query, separator="\t")
    done = evenrank("audit", every, "--beir", home, *measures)
    assert json.loads(done.out)["runs"] == json.loads(whole)["runs"]
    shutil.rmtree(home / "qrels")
    assert evenrank("retrieve", "--beir", home, "--out", run).status == 0
    assert run.read_bytes() == every.read_bytes()
    done = evenrank("audit", every, "--beir", home, *measures)
    message = f"evenrank: {home}: expected a folder in BEIR's form, found no qrels/test.tsv or .jsonl in it\n"
    assert (done.status, done.err) == (2, message)
    done = evenrank("score", home, "--out", run)
    message = (
        f"evenrank: {home}: expected files of one kind, found corpus and queries: a folder in BEIR's form is given"
    )
    assert (done.status, done.err) == (2, f"{message} as `beir`, or its parts by name\n")
    done = evenrank("retrieve", "--out", run)
    assert done.err == "evenrank retrieve: missing argument 'COLLECTION' (see evenrank retrieve --help)\n"


def test_runs_are_written_by_their_endings(tmp_path: Path, files: dict[str, Path], evenrank: Any) -> None:
    given = read_run(files["run"]).table
    for ending in ("", ".parquet", ".csv", ".jsonl", ".json"):
        done = evenrank(
            "fuse", f"a={files['run']}", f"b={files['run']}", "--weight", 1, "--out", tmp_path / f"r{ending}"
        )
        assert done.status == 0, done.err
        write_run(RUN, tmp_path / f"own{ending}")
        assert read_run(tmp_path / f"own{ending}").table.sort("query_id").equals(given.sort("query_id"))
        ids = ["query_id", "doc_id", "rank"]
        assert read_run(tmp_path / f"r{ending}").table.select(ids).equals(read_run(tmp_path / "r").table.select(ids))
    assert json.loads((tmp_path / "own.json").read_text()) == RUN
    assert pl.read_csv(tmp_path / "own.csv").columns == ["query_id", "doc_id", "score", "rank"]
    assert audit(tmp_path / "r.parquet", qrels=QRELS, measures="nDCG@2")["r"]["nDCG@2"].mean > 0.9
    done = evenrank("score", files["collection"], "--out", tmp_path / "s.csv")
    message = f"evenrank: {tmp_path / 's.csv'}: cannot be written: a group table is Parquet\n"
    assert (done.status, done.err) == (2, message)


def test_a_run_in_one_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.files.reading.LINE_BYTES", 20)
    text = json.dumps(RUN)
    (tmp_path / "run").write_text(text)
    assert read_run(tmp_path / "run").to_dict() == {query: dict(of) for query, of in RUN.items()}
    for form in ("gzip", "zst"):
        (tmp_path / "run").write_bytes(packed(text)[form])
        with pytest.raises(InputError, match="expected lines of at most 20 bytes"):
            read_run(tmp_path / "run")


BAD_RUNS = {
    "query_id,doc_id\nq1,d1\n": "the table has no column score (its columns are query_id, doc_id)",
    "query_id,doc_id,score\nq1,d1,1\nq1,d1,2\n": "the document 'd1' appears twice for the query 'q1'",
    '{"q1": {"d1": 1, "d1": 2}}': "the name 'd1' appears twice in an object",
    '{"q1": {"d1": [1]}}': "expected a finite number as score, found [1]",
    "query-id\tcorpus-id\tscore\nq1\td1\t1\n": "expected a run, found BEIR's judgements (query-id, corpus-id, score)",
    json.dumps({"mteb_model_meta": {}, **{part: {"test": RUN} for part in ("en", "de")}}): "expected predictions of one"
    " subset and split, found en/test, de/test",
    '[{"query_id": "q1"}]': "line 1: expected a TREC run, CSV, TSV, JSONL or Parquet with named columns, or a"
    " JSON object, found a list: ",
}
BAD_TEXTS = {
    "id,text\n,a\n": "line 2: expected an id in the column id, found none",
    "query-id\tcorpus-id\tscore\nq1\td1\t1\n": "line 1: expected a column of doc_id, docno, docid, corpus-id, pid,",
}


def test_csv_is_not_written_under_another_name(files: dict[str, Path], tmp_path: Path, evenrank: Any) -> None:
    message = f"evenrank: {tmp_path / 'todo.parquet'}: cannot be written: expected a name that ends in .csv\n"
    for line in ("audit {run} --labels x --per-query", "labels sample {run} --collection c --out"):
        done = evenrank(*line.format(**files).split(), tmp_path / "todo.parquet")
        assert (done.status, done.err) == (2, message)


@pytest.mark.parametrize("text", [*BAD_RUNS, *BAD_TEXTS], ids=lambda text: repr(text)[:24])
def test_bad_forms_are_one_line(text: str, files: dict[str, Path], tmp_path: Path, evenrank: Any) -> None:
    path = tmp_path / "bad"
    path.write_text(text)
    for messages, line in (
        (BAD_RUNS, f"audit {path} --qrels {files['qrels']} --measures nDCG@2"),
        (BAD_TEXTS, f"score {path} --out {tmp_path / 'out'}"),
    ):
        if text in messages:
            done = evenrank(*line.split())
            assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
            assert messages[text] in done.err
            assert str(path) in done.err


def test_damaged_zst(tmp_path: Path) -> None:
    whole = packed("q1 Q0 d1 1 1.0 t\n")["zst"]
    for data in (whole[:-3], whole[:9] + b"\xff" + whole[10:]):
        (tmp_path / "run").write_bytes(data)
        with pytest.raises(InputError):
            read_run(tmp_path / "run")


def raising(error: BaseException, log: str = "") -> Any:
    def fail(*_: object, **__: object) -> None:
        if log:
            logging.getLogger(log).error("a traceback")
        raise error

    return fail


ABSENT = FileNotFoundError("http://h/x")
ABSENT.__cause__ = type("Answer", (RuntimeError,), {"status": 404})("404, message='Not Found', url='http://h/x'")
EXTRA = 'reading or writing a URL needs the extra [remote]: pip install "evenrank[remote]"'


def test_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    with memory.open("/c/year=2025/a.tsv", "wb") as stream:
        stream.write(b"d1\tshe\n")
    assert pl.concat(scan_collection("memory://c")).rows() == [("d1", "she")]
    for fail, message in (
        (raising(RuntimeError("(Max) no route\nand much more " * 50)), r"cannot be reached: \(Max\) no route$"),
        (raising(OSError(-2, "Name not known"), "gcsfs"), r"cannot be read: .*Name not known$"),
        (raising(ABSENT), "no such file$"),
    ):
        monkeypatch.setattr(type(memory), "_open", fail)
        with pytest.raises(InputError, match=rf"^memory://c/x: {message}"):
            list(scan_collection("memory://c/x"))
    assert not caplog.records
    monkeypatch.undo()
    monkeypatch.setattr("fsspec.core.url_to_fs", raising(ImportError("Install s3fs")))
    with pytest.raises(EvenrankError, match=f"^{re.escape(f's3://bucket/c.tsv: {EXTRA}')}$"):
        list(scan_collection("s3://bucket/c.tsv"))


def test_what_is_secret_in_addresses_is_not_shown(files: dict[str, Path], tmp_path: Path, evenrank: Any) -> None:
    """The values of a query, a name and a password: not in messages, names, commands or inputs."""
    fsspec = pytest.importorskip("fsspec")
    for name in ("run", "collection"):
        with fsspec.filesystem("memory").open(f"/h/{name}?X-Sig=SIG/NED&v=1", "wb") as stream:
            stream.write(files[name].read_bytes())
    of = "?X-Sig=SIG/NED&v=1"
    out = [tmp_path / "r.json", tmp_path / "r.csv", tmp_path / "r.html"]
    command = ["audit", f"memory://h/run{of}", "--collection", f"memory://h/collection{of}", "--measures", "ARaB@2"]
    done = evenrank(*command, "--json", out[0], "--per-query", out[1], "--report", out[2])
    assert done.status == 0, done.err
    written = json.loads(out[0].read_text())["provenance"]
    assert [one["path"] for one in written["files"]][:2] == [
        f"memory://h/{n}?X-Sig=…&v=…" for n in ("run", "collection")
    ]
    assert "memory://h/collection?X-Sig=…&v=…" in written["command"]
    for text in (done.out, done.err, *(path.read_text() for path in out)):
        assert "SIG/NED" not in text
    for path, shown in (
        (f"memory://h/no{of}", "memory://h/no?X-Sig=…&v=…"),
        ("memory://me:NED@h/no", "memory://…@h/no"),
    ):
        done = evenrank("score", path, "--out", tmp_path / "s.parquet")
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert done.err.startswith(f"evenrank: {shown}: ")
