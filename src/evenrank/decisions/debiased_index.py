"""Debiasing of a dense index, with what it did: ``evenrank index debias``."""

from __future__ import annotations

import os
from collections.abc import Sequence

import polars as pl

from evenrank.embeddings.group_probes import require_probes
from evenrank.groups import Lexicon, Tokens
from evenrank.io import EvenrankError, Provenance, as_qrels, as_queries, check_apart
from evenrank.io.convert import PathLike
from evenrank.io.folders import INDEX
from evenrank.io.ranges import check_ranges
from evenrank.io.wording import are, counted
from evenrank.retrieval.changed_collections import changed_collection
from evenrank.retrieval.encoding import Encoding
from evenrank.retrieval.erased_index import PassageNumbers, check_method, open_to_debias, remove_index, write_debiased
from evenrank.retrieval.erasure import Erasure
from evenrank.retrieval.index_folder import read_manifest
from evenrank.retrieval.vector_index import VectorIndex

from .debiased_groups import PassageGroups
from .debiased_probes import probe_indexes
from .debiased_result import DebiasedIndex
from .debiased_runs import Search, measure_rankings
from .group_sources import GroupSource


# parameters: those of the command
# long: the signature and the description of its parameters
def debias_index(
    index: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    method: str = "leace",
    components: int = 1,
    collection: object = None,
    lexicon: PathLike | Lexicon | None = None,
    scores: object = None,
    labels: object = None,
    neutral: Sequence[str] | str | None = None,
    group_column: str | None = None,
    poles: str | None = None,
    tokens: Tokens | None = None,
    threshold: float | None = None,
    queries: object = None,
    qrels: object = None,
    depth: int = 200,
    sample: int = 1000,
    model: object = None,
    encoding: Encoding | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> DebiasedIndex:
    """Writes a dense index without what a linear classifier could tell of its passages' groups, and says what it did.

    The new index has the same format; :func:`open_index` and :func:`retrieve` search it, and apply the same map to each
    query: x − L R (x − μ), then, where the vectors have length 1, scaling to length 1. That scaling, and float16, leave
    a small distance between the groups' means, which is measured as stored.

    Inputs are read before anything is written. A call that fails, or is interrupted, leaves no index.

    Args:
        index: The folder of an index of a model's vectors (:func:`build_index`), not debiased yet.
        out: The folder of the new one, new or empty.
        method: "leace" (Belrose et al. 2023), fitted on the passages whose group is known; or "hard" (Bolukbasi et al.
            2016), which projects out the first ``components`` directions of the lexicon's pairs of counterparts, as the
            index's model encodes them.
        collection: The texts, whose words of the ``lexicon`` (default: gender-en) say a passage's group: the one with
            the largest weight. Or ``scores``, a group table, or ``labels``; ``neutral``, ``group_column``, ``poles``,
            ``tokens`` and ``threshold`` as in :func:`audit`. Passages of no group are a group of their own; those that
            nothing is known of are not fitted on, and erased like the others.
        queries: Queries to rank before and after; with ``qrels`` also for effectiveness (those of other queries are
            left out).
        depth: How many documents of each query are ranked.
        sample: The most passages of each group that the probes see.
        model: The index's model, if it is not where it was, or was loaded.
        encoding: How texts are encoded: ``batch_size``, ``device``.
        seed: Seed of the probes' folds and the intervals.
        quiet: Show no progress.

    Raises:
        EvenrankError: For an index of another kind, or debiased already, fewer than two groups with passages, and
            settings that do not go together; InputError for files that cannot be read or written.
    """
    check_ranges(components=components, depth=depth, sample=sample, seed=seed, threshold=threshold)
    given = GroupSource(collection, scores, labels, neutral, group_column, lexicon, poles, tokens, threshold)
    source = PassageGroups(given)
    source.check(method)
    if queries is None and qrels is not None:
        raise EvenrankError("`qrels` needs `queries`")
    check_method(method, components, source.pairs if method == "hard" else ())
    check_apart([out], [index, collection, scores, labels, queries, qrels])
    made = Provenance("evenrank.debias_index").add("index", os.path.join(os.fspath(index), INDEX))
    given.note(made)
    made.add("queries", queries).add("qrels", qrels).ahead()
    require_probes()
    before = open_to_debias(index)
    # All that can be wrong with the inputs is found before anything is written.
    search = None
    if queries is not None:
        asked = as_queries(queries)
        judged = None if qrels is None else _of_queries(as_qrels(qrels), asked)
        search = Search(asked, judged, depth, model, encoding, seed, quiet)
    encoder = before.encoder(model, encoding) if method == "hard" or search is not None else None
    groups = source.numbers(before)
    new = not os.path.lexists(out)
    manifest = write_debiased(
        before,
        out,
        groups,
        method=method,
        pairs=source.pairs if method == "hard" else (),
        components=components,
        encoder=encoder,
        quiet=quiet,
    )
    try:
        after = VectorIndex.open(read_manifest(manifest.path))
        probes = probe_indexes(before, after, groups, sample=sample, seed=seed)
        rankings = None if search is None else measure_rankings(before, after, source, search)
    except BaseException:
        # The same command can then be run again.
        remove_index(manifest, folder=new)
        raise
    notes = _notes(before, groups, after.erasure)
    settings = {
        "index": os.fspath(index),
        "out": os.fspath(out),
        "method": method,
        "components": components if method == "hard" else None,
        "depth": depth,
        "sample": sample,
        "seed": seed,
    }
    return DebiasedIndex(manifest, probes, rankings, settings, tuple(notes), made)


def _of_queries(qrels: pl.DataFrame, queries: pl.DataFrame) -> pl.DataFrame:
    """The judgements of the queries that are ranked: of any others there is no ranking to judge."""
    judged = qrels.join(queries, on="query_id", how="semi", maintain_order="left")
    if judged.is_empty():
        raise EvenrankError("the qrels judge none of the queries")
    return judged


def _notes(index: VectorIndex, groups: PassageNumbers, erasure: Erasure | None) -> list[str]:
    counts = groups.to_dict()
    unknown, none = counts["unknown"], counts["none"]
    assert isinstance(unknown, int)
    assert isinstance(none, int)
    named = ", ".join(f"{count:,} of {name}" for name, count in groups.counts.items())
    notes = [f"Passages: {named}, {none:,} of none or several alike, {unknown:,} unknown."]
    if unknown:
        notes.append(f"{counted(unknown, 'passage')} {are(unknown)} of no known group: erased, but not fitted on.")
    if erasure is not None and erasure.unit and erasure.method == "leace":
        notes.append(
            "The vectors have length 1 and are scaled to it again after erasure. LEACE makes the means of the groups"
            " equal before that: afterwards they differ a little, and a linear classifier may find that."
        )
    return [*notes, *(f"{note[0].upper()}{note[1:]}." for note in changed_collection(index.manifest))]
