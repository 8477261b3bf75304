"""How much contextual word vectors depend on position: average term similarity (ATS) and MATS.

Hofstätter et al., ECIR 2021, "Mitigating the position bias of transformer models in passage re-ranking" [POS], §5.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank import options as opt
from evenrank.files import Provenance, arg, as_batches
from evenrank.files.arguments import checked
from evenrank.files.json_values import INLINE
from evenrank.files.progress import progress
from evenrank.results.finding import Level, phrases
from evenrank.results.page import COLOURS, Drawing, Page, Section, specification
from evenrank.results.result import Result
from evenrank.results.table import COUNT, Column, Table, digits

__all__ = ["SimilarityResult", "position_similarity"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TermSimilarity:
    """The curve ATS(Δ) for distances Δ = 0 … D.

    ``ats`` [D + 1]: the mean over terms of the mean cosine of a term's vectors in different passages, Δ positions
    apart; NaN if no term has enough pairs. ``deviation`` [D + 1]: standard deviation of all pairs' cosines at Δ;
    ``terms``, ``pairs`` [D + 1]: their numbers. ``delta_max``: the largest Δ with enough terms, −1 if none; D is at
    least that.

    When it misleads: a falling curve shows that vectors encode position, not that scores depend on it: a ranker can
    ignore what its vectors encode. Large distances have few terms, and which terms count changes with Δ, which alone
    bends the curve. Across vectors of other layers or sizes, only the sign can be compared.

    Worked example: one term is at the positions 0, 0, 1 and 2 of four passages; its vectors turn by 60° per position.
    Pairs at Δ = 0: cosine 1; at Δ = 1: 1/2 (three pairs); at Δ = 2: −1/2 (two pairs). MATS = (1/2 + 3/2) / (2 − 1) = 2.

    >>> import numpy as np
    >>> from evenrank.probes.similarity import term_similarity
    >>> places = np.array([0, 0, 1, 2])
    >>> angle = np.pi / 3 * places
    >>> vectors = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    >>> found = term_similarity(vectors, np.zeros(4, np.int64), places, np.arange(4), min_pairs=1, min_terms=1)
    >>> found.ats.round(4).tolist(), round(found.mats, 4)
    ([1.0, 0.5, -0.5], 2.0)
    """

    also: ClassVar = ("mats", "mats_deviation")
    ats: Floats
    deviation: Floats
    terms: Ints
    pairs: Ints
    delta_max: int

    @property
    def mats(self) -> float:
        """MATS = 1/(Δmax − 1) Σ_{i=1}^{Δmax} (ATS(0) − ATS(i)), as printed; NaN if Δmax < 2."""
        falls = self._falls()
        return float(falls.sum() / (self.delta_max - 1)) if len(falls) else float("nan")

    @property
    def mats_deviation(self) -> float:
        """The standard deviation over i = 1 … Δmax of ATS(0) − ATS(i) (n − 1); NaN if Δmax < 2."""
        falls = self._falls()
        return float(falls.std(ddof=1)) if len(falls) > 1 else float("nan")

    def _falls(self) -> Floats:
        """ATS(0) − ATS(i) for i = 1 … Δmax, those that are defined; none if Δmax < 2."""
        if self.delta_max < 2:
            return np.empty(0)
        falls: Floats = self.ats[0] - self.ats[1 : self.delta_max + 1]
        return falls[~np.isnan(falls)]


@checked
def term_similarity(
    vectors: NDArray[np.float32],
    terms: Ints,
    places: Ints,
    passages: Ints,
    *,
    min_pairs: Annotated[int, opt.COUNT] = 5,
    min_terms: Annotated[int, opt.COUNT] = 100,
    cap: Annotated[int, opt.COUNT] = 1000,
    seed: Annotated[int, opt.SEED] = 0,
    advance: Callable[[int], None] = lambda _: None,
) -> TermSimilarity:
    """ATS and MATS of the words of passages [POS §5].

    ``vectors`` [N, d]: each word's contextual vector; ``terms``, ``places``, ``passages`` [N]: its term id (rows with
    −1 are ignored), its position (in words) and its passage. A pair is two occurrences of one term in different
    passages; T(Δ), the terms that count at Δ, have at least ``min_pairs`` pairs there; Δmax is the largest Δ with at
    least ``min_terms`` of them. Of terms with more than ``cap`` occurrences a seeded sample of that size is compared,
    which limits the pairs per term to cap²/2. ``advance`` is called with the number of terms finished. Raises
    EvenrankError for a setting out of range.
    """
    rng = np.random.default_rng(seed)
    order = np.argsort(terms, kind="stable")
    order = order[np.searchsorted(terms[order], 0) :]
    edges = np.flatnonzero(np.diff(terms[order], prepend=-1, append=-1))
    width = int(places.max()) + 1 if len(places) else 1
    means, cosines, squares, pairs, counted = np.zeros((5, width))
    for start, end in itertools.pairwise(edges):
        rows = order[start:end]
        advance(1)
        if len(rows) < 2:
            continue
        if len(rows) > cap:
            rows = rows[np.sort(rng.choice(len(rows), cap, replace=False))]
        number, total, square = _cosine_sums(vectors[rows], places[rows], passages[rows], width)
        counts = number >= min_pairs
        pairs += np.where(counts, number, 0)
        cosines += np.where(counts, total, 0)
        squares += np.where(counts, square, 0)
        means += np.divide(total, number, out=np.zeros(width), where=counts)
        counted += counts
    variance = _divided(squares, pairs) - _divided(cosines, pairs) ** 2
    deviation = np.sqrt(np.clip(variance, 0, None))
    enough = np.flatnonzero(counted >= min_terms)
    last = int(np.flatnonzero(counted)[-1]) + 1 if counted.any() else 1
    return TermSimilarity(
        _divided(means, counted)[:last],
        deviation[:last],
        counted[:last].astype(np.int64),
        pairs[:last].astype(np.int64),
        int(enough[-1]) if len(enough) else -1,
    )


def _divided(sums: Floats, counts: Floats) -> Floats:
    """``sums`` / ``counts``, NaN for a count of 0."""
    means: Floats = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return means


def _cosine_sums(vectors: NDArray[np.float32], places: Ints, passages: Ints, width: int) -> tuple[Ints, Floats, Floats]:
    """Pairs of different passages, and sums of their cosines and squared cosines, by distance [width]."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(length > 0, length, 1)
    cosines = (units @ units.T).astype(np.float64)
    first, second = np.triu_indices(len(units), 1)
    apart = passages[first] != passages[second]
    first, second = first[apart], second[apart]
    distance = np.abs(places[first] - places[second])
    values = cosines[first, second]
    return (
        np.bincount(distance, minlength=width).astype(np.int64),
        np.bincount(distance, weights=values, minlength=width).astype(np.float64),
        np.bincount(distance, weights=values**2, minlength=width).astype(np.float64),
    )


_SOURCE = "ATS and MATS as in Hofstätter et al., ECIR 2021 (§5, Fig. 2)"


@dataclass(frozen=True, slots=True, repr=False)
class SimilarityResult(Result):
    """The result of :func:`evenrank.position_similarity`; ``vectors`` names the vectors that were compared."""

    name: str
    vectors: str
    similarity: TermSimilarity = field(metadata=INLINE)
    settings: Mapping[str, object]

    def page(self) -> Page:
        """The figures as a page."""
        result, settings = self.similarity, self.settings
        figures = (
            ("MATS", result.mats),
            ("its standard deviation over distances", result.mats_deviation),
            ("largest distance with enough terms (Δmax)", f"{result.delta_max}" if result.delta_max >= 0 else None),
        )
        last = max(result.delta_max, 0)
        every = range(0, min(len(result.ats), last + 1), max(1, last // 20))
        columns = (
            Column("distance", COUNT, "Δ", lambda place: place),
            Column("ats", digits(4), "ATS", lambda place: float(result.ats[place])),
            Column("deviation", digits(4), of=lambda place: float(result.deviation[place])),
            Column("terms", COUNT, of=lambda place: int(result.terms[place])),
            Column("pairs", COUNT, of=lambda place: int(result.pairs[place])),
        )
        table = Table("Position in word vectors", (Column("figure"), Column("value", digits(4))), figures)
        curve = Table("Average term similarity by distance", columns, every)
        notes = [
            f"Vectors: {self.vectors}. A pair: the same term in two passages, its positions Δ words apart.",
            f"A term counts at Δ with at least {settings['min_pairs']} pairs there, a Δ with at least"
            f" {settings['min_terms']} terms. Sampled with seed {settings['seed']}: at most {settings['passages']:,}"
            f" passages, and {settings['cap']:,} occurrences of a term.",
            "Band and deviation: over the pairs at each Δ. Which terms count changes with Δ, which alone bends the"
            " curve.",
        ]
        if result.delta_max < 2:
            notes.append(f"MATS is undefined: too few terms. Use more passages, or a smaller {arg.min_terms}.")
        defined = result.delta_max >= 2
        key, level = ("similarity", "shown") if defined else ("similarity_untold", "cannot be told")
        values = {"mats": result.mats, "distance": result.delta_max}
        finding = phrases("position").finding(key, self.name, cast("Level", level), None, "answer", **values)
        return Page(
            "position similarity",
            f"Position in the word vectors of {self.name}",
            (finding,),
            table,
            sections=(Section("By distance", (curve,), lambda: [_chart(result)]),),
            facts=(("passages at most", f"{settings['passages']:,}"),),
            source=_SOURCE,
            notes=tuple(notes),
            provenance=self.provenance,
        )


def _chart(found: TermSimilarity) -> Drawing:
    import altair as alt

    size = max(found.delta_max, 0) + 1
    rows = [
        {"x": distance, "value": value, "low": value - spread, "high": value + spread}
        for distance, (value, spread) in enumerate(
            zip(found.ats[:size].tolist(), found.deviation[:size].tolist(), strict=True)
        )
        if not math.isnan(value)
    ]
    data = alt.Chart(alt.Data(values=rows))
    across = alt.X("x:Q", title="distance Δ in words")
    y = alt.Y("value:Q", title="ATS(Δ)", scale=alt.Scale(zero=False))
    line = data.mark_line(color=COLOURS[0]).encode(x=across, y=y)
    band = data.mark_area(opacity=0.15, color=COLOURS[0]).encode(
        x=across, y=alt.Y("low:Q", title="ATS(Δ)"), y2="high:Q"
    )
    return Drawing(
        "ATS",
        "Average term similarity by distance",
        specification(alt.layer(band, line).properties(width=780, height=320)),
        "Band: one standard deviation over the pairs.",
    )


@checked
def position_similarity(
    model: Annotated[
        str, opt.Option("A trained tk, or any transformer: a folder or a hub name.", metavar="MODEL", reads=True)
    ],
    *,
    collection: opt.Collection,
    passages: Annotated[
        int, opt.Option("Number of passages, sampled with --seed.", range=opt.COUNT, panel="Statistics")
    ] = 2000,
    max_words: Annotated[
        int, opt.Option("Words of each passage to use.", range=opt.COUNT, panel="Statistics", rare=True)
    ] = 200,
    min_pairs: Annotated[
        int,
        opt.Option("Fewest pairs of a term to count at a distance.", range=opt.COUNT, panel="Statistics", rare=True),
    ] = 5,
    min_terms: Annotated[
        int, opt.Option("Fewest terms for a distance to count.", range=opt.COUNT, panel="Statistics", rare=True)
    ] = 100,
    cap: Annotated[
        int,
        opt.Option(
            "Most occurrences of a term to compare, sampled with --seed.",
            range=opt.COUNT,
            panel="Statistics",
            rare=True,
        ),
    ] = 1000,
    batch_size: opt.BatchSize = 32,
    device: opt.Device = None,
    seed: Annotated[int, opt.Option("Seed of the samples.", range=opt.SEED, panel="Statistics", rare=True)] = 0,
    quiet: bool = True,
) -> SimilarityResult:
    """Measure how much of a word's vector is its position. The table has average term similarity by distance, and MATS.

    ATS and MATS of a model [Hofstätter et al., ECIR 2021, §5] on a seeded sample of a collection's passages.

    ``model``: see :func:`evenrank.models.word_encoders.word_encoder`. ``collection``: a path, ``{document: text}``, or
    a frame with ``doc_id`` and ``text``. ``min_pairs``, ``min_terms``, ``cap``: see
    :func:`evenrank.probes.similarity.term_similarity`. Memory: at most ``passages`` × ``max_words`` vectors,
    whatever the size of the collection. Raises EvenrankError for a setting out of range and for a model without
    contextual vectors.
    """
    measured = {"min_pairs": min_pairs, "min_terms": min_terms, "cap": cap}
    settings = {"passages": passages, "max_words": max_words, **measured}
    provenance = (
        Provenance("evenrank.position_similarity").add_model("model", model).add("collection", collection).ahead()
    )
    words, what = sampled_words(
        model,
        collection,
        passages=passages,
        max_words=max_words,
        batch_size=batch_size,
        device=device,
        seed=seed,
        quiet=quiet,
    )
    with progress("terms", int(words[1].max(initial=-1)) + 1, quiet=quiet) as advance:
        similarity = term_similarity(
            *words,
            min_pairs=min_pairs,
            min_terms=min_terms,
            cap=cap,
            seed=seed,
            advance=advance,
        )
    inputs = {"collection": os.fspath(collection)} if isinstance(collection, str | os.PathLike) else {}
    return SimilarityResult(
        model, what, similarity, {"model": model, **inputs, **settings, "seed": seed}, provenance=provenance
    )


def sampled_words(
    model: str,
    collection: object,
    *,
    passages: int = 2000,
    max_words: int = 200,
    batch_size: int = 32,
    device: str | None = None,
    seed: int = 0,
    quiet: bool = True,
) -> tuple[tuple[NDArray[np.float32], Ints, Ints, Ints], str]:
    """A model's contextual vectors of the words of a seeded sample of passages; as in :func:`position_similarity`.

    Returns, each row an occurrence, its vector [N, d], term id (−1: no word), position and passage [N]; and what the
    vectors are.
    """
    from evenrank.models.word_encoders import sample_passages, word_encoder, word_vectors

    encoder = word_encoder(model, device=device, max_words=max_words)
    with progress("documents", quiet=quiet) as advance:
        batches = _counted(as_batches(collection), advance)
        texts = sample_passages(batches, passages, seed)["text"].to_list()
    vectors = np.empty((0, max_words, 0), np.float32)
    words: list[list[str]] = [[] for _ in texts]
    with progress("passages", len(texts), quiet=quiet) as advance:
        for row, (tokens, values) in word_vectors(encoder.encode, texts, batch_size, advance):
            if not vectors.size:
                # Room for the longest passages; pages that are never written to take no memory.
                vectors = np.empty((len(texts), max_words, values.shape[1]), np.float32)
            words[row] = tokens
            vectors[row, : len(tokens)] = values
    ids: dict[str, int] = {}
    terms = np.full(vectors.shape[:2], -1, np.int64)
    for row, tokens in enumerate(words):
        terms[row, : len(tokens)] = [ids.setdefault(word, len(ids)) for word in tokens]
    owners, places = np.indices(terms.shape)
    return (vectors.reshape(terms.size, -1), terms.ravel(), places.ravel(), owners.ravel()), encoder.what


def _counted(batches: Iterable[pl.DataFrame], advance: Callable[[int], None]) -> Iterator[pl.DataFrame]:
    for batch in batches:
        yield batch
        advance(batch.height)


PAIRS = 200_000


@checked
def different_terms(
    vectors: NDArray[np.float32],
    terms: Ints,
    places: Ints,
    passages: Ints,
    *,
    pairs: int = PAIRS,
    seed: Annotated[int, opt.SEED] = 0,
) -> Floats:
    """[D + 1] the mean cosine of the vectors of different terms in different passages by distance Δ; NaN without pairs.

    The arrays are those of :func:`evenrank.probes.similarity.term_similarity`; a seeded sample of at most
    ``pairs`` pairs is compared. Near 1 the transformer has collapsed: every word has the same vector, and a small MATS
    says nothing.

    >>> import numpy as np
    >>> from evenrank.probes.similarity import different_terms
    >>> vectors = np.array([[1, 0], [0, 1]], np.float32)
    >>> different_terms(vectors, np.arange(2), np.arange(2), np.arange(2)).round(4).tolist()
    [nan, 0.0]
    """
    known = np.flatnonzero(terms >= 0)
    width = int(places.max()) + 1 if len(places) else 1
    if len(known) < 2:
        return np.full(width, np.nan)
    rng = np.random.default_rng(seed)
    first, second = known[rng.integers(len(known), size=(2, pairs))]
    apart = (terms[first] != terms[second]) & (passages[first] != passages[second])
    first, second = first[apart], second[apart]
    sums, counts = np.zeros(width), np.zeros(width, np.int64)
    for start in range(0, len(first), 1 << 14):
        a, b = first[start : start + (1 << 14)], second[start : start + (1 << 14)]
        u, v = vectors[a].astype(np.float64), vectors[b].astype(np.float64)
        length = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
        cosines = (u * v).sum(1) / np.where(length > 0, length, 1)
        distance = np.abs(places[a] - places[b])
        sums += np.bincount(distance, weights=cosines, minlength=width)
        counts += np.bincount(distance, minlength=width)
    means: Floats = np.divide(sums, counts, out=np.full(width, np.nan), where=counts > 0)
    last = int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 1
    return means[:last]
