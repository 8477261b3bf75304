"""Labels as a group table: every form, weights, neutrality and poles; and the one group that a document is of."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank.files import EvenrankError
from evenrank.groups import GroupSource, GroupTable, as_labels
from evenrank.groups.table import largest_groups
from given_data import pandas_frame
from slow_groups import slow_neutrality

Weights = dict[str, dict[str, float]]
KNOWN: Weights = {
    "a": {"m": 1.0, "f": 0.0},
    "b": {"m": 0.5, "f": 0.5},
    "c": {"m": 0.0, "f": 0.0},
    "d": {"m": 0, "f": 1},
}
"""In every form below; `u` and `v` are unknown."""


def weights(table: GroupTable) -> Weights:
    return {row["doc_id"]: {g: row[f"count_{g}"] for g in table.groups} for row in table.table.to_dicts()}


def written(folder: Path, content: str | bytes | pl.DataFrame, name: str = "labels") -> Path:
    path = folder / name
    if isinstance(content, pl.DataFrame):
        content.write_parquet(path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


LONG = "doc_id,group\na,m\nb,m\nb,f\nu,\nc,none\nd,f\nd,f\n"
WIDE = "doc_id,m,f\na,1,0\nb,0.5,.5\nu,,\nc,0,0\nd, 0 ,1e0\n"
ROWS: list[dict[str, Any]] = [
    *({"doc_id": doc, "group": group} for doc, group in ("am", "bm", "bf")),
    {"doc_id": "u", "group": None},
    {"doc_id": "c", "group": "none"},
    {"doc_id": "v"},
    *({"doc_id": "d", "group": group} for group in ("f", " f", "")),
]
WEIGHTED = [{"doc_id": doc, **of} for doc, of in KNOWN.items()] + [{"doc_id": "u"}, {"doc_id": "v", "m": None}]
LONG_FRAME, WIDE_FRAME = pl.read_csv(LONG.encode()), pl.read_csv(WIDE.encode())
FILES: dict[str, str | bytes | pl.DataFrame] = {
    "long, gzip": gzip.compress(LONG.encode()),
    "long, BOM, CRLF, blank lines": "\ufeff" + LONG.replace("\n", "\r\n\r\n"),
    "long, spaces": LONG.replace(",", " , ").replace(" ,", ",").replace("doc_id", " doc_id "),
    "long, another name": LONG.replace("doc_id", "docno").replace("group", "gender"),
    "long, one line for several columns": "docid,title,group\na,x,m\nb,y,m\nb,y,f\nu,,\nc,z,none\nd,w,f\n",
    "wide, a column of no group": "m,f,none,pid\n1,0,0,a\n.5,.5,0,b\n,,,u\n0,0,1,c\n0,1,0,d\n",
    "JSONL": "".join(json.dumps(row) + "\n" for row in ROWS),
    "JSONL, weights": "".join(json.dumps(row) + "\n" for row in WEIGHTED),
    "Parquet": LONG_FRAME,
    "Parquet of categories": LONG_FRAME.with_columns(pl.col("group").cast(pl.Categorical)),
    "Parquet of weights": pl.read_csv(WIDE.encode(), schema_overrides={"f": pl.Float32}),
}
IN_MEMORY: dict[str, Any] = {
    "groups": {"a": "m", "b": ["m", "f"], "c": "none", "d": ("f",), "u": None, "v": []},
    "weights": {"a": {"m": 1}, "b": {"m": 0.5, "f": 0.5}, "c": {"none": 1}, "d": {"f": 1.0}, "u": None, "v": {}},
    "long frame": LONG_FRAME,
    "wide lazy frame": WIDE_FRAME.lazy(),
    "wide Arrow table": WIDE_FRAME.to_arrow(),
}


@pytest.mark.parametrize("form", [*FILES, *IN_MEMORY])
def test_forms(form: str, tmp_path: Path) -> None:
    found = as_labels(written(tmp_path, FILES[form]) if form in FILES else IN_MEMORY[form], neutral=["none"])
    assert weights(found) == KNOWN
    assert dict(zip("abcd", found.table["neutrality"], strict=True)) == {"a": 0.0, "b": 1.0, "c": 1.0, "d": 0.0}
    assert (found.poles, found.labelled, found.settings["threshold"]) == (("m", "f"), True, 0)
    assert (found.settings["neutral"], "poles_assumed" in found.settings) == (["none"], False)
    name, source = ("labels", f"the labels {tmp_path / 'labels'}") if form in FILES else ("in memory", "the labels")
    assert (found.settings["labels"], found.source) == (name, source)
    # Labels of a table are taken as they are, but for the poles.
    assert as_labels(found) is found
    assert as_labels(found, poles="f,m").poles == ("f", "m")


NAN = float("nan")


@pytest.mark.parametrize(
    "columns",
    [
        {"m": [1, NAN, 0], "f": [0, NAN, 1]},
        {"m": [True, None, False], "f": [False, None, True]},
        {"group": ["m", NAN, "f"]},
    ],
)
def test_what_is_missing_in_pandas_is_unknown(columns: dict[str, list[Any]]) -> None:
    found = as_labels(pandas_frame({"doc_id": ["a", "u", "d"], **columns}))
    assert weights(found) == {doc: KNOWN[doc] for doc in "ad"}


def test_only_what_is_asked_for_is_looked_at(tmp_path: Path) -> None:
    asked = [pl.Series(["1", "3"]), pl.Series(["2", "2"])]
    # Groups are those of the whole file; integers are the ids of runs.
    rows = '{"id": 1, "g": "m"}\n{"id": "2", "g": "f"}\n{"id": 4, "g": "x"}\n'
    for given_ in ({1: "m", 2: "f", 4: "x"}, written(tmp_path, rows)):
        found = as_labels(given_, asked)
        assert weights(found) == {"1": {"f": 0, "m": 1, "x": 0}, "2": {"f": 1, "m": 0, "x": 0}}
        assert found.settings["shares"] == [1 / 3] * 3
    # A mistake in what nobody asks for is no concern of theirs.
    wide = written(tmp_path, "doc_id,m,f\na,1,0\nb,3,-1\n")
    assert as_labels(wide, [pl.Series(["a"])]).table.height == 1


@pytest.mark.parametrize(
    ("groups", "poles", "assumed"),
    [
        ("Female male", ("male", "Female"), False),
        ("m f male female", ("m", "f"), False),
        ("z b", ("z", "b"), True),
        ("a b c", None, False),
    ],
)
def test_poles(groups: str, poles: tuple[str, str] | None, assumed: bool) -> None:
    found = as_labels({str(i): name for i, name in enumerate(groups.split())})
    assert found.poles == poles
    assert found.settings.get("poles_assumed", False) is assumed
    assert found.settings["poles"] == (list(poles) if poles else None)


def test_magnitudes_of_labels() -> None:
    table = as_labels({"a": {"m": 0.75, "f": 0.25}, "b": {"f": 0.2, "m": 0}, "c": {"m": 0, "f": 0}})
    assert table.usual_kind == "count"
    assert table.magnitude("count", "m").tolist() == table.weight("m").tolist() == [0.75, 0, 0]
    assert table.magnitude("bool", "f").tolist() == [1, 1, 0]
    assert table.signed_magnitude("count").tolist() == [0.5, -0.2, 0]
    assert table.signed_magnitude("bool").tolist() == [0, -1, 0]
    for kind in ("tf", "tf_words", "tf_literal"):
        with pytest.raises(EvenrankError, match=rf"^magnitude {kind}: labels have no words to take the logarithm of"):
            table.magnitude(kind, "m")  # type: ignore[arg-type]


def test_the_weight_of_words() -> None:
    columns = pl.DataFrame(
        {"doc_id": [*"abcd"], "count_m": [3, 1, 0, 1], "count_f": [1, 0, 0, 1], "neutrality": [0.0] * 4}
    )
    table = GroupTable.of(columns)
    assert (table.labelled, table.usual_kind) == (False, "tf")
    # With one word alone, or none, a document is neutral, and of no group.
    assert table.weight("m").tolist() == [0.75, 0, 0, 0.5]
    assert table.weight("f").tolist() == [0.25, 0, 0, 0.5]
    assert GroupTable.of(columns, {"threshold": 0}).weight("m").tolist() == [0.75, 1, 0, 0.5]
    assert GroupTable.of(columns, {"threshold": 2}).weight("m").tolist() == [0.75, 0, 0, 0]


PARTS = st.one_of(
    st.sampled_from([[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [1 / 3] * 3, [0, 0, 0], [0.2, 0, 0]]),
    st.lists(st.floats(0, 1 / 3), min_size=3, max_size=3),
)


@given(st.lists(PARTS, min_size=1, max_size=6), st.integers(2, 3))
@example([[1e-12, 0, 0]], 2)
@example([[5e-324, 5e-324, 0]], 3)
def test_neutrality(parts: list[list[float]], count: int) -> None:
    groups = "mfx"[:count]
    found = as_labels({str(i): dict(zip(groups, of, strict=False)) for i, of in enumerate(parts)})
    slow = [slow_neutrality(list(of[:count]), (1 / count,) * count, 0) for of in parts]
    assert found.table["neutrality"].to_list() == pytest.approx(slow, abs=1e-9)
    assert found.table["neutrality"].is_between(0, 1).all()


MEMBERS = st.dictionaries(
    st.text("abé1,\" '", min_size=1, max_size=3).filter(lambda text: text.strip() == text),
    st.lists(st.sampled_from("mfx"), max_size=4) | st.just(["none"]) | st.none(),
    max_size=8,
)


@given(MEMBERS, st.permutations(range(40)), st.sampled_from([",", "\t"]))
def test_long_and_wide_are_the_same(
    place: Path, members: dict[str, list[str] | None], order: list[int], separator: str
) -> None:
    members = {**members, "last": ["m"], "least": ["f", "x"]}
    lines = [(doc, group) for doc, groups in members.items() for group in (groups or [""])]
    lines = [lines[i] for i in order if i < len(lines)]
    wide = {doc: [float(g in groups) / len({*groups}) for g in "mfx"] for doc, groups in members.items() if groups}
    frame = pl.DataFrame(lines, ["doc_id", "group"], orient="row")
    # In TSV, quotes are as any other character.
    style = "never" if separator == "\t" else "necessary"
    frame.write_csv(place / "long", separator=separator, quote_style=style)
    rows = [(doc, *of) for doc, of in wide.items()] + [(doc, None, None, None) for doc, of in members.items() if not of]
    schema = {"doc_id": pl.String, "m": pl.Float64, "f": pl.Float64, "x": pl.Float64}
    pl.DataFrame(rows, schema, orient="row").write_csv(place / "wide", separator=separator, quote_style=style)
    want = {doc: dict(zip("mfx", of, strict=True)) for doc, of in wide.items()}
    tables = [
        as_labels(place / "long", neutral=["none"]),
        as_labels(place / "wide"),
        as_labels(members, neutral=["none"]),
        as_labels({doc: want.get(doc) for doc in members}),
        as_labels(frame, neutral=["none"]),
    ]
    first = tables[0].table.sort("doc_id")["neutrality"].to_list()
    for table in tables:
        assert weights(table) == want
        assert table.poles == ("m", "f")
        assert table.table.sort("doc_id")["neutrality"].to_list() == pytest.approx(first, abs=1e-12)


BAD: list[tuple[Any, str]] = [
    (5, "expected a path, {document: group} or a table with doc_id and group, found 5"),
    (pl.Series([1]), "expected a table, found a Series, which is a single column"),
    ({}, "contains no rows"),
    ({"a": "m"}, "expected at least two groups, found m (`neutral` names the values that mean no group)"),
    ({"a": 5}, "expected a group, a list of groups or {group: weight}, found '5'"),
    ({"a": "m", "b": ["m", 1]}, "expected a group, a list of groups or {group: weight}, found \"['m', 1]\""),
    ({"\ud800": "m"}, "expected a string or a whole number as doc_id, found '\\ud800'"),
    ({True: "m"}, "expected a string or a whole number as doc_id, found True"),
    ({"": "m", "b": "f"}, "row 1: expected a doc_id, found none"),
    ({"a": {"m": 1}, "b": "m"}, "expected {group: weight} for every document, found 'm'"),
    ({"a": {1: 1.0}}, "expected names of groups, found '1'"),
    ({"a": {"doc_id": 1}}, "expected names of groups, found 'doc_id'"),
    ({"a": {"m": "0,75", "f": "0,25"}}, "row 1: expected a weight of m, found '0,75' (the decimal sign is a point)"),
    ({"a": {"m": 1, "N/A": 0}}, "weights of 'N/A' are of no group: leave the column out, or name it with `neutral`"),
    ({"a": {"m": 1, "f": -0.5}}, "row 1: expected a weight of 0 or more for f, found -0.5"),
    ({"a": {"m": None, "f": None}}, "knows none of the documents: all their values are empty"),
    ({"a": "rest", "b": "m"}, "no group may be named 'rest': it stands for all the others"),
    ({"a": "Female", "b": "female"}, "the groups 'Female' and 'female' differ only in case"),
    *((pl.DataFrame(columns), message) for columns, message in [
        ({"doc_id": ["a"]}, "expected a column of groups beside doc_id, found none"),
        ({"group": ["a"]}, "expected a column doc_id, found the columns group"),
        ({"doc_id": ["a", None], "m": [1, 0], "f": [0, 1]}, "expected a string or a whole number as doc_id"),
        ({"doc_id": ["a", "a"], "m": [1, 0], "f": [0, 1]}, "row 2: the document 'a' is there twice, with other weights"
         " in row 1"),
        ({"doc_id": ["a"], "group": ["m"], "weight": [0.5]}, "weights are in a column for each group, found"),
    ]),
    *((pl.DataFrame({"doc_id": ["a"], "g": [value]}), "expected groups in the column g, found numbers or flags: weights"
       " need a column for each group (if they name groups, `group_column='g'` says so)")
      for value in (0.5, 1, True, "0.25", "False")),
    *((pl.DataFrame({"doc_id": ["a"], "g": kind}), f"expected names of groups in the column g, found {name}")
      for kind, name in [
          ([{"x": 1}], "Struct"), ([["m", "f"]], "List(String)"), ([[["m"]]], "List(List)"), ([b"\xff"], "Binary"),
          (pl.Series([object()], dtype=pl.Object), "mixed or nested values"),
      ]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_what_is_refused(case: int) -> None:
    given_, message = BAD[case]
    with pytest.raises(EvenrankError) as error:
        as_labels(given_, what="`mine`")
    assert str(error.value).startswith(f"`mine`: {message}")
    assert "\n" not in str(error.value)


def test_neutral_values() -> None:
    with pytest.raises(EvenrankError) as error:
        as_labels({"a": ["n", "m"], "b": "f"}, neutral="n")
    assert str(error.value) == "`labels`: row 2: the document 'a' is in the group 'm', but neutral ('n') in row 1"
    # One word is one value, not its letters.
    found = as_labels({"a": "n", "b": "f", "c": "none", "d": "m"}, neutral="none")
    assert found.groups == ("f", "m", "n")
    assert weights(found)["c"] == {"f": 0, "m": 0, "n": 0}
    # A value that nobody has is noted.
    assert "neutral_absent" not in found.settings
    labels = as_labels({"a": "m", "b": "f", "c": "N"}, neutral=["n", "N"])
    assert (labels.groups, labels.settings["neutral_absent"]) == (("f", "m"), ["n"])


def test_group_column(tmp_path: Path) -> None:
    path = written(tmp_path, "doc_id,title,gender,age\na,x,m,old\nb,y,f,young\nc,z,,old\n")
    assert weights(as_labels(path, group_column="gender")) == {"a": {"f": 0, "m": 1}, "b": {"f": 1, "m": 0}}
    assert as_labels(path, group_column="age").poles == ("old", "young")
    # Numbers too can be names of groups.
    assert as_labels(pl.DataFrame({"doc_id": [1, 2], "a": [0, 1], "b": [1, 1]}), group_column="a").groups == ("0", "1")


# Gender, disability; nothing is known of the disability of c, d does not say its gender, e is in two groups.
TWO = "doc_id,gender,disabled\na,f,yes\nb,m, no\nc,f,N/A\nd,none,no\ne,f,no\ne,m,no\n"


def test_combinations_of_columns(tmp_path: Path) -> None:
    options: Any = {"group_column": ["gender", "disabled"], "intersect": True, "neutral": "none"}
    path = written(tmp_path, TWO)
    table = as_labels(path, **options)
    assert table.groups == ("f × no", "f × yes", "m × no")
    found = {doc: {g: weight for g, weight in of.items() if weight} for doc, of in weights(table).items()}
    assert found == {"a": {"f × yes": 1}, "b": {"m × no": 1}, "d": {}, "e": {"f × no": 0.5, "m × no": 0.5}}
    source = GroupSource(labels=path, **options)
    assert source.known().attribute == table.attribute == "gender × disabled"
    margins = source.margins([pl.Series(["a", "b", "c", "d", "e"])])
    assert {name: one.groups for name, one in margins.items()} == {"gender": ("f", "m"), "disabled": ("no", "yes")}
    # What is known of c is in the table of its gender alone.
    assert set(weights(margins["gender"])) == {"a", "b", "c", "d", "e"}
    assert "c" not in weights(margins["disabled"])


@pytest.mark.parametrize(
    ("columns", "intersect", "message"),
    [
        (["gender", "disabled"], False, "`group_column`: expected one, found gender and disabled: ask for one at"),
        ("gender", True, "`intersect`: expected two columns or more as `group_column`"),
        (["gender", "age"], True, "there is no column 'age' (`group_column`)"),
    ],
)
def test_columns_that_cannot_be_combined(tmp_path: Path, columns: Any, intersect: bool, message: str) -> None:
    options: Any = {"labels": written(tmp_path, TWO), "group_column": columns, "intersect": intersect}
    with pytest.raises(EvenrankError, match=re.escape(message)):
        GroupSource(**options).known()


def test_the_largest_group() -> None:
    # A half twice, of which one is a little larger than the other by rounding.
    table = pl.DataFrame({"doc_id": ["d"], "count_a": [1 / 3], "count_b": [1 / 3 + 1e-16], "neutrality": [1.0]})
    assert largest_groups(GroupTable.of(table, {"labels": "x"})).tolist() == [-1]
    # At most one group word is none (the threshold).
    columns = {"doc_id": [*"abc"], "count_f": [2, 0, 1], "count_m": [1, 1, 2], "neutrality": [1.0] * 3}
    assert largest_groups(GroupTable.of(pl.DataFrame(columns))).tolist() == [0, -1, 1]
