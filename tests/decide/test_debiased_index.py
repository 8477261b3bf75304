"""Debiasing an index: what probes recover where the group is linear and where it is not, and what rankings become."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from evenrank import build_index, debias_index, open_index
from evenrank.decide.debiased_index import DebiasedIndex
from evenrank.files import EvenrankError
from planted_encoders import planted_encoder

COUNT = 300


def points(crossed: bool) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Vectors of words, and their groups: by the sign of the first number, or of the product of the first two."""
    rows = np.random.default_rng(0).normal(size=(COUNT, 4))
    sign = rows[:, 0] * rows[:, 1] if crossed else rows[:, 0]
    words = [f"w{row}" for row in range(COUNT)]
    labels = {word: "ab"[int(value > 0)] for word, value in zip(words, sign, strict=True)}
    return {word: row.tolist() for word, row in zip(words, rows, strict=True)}, labels


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of each, and one of texts with words of groups."""
    folder = tmp_path_factory.mktemp("planted")
    for name in ("linear", "crossed"):
        vectors, _ = points(name == "crossed")
        planted_encoder(folder / name, vectors)
        build_index({word: word for word in vectors}, out=folder / f"{name}-index", model=folder / name, quiet=True)
    words = {"he": [1, 0, 0], "she": [-1, 0, 0], "man": [1, 0, 0.1], "woman": [-1, 0, 0.1], "nurse": [-0.5, 1, 0]}
    words |= {f"w{row}": [0, np.cos(row), np.sin(row)] for row in range(12)}
    planted_encoder(folder / "texts", words)
    build_index(TEXTS, out=folder / "texts-index", model=folder / "texts", quiet=True)
    return folder


PAIRS = {"m": "he he man man", "f": "she she woman woman"}
TEXTS = {f"{group}{row}": f"{pair} w{row}" for row in range(12) for group, pair in PAIRS.items()} | {"n": "nurse w1"}
QUERIES = {f"q{row}": f"nurse w{row}" for row in range(12)}
QRELS = {f"q{row}": {f"f{row}": 1, f"m{row}": 1} for row in range(12)}


def test_what_is_linear_is_erased(home: Path, tmp_path: Path) -> None:
    found = debias_index(home / "linear-index", out=tmp_path / "new", labels=points(False)[1], quiet=True)
    probes = found.probes
    assert probes.before is not None
    assert probes.after is not None
    assert probes.unseen
    assert probes.before.linear.ci95[0] > 0.9
    assert not probes.after.best.shown
    assert sum(probes.groups.values()) == COUNT
    assert found.gap[1] < 1e-3 < 1 < found.gap[0]
    answer = found.findings[0]
    assert (answer.key, answer.level, answer.place) == ("not_shown", "no difference shown", "answer")
    assert answer.estimate == probes.after.best
    assert re.search(r"; \.[56]\d would have been noticed, and another probe may succeed", answer.text)
    nothing = replace(found, probes=replace(probes, before=probes.after))
    assert nothing.findings[0].key == "nothing_there"


def test_what_is_not_linear_is_recovered(home: Path, tmp_path: Path) -> None:
    found = debias_index(home / "crossed-index", out=tmp_path / "new", labels=points(True)[1], quiet=True)
    probes = found.probes
    assert probes.before is not None
    assert probes.after is not None
    assert probes.before.linear.accuracy < 0.6
    # LEACE takes one of the four numbers, and with it a part of the product.
    assert probes.before.kernel.accuracy >= 0.7
    assert probes.after.kernel.accuracy >= 0.6
    assert probes.before.kernel.shown
    assert probes.after.kernel.shown
    answer = found.findings[0]
    assert (answer.key, answer.level, answer.estimate) == ("left_over", "shown", probes.after.kernel)
    values = found.to_dict()["probes"]["after"]["kernel"]  # type: ignore[index]
    assert (values["verdict"], values["chance"], values["unit"], values["n"]) == ("shown", 0.5, "passages", COUNT)


def test_a_report_with_rankings(home: Path, tmp_path: Path) -> None:
    def made(name: str, **settings: object) -> DebiasedIndex:
        texts = {"collection": TEXTS, "queries": QUERIES, "depth": 10, "quiet": True}
        return debias_index(home / "texts-index", out=tmp_path / name, **texts, **settings)  # type: ignore[arg-type]

    found = made("new", qrels=QRELS)
    rankings = found.rankings
    assert rankings is not None
    assert list(rankings.figures) == ["untouched", "debiased"]
    before, after = (rankings.figures[name]["ARaB@10"] for name in ("untouched", "debiased"))
    assert before.against is None
    # "nurse" is on the side of "she": her passages come first, until that is erased.
    assert before.mean is not None
    assert after.mean is not None
    assert before.mean < -1
    assert abs(after.mean) < abs(before.mean) / 3
    assert after.against is not None
    assert after.against.mean == pytest.approx(after.mean - before.mean)
    assert after.against.n == 12
    assert before.added is not None
    page = found.table(full=True)
    for text in ("What a probe recovers", "Rankings", "Against the untouched index", "12 of f, 12 of m", "nDCG@10"):
        assert text in page
    said = {one.text.split()[0]: one for one in found.findings if one.key in ("utility", "bias", "bias_further")}
    assert said["ARaB@10"].key == "bias"
    assert said["ARaB@10"].estimate == after.against
    assert said["nDCG@10"].key == "utility"
    values = json.loads(found.to_json())
    assert values["rankings"]["runs"]["debiased"]["nDCG@10"]["mean"] is not None
    assert values["erasure"]["source"]["path"] == str(home / "texts-index")
    assert [one["text"] for one in values["findings"]] == [one.text for one in found.findings]
    assert "<title>" in found.html()
    # Judgements of queries that are not ranked count for nothing.
    more = made("more", qrels={**QRELS, "another": {"n": 1}})
    assert more.rankings is not None
    assert more.rankings.figures["untouched"]["nDCG@10"] == rankings.figures["untouched"]["nDCG@10"]
    with pytest.raises(EvenrankError, match="the qrels judge none of the queries"):
        made("none", qrels={"another": {"n": 1}})
    # Without judgements.
    bare = made("bare")
    assert bare.rankings is not None
    assert bare.rankings.figures["debiased"]["ARaB@10"] == after
    (unknown,) = (one for one in bare.findings if one.place == "warning")
    assert (unknown.key, unknown.level) == ("unknown", "cannot be told")


def test_scores_and_hard(home: Path, tmp_path: Path) -> None:
    """Groups from a group table, directions from a lexicon."""
    frame = pl.DataFrame(
        {
            "doc_id": list(TEXTS),
            "count_f": [4 if name[0] == "f" else 0 for name in TEXTS],
            "count_m": [4 if name[0] == "m" else 0 for name in TEXTS],
            "neutrality": [1.0 if name == "n" else 0.0 for name in TEXTS],
        }
    )
    found = debias_index(
        home / "texts-index", out=tmp_path / "new", scores=frame, method="hard", lexicon="gender-en", quiet=True
    )
    assert found.notes[0] == "Passages: 12 of f, 12 of m, 1 of none or several alike, 0 unknown."
    assert found.gap[1] < found.gap[0] / 5
    assert (found.erasure["method"], found.probes.unseen) == ("hard", False)
    assert open_index(tmp_path / "new").search(QUERIES, 3, quiet=True).table.height == 36


def test_too_few_passages(home: Path, tmp_path: Path) -> None:
    """Nothing to probe with: nine of one group; the others are of no known one."""
    labels = {f"w{row}": "ab"[row < 9] for row in range(30)}
    found = debias_index(home / "linear-index", out=tmp_path / "new", labels=labels, groups="b", quiet=True)
    assert found.probes.before is None
    answer = found.findings[0]
    assert (answer.key, answer.level, answer.place) == ("too_few", "cannot be told", "answer")
    assert "270 passages are of no known group: erased, but not fitted on." in found.notes
    assert "What a probe recovers" not in found.table()
    json.loads(found.to_json())


def test_labels_of_few_passages_are_left_out_unless_named(home: Path, tmp_path: Path) -> None:
    """A slip of one passage is no group: neither erased as one, nor in the distance between groups."""
    vectors, labels = points(False)
    slip = max(vectors, key=lambda word: vectors[word][0])
    labels[slip] = "botrh"
    found = debias_index(home / "linear-index", out=tmp_path / "new", labels=labels, quiet=True)
    without = {word: group for word, group in labels.items() if word != slip}
    own = debias_index(home / "linear-index", out=tmp_path / "own", labels=without, quiet=True)
    assert (found.gap, found.erasure["directions"]) == (own.gap, 1)
    assert found.probes == own.probes
    assert found.notes[1].startswith("Left out, as fewer than 20 passages may be a slip: botrh (1 passage).")
    assert found.erasure["groups"]["left_out"] == {"botrh": 1}  # type: ignore[index]
    named = debias_index(home / "linear-index", out=tmp_path / "named", labels=labels, groups=["botrh"], quiet=True)
    assert named.erasure["directions"] == 2
    assert named.gap[0] > found.gap[0]
    assert not any("Left out" in note for note in named.notes)
    of_poles = debias_index(home / "linear-index", out=tmp_path / "poles", labels=labels, poles="a,botrh", quiet=True)
    assert of_poles.erasure["directions"] == 2


def test_a_call_that_fails_leaves_no_index(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is interrupted while it ranks; an empty folder that was there stays."""

    def debiased() -> DebiasedIndex:
        return debias_index(
            home / "texts-index", out=tmp_path / "new", collection=TEXTS, queries=QUERIES, depth=10, quiet=True
        )

    def interrupted(*_: object) -> None:
        assert (tmp_path / "new" / "index.json").exists()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("evenrank.decide.debiased_index.measure_rankings", interrupted)
        with pytest.raises(KeyboardInterrupt):
            debiased()
        assert not (tmp_path / "new").exists()
        (tmp_path / "new").mkdir()
        with pytest.raises(KeyboardInterrupt):
            debiased()
        assert list((tmp_path / "new").iterdir()) == []
    assert debiased().rankings is not None


def refused(call: Callable[..., object], *arguments: object, **settings: object) -> str:
    with pytest.raises(EvenrankError) as caught:
        call(*arguments, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_refusals(home: Path, tmp_path: Path) -> None:
    labels = {"w1": "a", "w2": "b"}

    def message(**settings: object) -> str:
        found = refused(debias_index, home / "linear-index", out=tmp_path / "new", quiet=True, **settings)
        assert not (tmp_path / "new").exists()
        return found

    assert message() == "which groups are the documents of? give `scores`, `labels` or `collection`"
    assert message(labels=labels, lexicon="gender-en") == (
        "`lexicon`: groups are known from `labels` or `scores`, and only hard needs its pairs"
    )
    assert message(labels=labels, tokens="word").startswith("`labels` or `tokens`: ")
    assert message(labels=labels, method="hard").startswith("`method='hard'` needs `lexicon` with pairs")
    assert message(labels=labels) == (
        "`labels`: expected two groups of 20 passages or more, found 1 of a, 1 of b (`groups` names those that are"
        " erased all the same)"
    )
    assert message(labels=labels, groups="c") == "`groups`: no group 'c' (the groups are a, b)"
    assert message(collection=TEXTS, groups="f") == "`groups` are those of `labels`: it needs them"
    assert message(labels=labels, qrels=QRELS) == "`qrels` needs `queries`"
    malformed = tmp_path / "qrels.txt"
    malformed.write_text("q1 0 w1\n")
    assert message(labels=labels, queries=QUERIES, qrels=malformed).startswith(f"{malformed}, line 1: ")
    assert message(labels=labels, queries=malformed).startswith(f"{malformed}, line 1: ")
    assert message(labels=labels, sample=0).startswith("`sample`: expected 1 or more")
    assert message(labels={"x1": "a", "x2": "b"}).startswith("`labels`: knows none of the documents")
    assert message(collection={"x1": "he and she"}).startswith("nothing is known of the groups of the documents")
    assert "is not the one that the index was made with" in message(
        labels=labels, queries=QUERIES, model=home / "texts"
    )
