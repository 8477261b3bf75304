"""The page "What reproduces and what does not": every claim of the papers, and the verdict at each scale that was run.

python docs/reproduced.py FOLDER… takes the verdicts of finished experiments (their ``results.json``) into
``docs/reproduced``, and makes the page ``docs/reproduces.md`` of all that is there.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "reproduced"
PAGE = Path(__file__).parent / "reproduces.md"
INTRODUCTION = """# What reproduces and what does not

The claims of the five papers, and what evenrank's own runs of their experiments show. A claim is *supported* if the
95% interval of its figure (90% for equivalence: two one-sided tests at 5%) lies on the claimed side, *not supported* if
it lies on the other side, and otherwise *not decidable* with this n; then the n is given that would decide if the mean
and the spread stayed as they are. A claim that a broken ranker would fulfil too also needs the ranker to be above BM25.

The scales differ in what they can show ([the experiments](guides/experiments.md)). *tiny* is a synthetic collection
in which the amount of bias is known: it shows whether the mechanism works. *real* is real text with a small
pre-trained encoder: on two parts of SQuAD 2.0 (16 articles with 2,910 answered questions, and 20 articles without
answers, given with `--squad`) and on Grep-BiasIR (`--grepbiasir`). *full*, with the published data and settings,
needs a GPU. A scale that is not among the runs below has not been run. Settings were chosen on development seeds,
with data of their own at *tiny*; the reported seeds were run once."""
STATES = ("supported", "not supported", "not decidable")
Run = Mapping[str, Any]


def keep(folder: Path, to: Path = KEPT) -> Path:
    """Writes what the page needs of an experiment's ``results.json``; returns the file."""
    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    made = found["provenance"]
    kept = {
        "experiment": found["experiment"],
        "scale": found["facts"]["scale"],
        "facts": found["facts"],
        "evenrank": found["evenrank"],
        "date": made["date"],
        "warnings": found["warnings"],
        "claims": found["claims"],
    }
    to.mkdir(exist_ok=True)
    file = to / f"{kept['experiment']}-{kept['scale']}.json"
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


def runs(folder: Path = KEPT) -> list[Run]:
    """The experiments that were run, from the smallest scale."""
    from evenrank.papers import NAMES, SCALES

    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda run: (NAMES.index(run["experiment"]), SCALES.index(run["scale"])))


def page(found: list[Run]) -> str:
    """The page: a summary, the runs, and every claim of each paper with its verdicts."""
    from evenrank.papers.paper_page import PAPERS
    from evenrank.results.page import CITATIONS

    citations = {
        "ibbr": CITATIONS["IBBR"],
        "sampling": CITATIONS["BAS"],
        "advbert": CITATIONS["RKS21"],
        "expansion": SOURCE,
        "position": CITATIONS["POS"],
    }
    parts = [INTRODUCTION, "## At a glance", _SUMMED, _summary(found), _ran(found)]
    for paper in PAPERS:
        cited = citations[paper]
        source = f"[{cited[0]}]({cited[1]})" if cited[1] else cited[0]
        parts += [f"## {TITLES[paper]}", f"{source}.", *_claims(paper, found)]
    return "\n\n".join(parts) + "\n"


TITLES = {
    "ibbr": "In-batch balancing regularization",
    "sampling": "Bias-aware negative sampling",
    "advbert": "AdvBert",
    "expansion": "Debiased embeddings in query expansion",
    "position": "Position bias",
}
SOURCE = ("Gerritse and de Vries: Effect of debiasing on information retrieval. BIAS at ECIR 2020", "")


def _of(paper: str, key: str, found: list[Run], scale: str | None = None) -> list[tuple[str, Run]]:
    """The scale and the verdict of each measurement of a claim: an experiment can have several collections."""
    return [
        (run["scale"], claim)
        for run in found
        if scale in (None, run["scale"])
        for claim in run["claims"]
        if (claim["paper"], claim["key"]) == (paper, key)
    ]


def _overall(claims: list[tuple[str, Run]]) -> str:
    """The verdict of several measurements: supported if all are, not supported if one is not."""
    states = {claim["verdict"] for _, claim in claims}
    if states == {"supported"}:
        return "supported"
    return "not supported" if "not supported" in states else "not decidable"


_SUMMED = (
    "Where a scale measures a claim several times (on two collections, with two kinds of vectors), it counts as"
    " supported if all of them support it, and as not supported if one does not."
)


def _summary(found: list[Run]) -> str:
    """How many claims of each paper are supported, not supported and not decidable, by scale."""
    from evenrank.papers import SCALES
    from evenrank.papers.paper_page import PAPERS, statements

    lines = ["| paper | scale | claims of the paper | " + " | ".join(STATES) + " | not measured |"]
    lines.append("| --- | --- " + "| ---: " * 5 + "|")
    for paper in PAPERS:
        known = [key for key, one in statements(paper).items() if one.where]
        for scale in SCALES:
            measured = {key: claims for key in known if (claims := _of(paper, key, found, scale))}
            counts = Counter(map(_overall, measured.values()))
            numbers = [str(counts[state]) for state in STATES] if measured else ["–"] * len(STATES)
            cells = [TITLES[paper], scale, str(len(known)), *numbers, str(len(known) - len(measured))]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _ran(found: list[Run]) -> str:
    lines = ["Runs on this page:", ""]
    for run in found:
        facts = ", ".join(f"{name} {value}" for name, value in run["facts"].items() if name != "scale")
        command = f"evenrank experiment {run['experiment']} --scale {run['scale']}"
        lines.append(f"- `{command}`, {run['date'][:10]}: {_cell(facts)}")
        lines += [f"    - {_cell(warning)}" for warning in run["warnings"]]
    return "\n".join(lines)


def _claims(paper: str, found: list[Run]) -> Iterator[str]:
    """The paper's claims, then the lines that the experiment itself has to reach."""
    from evenrank.papers.paper_page import statements

    known = statements(paper)
    for heading, ours in (("", False), ("Lines that our experiment has to reach:", True)):
        rows = []
        for key, statement in known.items():
            if bool(statement.where) == ours:
                continue
            measured = _of(paper, key, found)
            published = f" Published: {statement.published}." if statement.published else ""
            where = f" ({statement.where})" if statement.where else ""
            rows.append(f"| {_cell(statement.text + where + '.' + published)} | | not run | |" if not measured else "")
            for number, (scale, claim) in enumerate(measured):
                text = "" if number else _cell(statement.text + where + "." + published)
                needs = f"; {claim['needs']} would decide" if claim["needs"] else ""
                rows.append(f"| {text} | {scale} | **{claim['verdict']}** | {_cell(claim['detail'] + needs)} |")
        if any(rows):
            if heading:
                yield heading
            yield "\n".join(
                ["| claim | scale | verdict | measured |", "| --- | --- | --- | --- |", *filter(None, rows)]
            )


def _cell(text: str) -> str:
    for mark, escaped in (("&", "&amp;"), ("<", "&lt;"), ("|", "&#124;"), ("*", "\\*"), ("_", "\\_"), ("`", "\\`")):
        text = text.replace(mark, escaped)
    return " ".join(text.split())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(keep(Path(name)))
    PAGE.write_text(page(runs()), encoding="utf-8")
