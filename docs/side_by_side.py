"""The page "MiniLM beside BM25": all-MiniLM-L6-v2 as first stage and as re-ranker on three collections, audited.

python docs/side_by_side.py DATA MODEL measures on the public data in the folder DATA (``grepbiasir``, ``squad2``) and
on the built-in collection, with the model in the folder MODEL, into ``docs/side-by-side/measured.json``; with or
without arguments, the page ``docs/side-by-side.md`` is made of what is kept there.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "side-by-side" / "measured.json"
PAGE = Path(__file__).parent / "side-by-side.md"
DEPTH = 100
MEASURES = ("nDCG@10", "RR@10", "NFaiRR@10", "ARaB@10")
BM25, RERANKED, DENSE, FUSED = "BM25", "BM25 → MiniLM", "MiniLM", "BM25 + MiniLM"
Found = Mapping[str, Any]


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(data: Path, model: str) -> dict[str, Any]:
    """All figures of the page."""
    import evenrank

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        return {
            "evenrank": evenrank.__version__,
            "collections": {
                name: side_by_side(*make(folder / name, data), folder / name, model) for name, make in SETS.items()
            },
        }


def _grepbiasir(folder: Path, data: Path) -> tuple[Path, Path, Path]:
    home = data / "grepbiasir"
    return home / "collection.tsv", home / "queries.tsv", home / "qrels.txt"


def _squad(folder: Path, data: Path) -> tuple[Path, Path, Path]:
    import evenrank

    both = [
        json.loads((data / "squad2" / name).read_text(encoding="utf-8"))
        for name in ("answered.json", "unanswered.json")
    ]
    folder.mkdir(exist_ok=True)
    whole = folder / "squad.json"
    whole.write_text(json.dumps({"version": "v2.0", "data": [*both[0]["data"], *both[1]["data"]]}), encoding="utf-8")
    evenrank.write_squad_collection([whole], folder)
    return folder / "collection.tsv", folder / "queries.tsv", folder / "qrels.txt"


def _built_in(folder: Path, data: Path) -> tuple[Path, Path, Path]:
    import evenrank

    config = evenrank.SyntheticConfig(passages=1000, male_share=0.6, relevance_male_share=0.8, answer_position="early")
    evenrank.generate(config).write(folder)
    return folder / "collection.tsv", folder / "queries.tsv", folder / "qrels.txt"


SETS = {"grepbiasir": _grepbiasir, "squad": _squad, "built-in": _built_in}


def runs(collection: Path, queries: Path, folder: Path, model: str) -> dict[str, Any]:
    """The four rankings."""
    import evenrank

    folder.mkdir(exist_ok=True)
    index = folder / "index"
    evenrank.build_index(collection, index, model=model, quiet=True)
    first = evenrank.retrieve(collection, queries, DEPTH, quiet=True)
    dense = evenrank.retrieve(index, queries, DEPTH, quiet=True)
    return {
        BM25: first,
        RERANKED: evenrank.rerank(first, model, collection, queries, DEPTH, quiet=True),
        DENSE: dense,
        FUSED: evenrank.interpolate([first, dense], [0.5, 0.5], FUSED),
    }


def side_by_side(collection: Path, queries: Path, qrels: Path, folder: Path, model: str) -> dict[str, Any]:
    """The audit of the four rankings."""
    import evenrank

    ranked = runs(collection, queries, folder, model)
    result = evenrank.audit(
        ranked,
        baseline=BM25,
        stages=[BM25, RERANKED],
        collection=collection,
        queries=queries,
        qrels=qrels,
        measures=" ".join(MEASURES),
    )
    audit = result.to_dict()
    return {
        "queries": audit["runs"][BM25]["queries"],
        "notes": list(ranked[DENSE].notes),
        "runs": {name: {key: _kept(result[name, key]) for key in MEASURES} for name in audit["runs"]},
        "findings": [of.sentence() for of in result.stages.measures.values()],
    }


def _kept(figure: Any) -> dict[str, Any]:
    """What the page shows of a figure."""
    against = figure.vs_baseline
    tests = None if against is None else {"holm_p": against.holm_p, "tie_p": against.tie_p}
    return {"mean": figure.mean, "ci95": figure.ci95, "vs_baseline": tests}


# --- the page ---------------------------------------------------------------------------------------------------------

INTRODUCTION = """# MiniLM beside BM25

all-MiniLM-L6-v2, a bi-encoder of 22 million parameters, as a first stage of its own (`MiniLM`: exact search of all
vectors), as a re-ranker of BM25's first 100 (`BM25 → MiniLM`) and fused with BM25 (`BM25 + MiniLM`, equal weights),
audited with BM25 as the baseline. Group words are those of `gender-en`; ARaB is male minus female. `random` and
`neutral-first` order BM25's candidates. A star marks a difference from BM25 with p < .05 after Holm's correction, a
tilde one that goes away averaged over the orders of tied documents: BM25 has many where passages differ in one word.
[First stages](guides/first-stages.md) and [any ranker](guides/rankers.md) say how such runs are made."""

HEADINGS = {
    "grepbiasir": "## Grep-BiasIR: 117 queries about gender, 702 documents in three wordings",
    "squad": "## SQuAD 2.0: questions about 36 Wikipedia articles",
    "built-in": "## The built-in collection: a planted lean",
}


def page(kept: Found) -> str:
    """The page as Markdown."""
    parts = [INTRODUCTION]
    for name, heading in HEADINGS.items():
        parts += [heading, *_of_collection(kept["collections"][name])]
    parts.append(
        "*`python docs/side_by_side.py DATA MODEL` measures it (evenrank "
        f"{kept['evenrank']}); the public data are Krieg et al. 2022 (Grep-BiasIR) and Rajpurkar et al. 2018 (SQuAD).*"
    )
    return "\n\n".join(parts) + "\n"


def _of_collection(found: Found) -> Iterator[str]:
    lines = [f"| run | {' | '.join(MEASURES)} |", "|---|" + "---:|" * len(MEASURES)]
    for name, measures in found["runs"].items():
        shown = f"({name})" if name in ("random", "neutral-first") else name
        lines.append(f"| {shown} | " + " | ".join(_figure(measures[key]) for key in MEASURES) + " |")
    yield f"{found['queries']:,} queries. Means with 95% intervals:"
    yield "\n".join(lines)
    yield "\n".join(f"- {sentence}" for sentence in found["findings"])


def _figure(figure: Found) -> str:
    if figure["mean"] is None:
        return "–"
    low, high = figure["ci95"]
    return f"{figure['mean']:.3f}{_mark(figure.get('vs_baseline') or {})} [{low:.3f}, {high:.3f}]"


def _mark(against: Found) -> str:
    """A star for a significant difference from BM25; a tilde if it is not one averaged over the orders of ties."""
    if against.get("holm_p") is None or against["holm_p"] >= 0.05:
        return ""
    tied = against.get("tie_p")
    return "~" if tied is not None and tied >= 0.05 else "*"


def main(arguments: list[str]) -> None:
    """Measures if DATA and MODEL are given, and makes the page."""
    if arguments:
        data, model = arguments
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(measure(Path(data), model), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(KEPT.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
