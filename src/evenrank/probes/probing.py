"""The probe: a ranker's scores of passages and of their variants, compared pair by pair."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.auditing.inputs import check_judged
from evenrank.files import EvenrankError, Provenance, Run, as_qrels, as_run
from evenrank.files.arguments import checked
from evenrank.files.convert import is_path
from evenrank.files.errors import arg
from evenrank.files.provenance import card_path
from evenrank.files.wording import counted
from evenrank.groups import LexiconLike, load_lexicon, note_lexicon
from evenrank.models.endpoints import Endpoint, note_model
from evenrank.models.load import RankerLike, load_ranker
from evenrank.models.rerank import ScoredPairs
from evenrank.models.scorers import Scorer

from .effects import Floats
from .probe_result import ProbeResult
from .variant_figures import compare, run_figures, score_versions
from .variant_files import Pairing, ProbedList, given_variants, paired
from .variants import Varied


def text_lengths(texts: pl.Series, scorer: Scorer | None) -> Floats:
    """The lengths [texts, 2]: words, and the tokens of the scorer's own tokenizer or, where it has none, characters."""
    pieces = None if scorer is None else scorer.tokens(texts.to_list())
    words = texts.str.count_matches(r"\S+").to_numpy()
    counted = texts.str.len_chars().to_numpy() if pieces is None else np.array(pieces)
    return np.stack([words, counted], axis=1).astype(np.float64)


SHORT = 5
"""Passages of the median list: with fewer, a query's standard deviation is rough."""


@checked
def probe(
    model: RankerLike,
    *,
    queries: opt.Queries,
    collection: opt.Collection,
    variants: Annotated[
        Mapping[str, object] | Sequence[str] | str,
        opt.Option(
            "Files by name, or kinds (swap, neutral, rotate) that are made in memory with their placebos.",
            metavar="NAME=FILE…",
            typed=list,
            panel="Input",
        ),
    ],
    run: Annotated[object, opt.Option("The run whose passages are probed.", reads=True)] = None,
    qrels: Annotated[
        object,
        opt.Option("Qrels or irds:NAME; without --run, the judged passages are probed.", reads=True),
    ] = None,
    depth: Annotated[
        int, opt.Option("Passages of each query of --run.", range=opt.COUNT, panel="Input", rare=True)
    ] = 100,
    sample: Annotated[
        int | None,
        opt.Option("Number of queries of the list, drawn with --seed.", range=opt.COUNT, panel="Statistics", rare=True),
    ] = None,
    placebos: Annotated[
        Mapping[str, object] | None,
        opt.Option(
            "The placebo of the variant NAME (default: the one whose manifest says so); repeatable.",
            flag="--placebo",
            metavar="[NAME=]FILE",
            typed=list,
            panel="Input",
            rare=True,
        ),
    ] = None,
    lexicon: Annotated[
        LexiconLike | None,
        opt.Option(
            "A lexicon as of evenrank audit; its poles orient swap. none: no groups.", reads=True, panel="Groups"
        ),
    ] = "gender-en",
    batch_size: opt.BatchSize = 32,
    kind: opt.Kind = None,
    query_prompt: opt.QueryPrompt = None,
    document_prompt: opt.DocumentPrompt = None,
    precision: opt.Precision = "auto",
    device: opt.Device = None,
    seed: Annotated[
        int, opt.Option("Seed of variants made in memory and samples.", range=opt.SEED, panel="Statistics", rare=True)
    ] = 0,
    keep: str | os.PathLike[str] | None = None,
    quiet: bool = True,
) -> ProbeResult:
    """Measure what one change in passages does to their scores. The change is compared with a placebo.

    For each query and each passage d of its list, with its variant d′: Δ = (score of d′ − score of d) / standard
    deviation of the query's scores (ddof 0; queries whose scores do not vary are left out and counted). Pairs whose
    text the variant leaves as it is are not compared. The verdict speaks of the mean Δ beyond that of a placebo, an
    edit of as many places that should not matter, at equal changes of length (:func:`evenrank.probes.effects.beyond`);
    of a swap, of the preference apart from the damage that any edit does (:func:`evenrank.probes.effects.preference`);
    without a placebo, of the mean Δ. Intervals and p are over queries and passages; p values are Holm-corrected over
    the variants.

    ``model``: anything that :func:`evenrank.rerank` takes, or ``"bm25"`` (BM25 with the statistics of ``collection``),
    with its ``kind``, prompts and settings. ``variants``: ``{name: variant}``, where a variant is a path, a table of
    ``doc_id`` and ``text``, or what ``evenrank.variants`` returns without ``out``; or names of kinds (``"swap"``,
    ``["swap", "neutral"]``; in a mapping, None for the variant), made in memory from the listed passages, with their
    placebos.
    A file's manifest says its kind, else its name does if it is one of the kinds. ``placebos``: by the variants' names;
    a placebo among ``variants`` whose manifest says so is the placebo of the variants of its kind.

    ``run``: its first ``depth`` passages of each query are the list; without it the judged passages of ``qrels`` are.
    ``sample``: only that many queries of the list, drawn with ``seed``.
    ``lexicon``: its poles orient the effect of ``swap``, so that above 0 is "prefers the wording of the first pole";
    pairs whose magnitude the swap leaves as it is are left out of it. None: no groups, no orientation.

    Beside these: places that d would rise or fall if d′ stood in for it, and the shares that enter or leave the first
    10 of longer lists; and the run with every passage replaced, audited as any run.

    Every distinct text is encoded once and every distinct pair scored once. ``keep``: a file beside which an
    interrupted call of a folder's or a hub's model keeps its scores (and an endpoint its answers), so that the same
    call resumes.

    Raises EvenrankError for a setting out of range, without a list, for queries and passages without a text, for a
    variant that lacks passages of the list or changes none, for a list whose scores do not vary for any query, and for
    a score that is not finite; InputError for a file or a model that cannot be used.
    """
    if keep is not None and card_path(keep) is None:
        keep = None
    if isinstance(model, Endpoint):
        model = model.keeping_beside(keep)
    placebos = placebos or {}
    given = given_variants(variants, placebos)
    sources = {"collection": collection, "queries": queries, "run": run, "qrels": qrels}
    provenance = _provenance(model, sources, given, placebos, lexicon).ahead()
    words = None if lexicon is None else load_lexicon(lexicon)
    listing = None if run is None else as_run(run)
    provenance.add_card("run", None if listing is None else listing.card)
    judged = None if qrels is None else as_qrels(qrels)
    if listing is not None and judged is not None:
        check_judged(judged["query_id"], [listing], qrels)
    listed = ProbedList.of(listing, judged, depth, collection, queries, sample, seed)
    pairing = paired(given, placebos, listed, words, seed)
    if model == "bm25" and not os.path.isdir("bm25"):
        from evenrank.search.bm25 import BM25Scorer

        model = BM25Scorer(collection, quiet=quiet)
    ranker = load_ranker(
        model,
        kind=kind,
        device=device,
        precision=precision,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
    )
    versions, pair_scores = score_versions(listed, pairing.texts, ranker, batch_size, keep, quiet)
    varies = ~np.isnan(versions.deviation)
    if not varies.any():
        why = "" if np.bincount(listed.query).max() > 1 else "; a list needs two passages or more"
        more = f": take a larger {arg.depth}" if why and listing is not None else ""
        raise EvenrankError(
            f"{ranker.name}: the scores of the passages of a query do not vary, for any query{why}{more}"
        )
    named = os.fspath(model) if is_path(model) else ranker.name
    settings = {"model": named, "ranker": pair_scores.facts, "depth": None if run is None else depth}
    settings |= {"sample": sample, "sampled_from": listed.sampled_from, "seed": seed, "batch_size": batch_size}
    settings |= {"lexicon": None if words is None else words.name}
    lengths = text_lengths(versions.texts, ranker if any(placebo for _, placebo in pairing.variants) else None)
    figures = compare(versions, pairing, words, lengths, seed)
    result = ProbeResult(
        ranker.name,
        listed.name,
        listed.table.height,
        len(listed.pairs.queries),
        len(listed.pairs.documents),
        len(np.unique(listed.query[~varies])),
        run_figures(listed.ranked(versions.scores[""], ranker.name), listed.passages(), judged, words, seed),
        figures,
        settings,
        tuple(_notes(listing, listed, pairing, ranker, pair_scores, seed)),
        provenance=provenance,
    )
    pair_scores.forget()
    return result


def _notes(
    listing: Run | None,
    listed: ProbedList,
    pairing: Pairing,
    ranker: Scorer,
    found: ScoredPairs,
    seed: int,
) -> Iterator[str]:
    """What is to be said of the run, the list, the variants, the ranker, and how it scored."""
    yield from () if listing is None else listing.notes
    if listed.sampled_from is not None:
        drawn = listed.table["query_id"].n_unique()
        yield f"A sample: {drawn:,} of {counted(listed.sampled_from, 'query')}, drawn with seed {seed}"
    yield from pairing.notes
    median = float(np.median(np.bincount(listed.query)))
    if median < SHORT:
        few = counted(int(median), "passage")
        yield f"half of the lists have {few} or fewer: the standard deviation of so few scores is rough"
    yield from found.notes(ranker, "scores kept from an interrupted probe")


def _provenance(
    model: object,
    sources: Mapping[str, object],
    given: Mapping[str, object],
    placebos: Mapping[str, object],
    lexicon: LexiconLike | None,
) -> Provenance:
    provenance = Provenance("evenrank.probe")
    if model == "bm25" and not os.path.isdir("bm25"):
        provenance.name("model", "bm25", "computed here")
    else:
        note_model(provenance, "model", model)
    for role, source in sources.items():
        provenance.add(role, source)
    named = {f"variant {name}": source for name, source in given.items()}
    named |= {f"placebo of {name}": source for name, source in placebos.items()}
    for role, source in named.items():
        if source is None:
            provenance.name(role, role.removeprefix("variant "), "made in memory")
        else:
            provenance.add(role, source.table if isinstance(source, Varied) else source)
    if lexicon is not None:
        note_lexicon(provenance, lexicon)
    return provenance
