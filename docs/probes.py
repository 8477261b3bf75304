"""The page "Rankers probed": what BM25, MiniLM and its first layers react to.

python docs/probes.py DATA MODEL measures on the public data in the folder DATA (``grepbiasir``, ``nq_utd``) with
all-MiniLM-L6-v2 in the folder MODEL, into ``docs/probes/measured.json``, in a few minutes on two cores; with or without
arguments, the page ``docs/probes.md`` is made of what is kept there.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "probes" / "measured.json"
PAGE = Path(__file__).parent / "probes.md"
RANKERS = ("BM25", "MiniLM", "MiniLM, 2 layers")
Found = Mapping[str, Any]


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(data: Path, model: str) -> dict[str, Any]:
    """All figures of the page."""
    import evenrank

    with tempfile.TemporaryDirectory() as scratch:
        rankers = _rankers(model, Path(scratch))
        return {
            "evenrank": evenrank.__version__,
            "grepbiasir": {name: _grepbiasir(data / "grepbiasir", one) for name, one in rankers.items()},
            "nq_utd": {name: _authors(data / "nq_utd", one) for name, one in rankers.items()},
        }


def _rankers(model: str, folder: Path) -> dict[str, Any]:
    """The rankers by name."""
    from evenrank.models.encoders import DotRanker

    DotRanker.from_pretrained(model, layers=2, pooling="mean", similarity="cosine", passage_length=256).save(
        folder / "two"
    )
    return dict(zip(RANKERS, ("bm25", model, str(folder / "two")), strict=True))


def _grepbiasir(home: Path, ranker: Any) -> dict[str, Any]:
    """The swap."""
    import evenrank

    result = evenrank.probe(
        ranker,
        variants=["swap"],
        collection=home / "collection.tsv",
        queries=home / "queries.tsv",
        qrels=home / "qrels.txt",
    )
    return _kept(result)


def _authors(home: Path, ranker: Any) -> dict[str, Any]:
    """The same passages as a language model rewrote them."""
    import polars as pl

    import evenrank

    qrels = pl.read_csv(home / "qrels.tsv", separator="\t", infer_schema_length=None)
    qrels.columns = ["query_id", "doc_id", "relevance"]
    result = evenrank.probe(
        ranker,
        variants={"llama2": home / "llama2.jsonl"},
        collection=home / "human.jsonl",
        queries=home / "queries.jsonl",
        qrels=qrels,
    )
    return _kept(result)


def _kept(result: Any) -> dict[str, Any]:
    """What the page shows of a probe."""
    found = json.loads(result.to_json())
    figures = ("effect", "placebo", "finding", "beyond_placebo", "swap", "rank_shift", "enters", "leaves", "counts")
    kept = {name: {key: one[key] for key in figures} for name, one in found["variants"].items()}
    sizes = {key: found[key] for key in ("pairs", "queries", "passages", "still")}
    return {**sizes, "original": found["original"], "variants": kept}


# --- the page ---------------------------------------------------------------------------------------------------------

INTRODUCTION = """# Three rankers probed

[Probes](guides/probes.md) of BM25, of all-MiniLM-L6-v2 as it is (`MiniLM`), and of its first two layers without further
training (`MiniLM, 2 layers`). Effects are in standard deviations of the scores of a query's list, with 95% intervals
over queries and passages. A preference is the effect beyond the placebo, at equal length. A star marks what is shown
(p < .05, corrected for the variants of a probe but not for the rankers)."""


def page(kept: Found) -> str:
    """The page as Markdown."""
    parts = [INTRODUCTION, "## Group words swapped: Grep-BiasIR", *_swaps(kept["grepbiasir"])]
    parts += ["## People's text against Llama 2's", *_of_authors(kept["nq_utd"])]
    parts.append(
        f"*`python docs/probes.py DATA MODEL` measures it (evenrank {kept['evenrank']}); the public data are Krieg et "
        "al. 2022 (Grep-BiasIR) and Dai et al. 2024 (Cocktail's NQ-UTD).*"
    )
    return "\n\n".join(parts) + "\n"


def _effect(found: Found | None, star: bool = False) -> str:
    if found is None or found["mean"] is None:
        return "–"
    if found["mean"] == 0 and found["ci95"] is None:
        return "0"
    ends = "" if found["ci95"] is None else " [{:+.3f}, {:+.3f}]".format(*found["ci95"])
    return f"{found['mean']:+.3f}{'*' if star else ''}{ends}"


def _found(variant: Found) -> bool:
    return bool(variant["finding"]["verdict"] == "shown")


def _table(head: list[str], lines: list[list[str]]) -> str:
    rules = "|---|" + "---:|" * (len(head) - 1)
    return "\n".join([f"| {' | '.join(head)} |", rules, *(f"| {' | '.join(line)} |" for line in lines)])


def _swaps(found: Found) -> Iterator[str]:
    any_one = next(iter(found.values()))
    yield (
        f"{any_one['queries']} queries with their {any_one['pairs']} judged passages. Above 0 the ranker prefers male "
        "wording, whichever wording the passage has:"
    )
    head = ["ranker", "swap", "placebo", "preference", "detectable", "nDCG@10"]
    lines = []
    for name, of in found.items():
        swap = of["variants"]["swap"]
        finding = swap["finding"]
        seen = "–" if finding["mde"] is None else f"{finding['mde']:.3f}"
        effects = _effect(swap["effect"]), _effect(swap["placebo"]), _effect(finding, _found(swap))
        lines.append([name, *effects, seen, f"{of['original']['nDCG@10']['mean']:.3f}"])
    yield _table(head, lines)
    yield "\n".join(f"- {name}: {_sentence(of['variants']['swap'])}" for name, of in found.items())


def _sentence(swap: Found) -> str:
    wording = "the male wording", "the female wording"
    return _said(swap, *wording)


def _said(variant: Found, above: str, below: str) -> str:
    """The verdict: shown, no difference shown, or cannot be told."""
    finding = variant["finding"]
    if finding["verdict"] == "cannot be told":
        return f"cannot be told, as {finding['reason']}."
    if finding["verdict"] == "shown":
        return f"prefers {above if finding['mean'] > 0 else below}, {_effect(finding)} sd."
    if not finding["mde"]:
        return "no preference shown, as no score changes."
    return (
        f"no preference shown; true ones below {finding['mde']:.3f} sd are missed in at least one of five such samples."
    )


def _of(variant: Found) -> str:
    return _effect(variant["finding"], _found(variant))


def _of_authors(found: Found) -> Iterator[str]:
    any_one = next(iter(found.values()))
    yield (
        f"{any_one['queries']} queries with their {any_one['pairs']} judged passages, written by people and rewritten "
        "by Llama 2. The two also differ in length and in overlap with the query. Above 0 the ranker prefers Llama 2's:"
    )
    of_llama = {name: of["variants"]["llama2"] for name, of in found.items()}
    yield _table(["ranker", "effect"], [[name, _of(one)] for name, one in of_llama.items()])
    yield "\n".join(f"- {_author(name, one)}" for name, one in of_llama.items())


def _author(name: str, variant: Found) -> str:
    said = _said(variant, "Llama 2's text", "people's text")
    return f"{name}: {said}"


def main(arguments: list[str]) -> None:
    """Measures if DATA and MODEL are given, and makes the page."""
    if arguments:
        data, model = arguments
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(measure(Path(data), model), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(KEPT.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
