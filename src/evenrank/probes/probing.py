"""The probe: a ranker's scores of passages and of their variants, compared pair by pair."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.auditing.inputs import check_judged
from evenrank.files import EvenrankError, Provenance, as_qrels, as_run
from evenrank.files.arguments import checked
from evenrank.files.convert import is_path
from evenrank.files.errors import arg
from evenrank.files.provenance import card_path, ranker_note
from evenrank.files.wording import counted
from evenrank.groups import GroupTable, Lexicon, LexiconLike, Scoring, load_lexicon, note_lexicon, score_texts
from evenrank.models.endpoints import Endpoint, shown_address
from evenrank.models.load import Prompts, RankerLike, StoredRanker, find_ranker
from evenrank.models.rerank import ScoredPairs
from evenrank.models.scorers import Scorer
from evenrank.stats.compare import corrected

from .effects import Changes, Flags, Floats
from .probe_result import ProbeResult
from .variant_figures import (
    Compared,
    Means,
    VariantFigures,
    Versions,
    examples,
    rank_figures,
    replaced_passages,
    run_figures,
)
from .variant_files import Given, Pairing, ProbedList, Variant, given_variants, paired, spread
from .variants import KINDS, Varied

Scored = Mapping[str, Floats]
"""Scores [N] of each variant by name, and of the originals under ``""``."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared: the ``listed`` pairs and their variants, with the signs of those that are oriented.

    ``magnitudes`` [texts]: the signed magnitude of each distinct text between the ``poles``; None without a lexicon
    that has poles. ``lengths`` [texts, 2]: of each, in words and in word pieces.
    """

    listed: ProbedList
    pairing: Pairing
    versions: Versions
    lexicon: Lexicon | None
    seed: int
    magnitudes: Floats | None
    poles: tuple[str, str] | None
    lengths: Floats

    @classmethod
    def of(
        cls,
        listed: ProbedList,
        pairing: Pairing,
        versions: Versions,
        lexicon: Lexicon | None,
        seed: int,
        lengths: Floats,
    ) -> Comparison:
        """With the magnitudes (tf) of all texts under the lexicon."""
        if lexicon is None or lexicon.poles is None:
            return cls(listed, pairing, versions, lexicon, seed, None, None, lengths)
        scoring = Scoring(lexicon, magnitudes=("tf",))
        texts = versions.texts.rename("text").to_frame().with_row_index("doc_id")
        table = score_texts(texts.with_columns(pl.col("doc_id").cast(pl.String)), scoring)
        groups = GroupTable.of(table, scoring.describe())
        return cls(listed, pairing, versions, lexicon, seed, groups.signed_magnitude("tf"), groups.poles, lengths)

    def signs(self, variant: Variant) -> Floats | None:
        """The sign [N] of the change of a pair's magnitude, NaN without a change; None for kinds without direction."""
        kind = KINDS.get(variant.kind or "")
        if kind is None or not kind.oriented or self.magnitudes is None:
            return None
        rows = self.versions.variants[variant.name]
        change = np.sign(self.magnitudes[rows] - self.magnitudes[self.versions.original])
        return np.where(change != 0, change, np.nan)

    def compared(self, variant: Variant, placebo: Variant | None, scores: Scored, deviation: Floats) -> Compared:
        """What a variant does to each pair; ``deviation`` [N] of each pair's query."""

        def change(name: str) -> Floats:
            return np.where(self.versions.changed(name), scores[name] - scores[""], np.nan) / deviation

        def longer(name: str) -> Floats:
            return self.lengths[self.versions.variants[name]] - self.lengths[self.versions.original]

        changed, signs = self.versions.changed(variant.name), self.signs(variant)
        own = Changes(self.listed.query, self.listed.passage, change(variant.name))
        if placebo is not None:
            own = replace(
                own,
                placebo=change(placebo.name),
                lengths=longer(variant.name),
                placebo_lengths=longer(placebo.name),
            )
        return Compared(
            variant.name,
            changed,
            signs,
            own,
            scores[""],
            np.where(changed, scores[variant.name], scores[""]),
            deviation,
        )

    def figures(self, scores: Scored, deviation: Floats) -> tuple[VariantFigures, ...]:
        """The figures of all variants."""
        found = [self._figures(*pair, scores, deviation) for pair in self.pairing.variants]
        findings = corrected([one.finding for one in found])
        means = [replace(one.means, finding=finding) for one, finding in zip(found, findings, strict=True)]
        return tuple(replace(one, means=own) for one, own in zip(found, means, strict=True))

    def _figures(self, variant: Variant, placebo: Variant | None, scores: Scored, deviation: Floats) -> VariantFigures:
        listed, versions = self.listed, self.versions
        found = self.compared(variant, placebo, scores, deviation)
        shift, enters, leaves = rank_figures(found, listed)
        passages = replaced_passages(listed, variant.texts)
        return VariantFigures(
            variant.name,
            variant.kind,
            None if placebo is None else placebo.name,
            None if found.signs is None else self.poles,
            found.counts(),
            Means.of(found.changes, found.signs, len(self.pairing.variants)),
            shift,
            enters,
            leaves,
            run_figures(listed.ranked(found.replaced, variant.name), passages, listed.qrels, self.lexicon, self.seed),
            examples(found, listed, versions),
        )


def text_lengths(texts: pl.Series, scorer: Scorer | None) -> Floats:
    """The lengths [texts, 2]: words, and the tokens of the scorer's own tokenizer or, where it has none, characters."""
    pieces = None if scorer is None else scorer.tokens(texts.to_list())
    words = texts.str.count_matches(r"\S+").to_numpy()
    counted = texts.str.len_chars().to_numpy() if pieces is None else np.array(pieces)
    return np.stack([words, counted], axis=1).astype(np.float64)


_BLOCK = 256
"""Texts whose reading ends are asked for at once."""


def cut_pairs(scorer: Scorer, versions: Versions) -> Mapping[str, Flags] | None:
    """By variant, and for the originals under ``""``, whether [N] the model reads less than the whole text.

    None if the model does not say, or cuts no text. The longest texts are asked for first, until of a block of them
    none is cut.
    """
    listed = versions.listed
    rows = {"": versions.original, **versions.variants}
    # Models that encode passages on their own read as much of them whatever the query.
    query = listed.query * (scorer.unit != "document")
    keys = {name: query * len(versions.texts) + found for name, found in rows.items()}
    distinct = np.unique(np.concatenate(list(keys.values())))
    lengths = versions.texts.str.len_chars().to_numpy() + np.zeros(len(versions.texts), np.int64)
    asked = listed.pairs.queries.str.len_chars().to_numpy()
    size = lengths[distinct % len(lengths)] + asked[distinct // len(lengths)]
    order = np.argsort(-size, kind="stable")
    cut = np.zeros(len(distinct), bool)
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        queries = listed.pairs.queries.gather(distinct[block] // len(lengths)).to_list()
        texts = versions.texts.gather(distinct[block] % len(lengths)).to_list()
        ends = scorer.reads_to(queries, texts)
        if ends is None:
            return None
        cut[block] = [end < len(text.rstrip()) for end, text in zip(ends, texts, strict=True)]
        if not cut[block].any():
            break
    if not cut.any():
        return None
    return {name: cut[np.searchsorted(distinct, key)] for name, key in keys.items()}


def reading_notes(comparison: Comparison, scores: Scored, deviation: Floats, scorer: Scorer) -> Iterator[str]:
    """Notes on variants with compared pairs that the model cuts; ``deviation`` [N] of each pair's query."""
    cut = cut_pairs(scorer, comparison.versions)
    if cut is None:
        return
    for variant, placebo in comparison.pairing.variants:
        compared = comparison.compared(variant, placebo, scores, deviation).compared
        lost = int(((cut[""] | cut[variant.name]) & compared).sum())
        if lost:
            of = counted(int(compared.sum()), "compared pair")
            yield f"{variant.name}: in {lost:,} of {of} the model does not read to the end of both texts"


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
    if isinstance(model, Endpoint | Scorer):
        model = model.keeping_beside(keep)
    given = given_variants(variants, placebos or {})
    sources = {"collection": collection, "queries": queries, "run": run, "qrels": qrels}
    made = _provenance(model, sources, given, lexicon).ahead()
    words = None if lexicon is None else load_lexicon(lexicon)
    listing = None if run is None else as_run(run)
    made.add_card("run", None if listing is None else listing.card)
    judged = None if qrels is None else as_qrels(qrels)
    if listing is not None and judged is not None:
        check_judged(judged["query_id"], [listing], qrels)
    listed = ProbedList.of(listing, judged, depth, collection, queries, sample, seed)
    pairing = paired(given, listed, words, seed)
    prompts = Prompts(query_prompt, document_prompt)
    if model == "bm25" and not os.path.isdir("bm25"):
        from evenrank.search.bm25 import BM25Scorer

        model = BM25Scorer(collection, quiet=quiet)
    ranker = find_ranker(model, kind=kind, device=device, precision=precision, prompts=prompts)
    versions = Versions.of(listed, {one.name: one.texts for one in pairing.every})
    scores, found = versions.score(ranker, batch_size, keep, quiet)
    deviation = spread(scores[""], listed.query)
    if np.isnan(deviation).all():
        why = "" if np.bincount(listed.query).max() > 1 else "; a list needs two passages or more"
        more = f": take a larger {arg.depth}" if why and listing is not None else ""
        raise EvenrankError(
            f"{ranker.name}: the scores of the passages of a query do not vary, for any query{why}{more}"
        )
    settings = {"model": _named(model, ranker), "ranker": found.facts, "depth": None if run is None else depth}
    settings |= {"sample": sample, "sampled_from": listed.sampled_from, "seed": seed, "batch_size": batch_size}
    settings |= {"lexicon": None if words is None else words.name}
    before = () if listing is None else listing.notes
    beside, cut = any(placebo for _, placebo in pairing.variants), found.truncated is None or found.truncated.cut
    scorer = ranker if isinstance(ranker, Scorer) or not (beside or cut) else ranker.load()
    lengths = text_lengths(versions.texts, scorer if beside and isinstance(scorer, Scorer) else None)
    comparison = Comparison.of(listed, pairing, versions, words, seed, lengths)
    figures = comparison.figures(scores, deviation[listed.query])
    said = [*before, *_sample_notes(listed, seed), *pairing.notes]
    if cut and isinstance(scorer, Scorer):
        said += reading_notes(comparison, scores, deviation[listed.query], scorer)
    said += [*_list_notes(listed), *_ranker_notes(ranker, found)]
    result = ProbeResult(
        ranker.name,
        listed.name,
        listed.size,
        len(deviation),
        len(listed.pairs.documents),
        int(np.isnan(deviation).sum()),
        run_figures(listed.ranked(scores[""], ranker.name), listed.passages(), judged, words, seed),
        figures,
        settings,
        tuple(said),
        provenance=made,
    )
    found.forget()
    return result


def _sample_notes(listed: ProbedList, seed: int) -> tuple[str, ...]:
    if listed.sampled_from is None:
        return ()
    drawn = listed.table["query_id"].n_unique()
    return (f"A sample: {drawn:,} of {counted(listed.sampled_from, 'query')}, drawn with seed {seed}",)


def _list_notes(listed: ProbedList) -> Iterator[str]:
    """What makes the figures rough: short lists."""
    median = float(np.median(np.bincount(listed.query)))
    if median < SHORT:
        few = counted(int(median), "passage")
        yield f"half of the lists have {few} or fewer: the standard deviation of so few scores is rough"


def _ranker_notes(ranker: StoredRanker | Scorer, found: ScoredPairs) -> tuple[str, ...]:
    """What is to be said of the ranker and of how it scored."""
    said = ranker_note(ranker.name, found.facts)
    notes = [] if said is None else [said]
    if found.resumed:
        notes.append(f"{ranker.name}: {found.resumed} scores kept from an interrupted probe")
    if found.truncated is not None:
        notes += found.truncated.notes(ranker.name)
    if isinstance(ranker, Scorer):
        notes += ranker.notes()
    return tuple(notes)


def _named(model: object, ranker: StoredRanker | Scorer) -> str:
    return os.fspath(model) if is_path(model) else ranker.name


def _provenance(
    model: object,
    sources: Mapping[str, object],
    given: Sequence[Given],
    lexicon: LexiconLike | None,
) -> Provenance:
    made = Provenance("evenrank.probe")
    if model == "bm25" and not os.path.isdir("bm25"):
        made.name("model", "bm25", "computed here")
    elif is_path(model):
        made.add_model("model", model)
    else:
        address = shown_address(model)
        made.name("model", address or type(model).__name__, "asked over HTTP" if address else "in memory")
    for role, source in sources.items():
        made.add(role, source)
    for one in given:
        role = f"placebo of {one.name}" if one.placebo else f"variant {one.name}"
        if one.source is None:
            made.name(role, one.name, "made in memory")
        else:
            made.add(role, one.source.table if isinstance(one.source, Varied) else one.source)
    if lexicon is not None:
        note_lexicon(made, lexicon)
    return made
