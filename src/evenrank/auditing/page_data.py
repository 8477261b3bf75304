"""The data of the report's script as JSON values: figures, values by query, rankings and marked passages."""

from __future__ import annotations

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files.convert import PathLike
from evenrank.files.texts import select_texts
from evenrank.files.types import Array
from evenrank.groups import Lexicon, gendered_spans
from evenrank.measures import NeutralityMeasure, resolve
from evenrank.measures.exposure import Exposure, Share
from evenrank.measures.neutrality import FaiRR, NFaiRR
from evenrank.measures.rank_bias import AbsARaB, ARaB, RaB

from .data import RANDOM, REFERENCES, AuditFigures
from .poles import group_label, labelled, passages, poles
from .poles import groups as group_names
from .selected_measures import pick, shows_queries

ENTRY_CAP = 6_000
"""The most entries of rankings that the page contains: as many queries as they make up, the most telling ones."""
VALUE_CAP = 1_000
"""The most queries whose values the page contains; a larger audit is sampled at even steps."""
TEXT_BUDGET = 1_100_000
"""About how many characters of passages the page contains in all."""
TEXT_LEAST, TEXT_MOST = 200, 4000
LEAD = 80
"""Characters before the first marked word in an excerpt that does not start with the passage."""


def runs_and_measures(result: AuditFigures) -> dict[str, object]:
    """The runs and the measures."""
    return {
        "runs": [
            {"name": run.name, "reference": run.reference, "baseline": run.name == result.baseline}
            for run in result.runs
        ],
        "measures": [_measure(result, measure) for measure in result.measures],
    }


def _measure(result: AuditFigures, measure: Measure) -> dict[str, object]:
    return {
        "name": str(measure),
        "signs": _signs(result, measure),
        "perQuery": _per_query(result, measure),
    }


def _per_query(result: AuditFigures, measure: Measure) -> bool:
    """Whether a measure has values of single queries in some audited run."""
    return any(shows_queries(result, run.measures[str(measure)]) for run in result.given)


def _signs(result: AuditFigures, measure: Measure) -> tuple[str, str]:
    """What a positive and a negative difference mean for the first of two runs."""
    if measure.NAME in (Share.NAME, Exposure.NAME):
        group = group_label(measure["group"], group_names(result))
        return f"has more of group {group}", f"has less of group {group}"
    pair, how = poles(result, measure), resolve(measure)
    if how.signed and not how.whole_run and pair is not None:
        return f"leans more towards {passages(pair[0], pair)}", f"leans more towards {passages(pair[1], pair)}"
    if isinstance(measure, NeutralityMeasure):
        return "is more neutral", "is less neutral"
    if how.better == "nearer zero":
        return "leans further", "leans less"
    return "is better", "is worse"


def compared(result: AuditFigures) -> tuple[int, int]:
    """The numbers of the two runs whose difference is shown at first: a run and the baseline.

    Without a baseline, the second run and the first; a single run is compared with the random order, or where that has
    no values of single queries, with another reference that has.
    """
    places = [place for place, run in enumerate(result.runs) if not run.reference]
    if len(places) == 1:
        measure = focus(result)
        others = [place for place, run in enumerate(result.runs) if run.reference]
        shown = [
            p for p in others if measure and shows_queries(result, result.runs[p].measures[str(measure)])
        ] or others
        random = next((place for place in shown if result.runs[place].name == RANDOM), None)
        return places[0], random if random is not None else (shown or places)[0]
    base = next((place for place in places if result.runs[place].name == result.baseline), places[0])
    return next(place for place in places if place != base), base


def rounded(value: object, digits: int = 6) -> object:
    """A float with so many significant digits, None if it is not finite; anything else as it is."""
    if isinstance(value, float | np.floating):
        return float(f"{value:.{digits}g}") if np.isfinite(value) else None
    return value


# --- values of queries -----------------------------------------------------------------------------------------------


def values(result: AuditFigures, shown: Array) -> dict[str, object]:
    """Values [measure][run][query] of all queries, or of a sample of ``VALUE_CAP``, and then of the others ``shown``.

    ``sampled`` is the number of queries in the first part, which represents the whole audit.
    """
    total = len(result.queries)
    sample = np.unique(np.linspace(0, total - 1, min(total, VALUE_CAP)).astype(np.int64))
    places = np.concatenate([sample, shown[~np.isin(shown, sample)]])
    return {
        "ids": result.queries.gather(places).to_list(),
        "sampled": len(sample),
        "total": total,
        "values": [
            [
                [rounded(value, 4) for value in run.measures[str(measure)].values[places].tolist()]
                if shows_queries(result, run.measures[str(measure)])
                else None
                for run in result.runs
            ]
            for measure in result.measures
        ],
    }


def focus(result: AuditFigures) -> Measure | None:
    """The measure by which queries are selected: the lean of the first ranks if the audit has one."""
    per_query = [measure for measure in result.measures if _per_query(result, measure)]
    lean = pick(result, ARaB, RaB, AbsARaB, NFaiRR, FaiRR)
    return lean if lean in per_query else next(iter(per_query), None)


def query_cap(result: AuditFigures) -> int:
    """How many queries' rankings the page contains."""
    each = result.rankings.height / max(1, len(result.queries))
    return max(1, int(ENTRY_CAP / max(1.0, each)))


def most_telling(result: AuditFigures, cap: int) -> Array:
    """Numbers of the ``cap`` queries with the largest difference from the baseline, or the largest value, in order."""
    measure = focus(result)
    if measure is None:
        return np.arange(min(cap, len(result.queries)))
    shown = [run.measures[str(measure)] for run in result.given if shows_queries(result, run.measures[str(measure)])]
    by_run = np.stack([figure.values for figure in shown])
    if result.baseline is not None and len(result.given) > 1:
        by_run = by_run - result[result.baseline].measures[str(measure)].values
    strength = np.where(np.isnan(by_run), -1.0, np.abs(by_run)).max(axis=0)
    return np.argsort(-strength, kind="stable")[:cap]


# --- rankings and passages -------------------------------------------------------------------------------------------


def browser(result: AuditFigures, shown: Array) -> dict[str, object]:
    """The queries numbered ``shown`` with the first documents of every run; each document once, its words marked.

    A passage is a list of strings and [group number, word] pairs. ``texts`` and ``queryTexts`` tell whether there are
    texts at all.
    """
    ids = result.queries.gather(shown)
    groups = group_names(result)
    runs = listed(result)
    rows = result.rankings.join(pl.DataFrame({"query_id": ids}), on="query_id", how="semi")
    documents = rows.unique("doc_id", keep="first", maintain_order=True)
    number = {doc_id: place for place, doc_id in enumerate(documents["doc_id"])}
    rankings: dict[tuple[str, str], list[list[object]]] = {}
    for row in rows.iter_rows(named=True):
        score = None if row["run"] in REFERENCES else rounded(row["score"])
        entry = [number[row["doc_id"]], score, int(bool(row["tied"])), row["relevance"]]
        rankings.setdefault((row["query_id"], row["run"]), []).append(entry)
    query_texts = None if result.query_texts is None else dict(result.query_texts.iter_rows())
    passages, available = _passages(result, documents, groups)
    if result.words is not None:
        in_document = dict(result.words.in_document.iter_rows())
        for passage in passages:
            passage["words"] = in_document.get(passage["id"], [])
    return {
        "runs": runs,
        "groups": _group_labels(groups),
        "labelled": labelled(result),
        "total": len(result.queries),
        "texts": available,
        "queryTexts": query_texts is not None,
        "marked": available and result.lexicon is not None,
        "words": list(result.words.names) if result.words is not None else [],
        "documents": passages,
        "queries": [
            {
                "id": query_id,
                "text": (query_texts or {}).get(query_id),
                "rankings": [rankings.get((query_id, run), []) for run in runs],
            }
            for query_id in ids
        ],
    }


def listed(result: AuditFigures) -> list[str]:
    """The names of the runs whose rankings are shown; a reference that is a mean over orders has none."""
    ranked = set(result.rankings["run"].unique())
    return [run.name for run in result.runs if not run.reference or run.name in ranked]


def _group_labels(groups: list[str]) -> list[dict[str, str]]:
    """Each group's name, label, and the shortest prefix that no other group shares."""
    labels = []
    for group in groups:
        others = [other for other in groups if other != group]
        lengths = (n for n in range(1, len(group) + 1) if not any(other.startswith(group[:n]) for other in others))
        short = group[: next(lengths, len(group))]
        labels.append({"name": group, "short": short, "label": group_label(group, groups)})
    return labels


def _passages(result: AuditFigures, documents: pl.DataFrame, groups: list[str]) -> tuple[list[dict[str, object]], bool]:
    """Each document's id, neutrality, counts (of labels: weights) and marked text, and whether there is a collection.

    A document that is not known has neither neutrality nor counts.
    """
    texts = None if result.collection is None else _texts(result.collection, documents["doc_id"])
    most = int(np.clip(TEXT_BUDGET / max(1, documents.height), TEXT_LEAST, TEXT_MOST))
    passages = []
    for row in documents.iter_rows(named=True):
        counts = [rounded(row.get(f"count_{group}")) for group in groups]
        passage: dict[str, object] = {"id": row["doc_id"], "neutrality": rounded(row["neutrality"]), "counts": counts}
        text = (texts or {}).get(row["doc_id"])
        if text is not None:
            # With whitespace tokens, words can be marked in a text whose count is 0.
            silent = result.settings.get("tokens") == "word" and not any(counts)
            lexicon = None if silent else result.lexicon
            pieces, start = excerpt(mark(text, lexicon, groups), most)
            passage["text"] = pieces
            if start:
                passage["start"] = start
            if len(text) > most:
                passage["length"] = len(text)
        passages.append(passage)
    return passages, texts is not None


def _texts(collection: PathLike | pl.DataFrame, ids: pl.Series) -> dict[str, str]:
    return dict(pl.concat(select_texts(collection, [ids])).select("doc_id", "text").iter_rows())


Piece = str | tuple[int, str]


def excerpt(pieces: list[Piece], most: int) -> tuple[list[Piece], int]:
    """At most ``most`` characters of a marked text, those with the most marked words, and where they start."""
    texts = [piece if isinstance(piece, str) else piece[1] for piece in pieces]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    if not len(ends) or ends[-1] <= most:
        return pieces, 0
    starts = ends - [len(text) for text in texts]
    words = np.array([not isinstance(piece, str) for piece in pieces])
    first, last = starts[words], ends[words]
    start = 0
    if len(first) and not (last <= most).all():
        begins = np.maximum(0, first - min(LEAD, most // 4))
        within = np.searchsorted(last, begins + most, side="right") - np.arange(len(first))
        start = int(min(begins[int(within.argmax())], ends[-1] - most))
    cut: list[Piece] = []
    for piece, text, begin, end in zip(pieces, texts, starts.tolist(), ends.tolist(), strict=True):
        if isinstance(piece, str):
            cut.append(text[max(0, start - begin) : max(0, start + most - begin)])
        elif start <= begin and end <= start + most:
            cut.append(piece)
        elif begin < start + most and end > start:
            # A word that is cut in two is not marked.
            cut.append(text[max(0, start - begin) : start + most - begin])
    return [piece for piece in cut if piece], start


def mark(text: str, lexicon: Lexicon | None, groups: list[str]) -> list[Piece]:
    """A text as strings and, for words of the lexicon, [group number, word] pairs."""
    pieces: list[Piece] = []
    place = 0
    for start, end, group in gendered_spans(text, lexicon) if lexicon is not None else []:
        if group not in groups:
            continue
        if start > place:
            pieces.append(text[place:start])
        pieces.append((groups.index(group), text[start:end]))
        place = end
    if place < len(text):
        pieces.append(text[place:])
    return pieces
