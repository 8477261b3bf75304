"""The compiled loops: they run where nothing can be cached, and no number leads a write out of its array."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit

import evenrank
from evenrank.files.tokens import Alphabet, alphabet
from evenrank.groups import _counting as groups_kernel
from evenrank.groups import load_lexicon
from evenrank.groups.lexicon import matcher_of
from evenrank.search import _searching as retrieval_kernel

KERNELS = [groups_kernel, retrieval_kernel]
SOURCE = """
from evenrank.files.compiled import compiled

@compiled(nogil=True)
def twice(number):
    return 2 * number
"""


# --- where nothing can be cached -----------------------------------------------------------------------------------


def loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Numba looks a function's module up by its name.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module with a loop, and an empty cache."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "kernel_of_a_test.py"
    path.write_text(SOURCE)
    yield path
    sys.modules.pop(path.stem, None)


def test_without_a_place_for_the_cache_loops_are_compiled_in_memory(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Beside the module, and in a home, not even root can make a folder: files stand in their places.
    (kernel.parent / "__pycache__").write_text("no folder")
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "/dev/null/nowhere")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    # As numba has it, there is no way on.
    with pytest.raises(RuntimeError, match="no locator available"):
        njit(cache=True)(loaded(kernel).twice.py_func)
    assert loaded(kernel).twice(21) == 42


def test_a_loop_is_kept_and_a_damaged_cache_compiled_again(kernel: Path) -> None:
    assert loaded(kernel).twice(21) == 42
    kept = list((kernel.parent / "cache").rglob("*.nb?"))
    assert len(kept) == 2
    again = loaded(kernel).twice
    assert again(21) == 42
    assert sum(again.stats.cache_hits.values()) == 1
    for file in kept:
        file.write_bytes(b"damaged")
    damaged = loaded(kernel).twice
    assert damaged(21) == 42
    assert not damaged.stats.cache_hits


def test_a_full_disk_stops_no_loop(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    assert loaded(kernel).twice(21) == 42


# With NUMBA_DISABLE_JIT, for debuggers, loops run as they are written. Hashes wrap around.
AS_WRITTEN = """
import warnings
import polars as pl
from evenrank.groups import Scoring, load_lexicon, score_texts, _plain_counting
warnings.simplefilter('ignore', RuntimeWarning)
_plain_counting.Room.left = -1
table = pl.DataFrame({'doc_id': ['a'], 'text': ['She said that he is it. ' * 9]})
print(score_texts(table, Scoring(load_lexicon())).select('tokens', 'count_f', 'count_m').row(0))
"""


def test_without_compiling_loops_run_as_they_are_written() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    ended = subprocess.run([sys.executable, "-c", AS_WRITTEN], capture_output=True, text=True, env=environment)
    assert ended.stdout == "(54, 9, 9)\n", ended.stderr


def test_every_loop_is_declared_so() -> None:
    files = list(Path(evenrank.__file__).parent.rglob("*.py"))
    using = [file for file in files if "numba" in file.read_text(encoding="utf-8")]
    assert [file.name for file in using if "import njit" in file.read_text(encoding="utf-8")] == ["compiled.py"]
    assert {os.fspath(Path(kernel.__file__ or "")) for kernel in KERNELS} == {
        os.fspath(file) for file in files if "\n@compiled(nogil=True" in file.read_text(encoding="utf-8")
    }


# --- bounds --------------------------------------------------------------------------------------------------------


class Bounded(np.ndarray):
    """An array that takes no index from its end: what compiled code does not wrap is an error here."""

    def __getitem__(self, place: Any) -> Any:
        _within(place)
        return super().__getitem__(place)

    def __setitem__(self, place: Any, value: Any) -> None:
        _within(place)
        super().__setitem__(place, value)


def _within(place: Any) -> None:
    for part in place if isinstance(place, tuple) else (place,):
        if isinstance(part, int | np.integer) and part < 0:
            raise IndexError(f"{part} is before the array")


class _Numpy:
    """numpy whose new arrays are bounded."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        return (lambda *a, **k: found(*a, **k).view(Bounded)) if name in ("empty", "zeros", "full", "sort") else found


@pytest.fixture(scope="module")
def plain() -> Iterator[None]:
    """The loops as plain Python over bounded arrays, by module."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        for kernel in KERNELS:
            patch.setattr(kernel, "np", _Numpy(), raising=False)
            for name, function in list(vars(kernel).items()):
                if hasattr(function, "py_func"):
                    patch.setattr(kernel, name, function.py_func)
        yield


def bounded(values: Any, dtype: Any) -> Any:
    return np.array(values, dtype).view(Bounded)


EXTREME = st.sampled_from(
    [0.0, -0.0, 1e-45, 1e-38, 1e-20, 1.0, 3.4e38, float("inf"), float("-inf"), float("nan"), -1.0, -1e-45]
)


@st.composite
def searches(draw: st.DrawFn) -> dict[str, Any]:
    documents, terms = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    postings = [draw(st.lists(st.integers(0, documents - 1), unique=True)) for _ in range(terms)]
    count = sum(map(len, postings))
    queries = draw(
        st.lists(st.lists(st.tuples(st.integers(0, terms - 1), EXTREME), max_size=6), min_size=1, max_size=3)
    )
    return {
        "data": draw(st.lists(EXTREME, min_size=count, max_size=count)),
        "postings": postings,
        "turn": draw(st.permutations(range(documents))),
        "queries": queries,
        "k": draw(st.integers(1, documents)),
    }


def search(case: dict[str, Any], first: Any, orders: tuple[Any, Any] | None = None) -> tuple[Any, Any, Any]:
    turn = np.array(case["turn"], np.int32)
    by_turn = np.empty_like(turn)
    by_turn[turn] = np.arange(len(turn))
    if orders is not None:
        turn, by_turn = orders
    shape = (len(case["queries"]), case["k"])
    documents, scores = np.full(shape, -1, np.int32), np.zeros(shape, np.float32)
    pairs = [pair for query in case["queries"] for pair in query]
    count = first(
        bounded(case["data"], np.float32),
        bounded([d for of in case["postings"] for d in of], np.int32),
        bounded(np.cumsum([0, *map(len, case["postings"])]), np.int64),
        turn.view(Bounded),
        by_turn.view(Bounded),
        bounded([term for term, _ in pairs], np.int32),
        bounded([weight for _, weight in pairs], np.float32),
        bounded(np.cumsum([0, *map(len, case["queries"])]), np.int64),
        case["k"],
        documents.view(Bounded),
        scores.view(Bounded),
        bounded([retrieval_kernel.UNSEEN] * len(turn), np.float32),
        bounded([0] * len(turn), np.int32),
    )
    return documents, scores, count


# Three words of one document whose parts are all 0 in float32: it was written down three times, beyond the end.
SMALL = {"data": [1e-30] * 3, "postings": [[0]] * 3, "turn": [0], "k": 1, "queries": [[(n, 1e-19) for n in range(3)]]}


@settings(max_examples=40, deadline=None)
@given(case=searches())
@example(case=SMALL)
def test_a_search_stays_within_its_arrays(plain: None, case: dict[str, Any]) -> None:
    with np.errstate(all="ignore"):
        documents, _, count = search(case, retrieval_kernel.search)
    for number, query in enumerate(case["queries"]):
        counted = {term for term, weight in query if not np.float32(weight) < retrieval_kernel.NO_WEIGHT}
        met = {document for term in counted for document in case["postings"][term]}
        assert count[number] == min(len(met), case["k"])
        found = documents[number, : count[number]].tolist()
        assert len(set(found)) == len(found)
        assert set(found) <= met


ODD = st.sampled_from([-1, -(2**31), 2**31 - 1, 6]) | st.integers(0, 5)


@settings(max_examples=40, deadline=None)
@given(searches(), st.data())
def test_a_search_of_damaged_files_stays_within_its_arrays(plain: None, case: dict[str, Any], data: Any) -> None:
    postings = [[data.draw(ODD) for _ in of] for of in case["postings"]]
    size = len(case["turn"])
    turn, by_turn = (np.array([data.draw(ODD) for _ in range(size)], np.int32) for _ in range(2))
    with np.errstate(all="ignore"):
        documents, _, count = search(case | {"postings": postings}, retrieval_kernel.search, (turn, by_turn))
    for number, found in zip(count, documents, strict=True):
        assert all(0 <= document < size for document in found[: max(number, 0)])
    outside = {document for of in postings for document in of if not 0 <= document < size}
    if not outside and not {*turn.tolist(), *by_turn.tolist()} - set(range(size)):
        assert (count >= 0).all()


TEXTS = st.lists(
    st.one_of(
        # Also what is no UTF-8, cut off anywhere.
        st.lists(st.sampled_from(list(b" '.ahe\xc2\x85\xa0\xe2\x80\x99\xe3\xf0")), max_size=12).map(bytes),
        st.binary(max_size=8),
        st.sampled_from(["she said", "  a  b ", "He’s. “No.” Yes", "\u3000a\u2028b", "ﬁ she she her"]).map(str.encode),
    ),
    min_size=1,
    max_size=4,
)


def starts_of(texts: Sequence[Sequence[object]]) -> Any:
    return bounded(np.cumsum([0, *map(len, texts)]), np.int64)


@settings(max_examples=40, deadline=None)
@given(TEXTS, st.sampled_from(["word", "whitespace"]))
def test_counting_stays_within_its_arrays(plain: None, texts: list[bytes], tokens: Any) -> None:
    starts = starts_of(texts)
    matcher = [np.asarray(array).view(Bounded) for array in matcher_of(load_lexicon("gender-en"), tokens)]
    with np.errstate(all="ignore"):
        total, count, *_ = groups_kernel.count_entries(
            bounded(list(b"".join(texts)), np.uint8),
            starts[:-1],
            starts[1:],
            tokens == "word",
            Alphabet(*(array.view(Bounded) for array in alphabet(tokens))),
            tuple(matcher),
            2,
            True,
        )
    assert (count.sum(axis=1) <= total).all()
    assert (total <= np.diff(starts)).all()
