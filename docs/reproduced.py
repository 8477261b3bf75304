"""The page "What reproduces and what does not": every claim of the papers, and the verdict at each scale that was run.

python docs/reproduced.py FOLDER… takes from finished experiments the values by query of the figures that claims name
(Parquet) and what a reader has to know of the run (JSON) into ``docs/reproduced``, decides every claim by these values,
and makes the page ``docs/reproduces.md`` of all that is there. python docs/reproduced.py --power FOLDER… takes n and
power of the published effects from runs on development seeds into the claims' ``power.csv``.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "reproduced"
PAGE = Path(__file__).parent / "reproduces.md"
POWER = Path(__file__).parent.parent / "src/evenrank/papers/claims/power.csv"
INTRODUCTION = """# What reproduces and what does not

Every claim of the five papers, and what evenrank's own runs of their experiments show."""
READING = """A claim is *supported* (●) if the 95% interval of each of its figures (90% for equivalence: two one-sided
tests at 5%) lies on the claimed side, *not supported* (○) if one lies on the other side, *undecided* (·) otherwise,
with what it needs. "No significant change" needs p > .05 and the margin that the claim states. A claim of every ranker
is supported if each that ran supports it. A claim that a broken ranker would fulfil too needs a ranker above BM25 to be
supported; a significant result the other way refutes it in any case. n and power of the published effects were reckoned
from the development seeds and written before the reported runs. Figures of the papers' tables that their texts do not
claim stand as rows, without a verdict, on the experiments' own pages.

*tiny* is a synthetic collection in which the amount of bias is known: it shows whether the mechanism works. *real* is
real text and real weights on a CPU ([the experiments](guides/experiments.md)). *full*, with the published data and
settings, needs a GPU and has not been run. Settings were chosen on development seeds, which at *real* divide the same
queries otherwise; the reported seeds were run once. *Not … as published*: the interval excludes the published effect,
taken in relation to the level here.
all-MiniLM-L6-v2 was trained on SQuAD 2.0 and NQ among others, so its figures on SQuAD are not zero-shot."""
MARKS = {"supported": "●", "not supported": "○", "undecided": "·"}
ROUND = ("tiny", "real")
TITLES = {
    "ibbr": "In-batch balancing regularization",
    "sampling": "Bias-aware negative sampling",
    "expansion": "Debiased embeddings in query expansion",
    "position": "Position bias",
}
SOURCE = ("Gerritse and de Vries: Effect of debiasing on information retrieval. BIAS at ECIR 2020", "")
Run = Mapping[str, Any]


def keep(folder: Path, to: Path = KEPT) -> Path:
    """Writes what the page needs of an experiment that ran; returns the JSON, beside which the values are."""
    from evenrank.papers.claims import claims_of
    from evenrank.papers.figures import Figures

    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    names = ("experiment", "scale", "seeds", "models", "stand_ins", "evenrank", "warnings", "notes")
    kept = {**{name: found[name] for name in names}, "date": found["provenance"]["date"]}
    to.mkdir(exist_ok=True)
    file = to / f"{kept['experiment']}-{kept['scale']}.json"
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    made = [
        one
        for claim in claims_of(kept["experiment"])
        for model in kept["models"]
        for some in claim.checked(model)
        for one in some
    ]
    wanted = {(check.figure, system) for check in made for system in check.systems}
    Figures.read(folder / "values.parquet").only(wanted).write(file.with_suffix(".parquet"))
    return file


def keep_power(folders: list[Path], file: Path) -> None:
    """Writes n and power of each claim of a paper as development runs have them; other experiments' rows stay."""
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    for folder in folders:
        found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        place = {"scale": found["scale"], "paper": found["experiment"]}
        rows = [row for row in rows if (row["scale"], row["paper"]) != (place["scale"], place["paper"])]
        for claim in found["claims"]:
            if claim["power"] is not None:
                power = {**claim["power"], "power": f"{claim['power']['value']:.3f}"}
                del power["value"]
                rows.append({**place, "key": claim["key"], **power})
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, ["scale", "paper", "key", "power", "n", "unit", "needed"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def runs(folder: Path = KEPT) -> list[Run]:
    """The experiments that were run, from the smallest scale, with every claim as the kept values decide it."""
    from typing import get_args

    from evenrank.papers import NAMES, Scale

    found = [decided(file) for file in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda run: ([*NAMES].index(run["experiment"]), get_args(Scale).index(run["scale"])))


def decided(file: Path) -> Run:
    """A run with its claims; those of one from before values were kept are in its JSON."""
    from evenrank.files.json_values import json_values
    from evenrank.papers.claims import decided_claims
    from evenrank.papers.figures import Figures

    run, values = json.loads(file.read_text(encoding="utf-8")), file.with_suffix(".parquet")
    if not values.is_file():
        return run
    figures = Figures.read(values)
    claims = decided_claims(run["experiment"], figures, run["models"], run["scale"], run["stand_ins"])
    return {**run, "claims": [json_values(one.to_dict()) for one in claims], "values": values.name}


def page(found: list[Run]) -> str:
    """The page: the counts, a line a claim, and folded behind them settings and warnings."""
    from evenrank.results.page import CITATIONS

    citations = {
        "ibbr": CITATIONS["IBBR"],
        "sampling": CITATIONS["BAS"],
        "expansion": SOURCE,
        "position": CITATIONS["POS"],
    }
    parts = [INTRODUCTION, _summary(found), READING]
    for paper, title in TITLES.items():
        cited = citations[paper]
        source = f"[{cited[0]}]({cited[1]})" if cited[1] else cited[0]
        parts += [f"## {title}", f"{source}.", *_claims(paper, found)]
    return "\n\n".join([*parts, "## The runs", *_ran(found)]) + "\n"


def _of(paper: str, key: str, found: list[Run], scale: str) -> Run | None:
    """A claim as a scale decided it."""
    claims = (claim for run in found if run["scale"] == scale for claim in run["claims"])
    return next((claim for claim in claims if (claim["paper"], claim["key"]) == (paper, key)), None)


def _summary(found: list[Run]) -> str:
    """How many claims of each paper have which verdict, by scale."""
    from evenrank.papers.claims import claims_of

    lines = ["| paper | scale | claims | " + " | ".join(f"{mark} {state}" for state, mark in MARKS.items()) + " |"]
    lines.append("| --- | --- " + "| ---: " * 4 + "|")
    total = {scale: Counter[str]() for scale in ROUND}
    for paper, title in TITLES.items():
        known = [one.key for one in claims_of(paper) if one.where]
        for scale in ROUND:
            decided = [_of(paper, key, found, scale) for key in known]
            counts = Counter("not run" if one is None else str(one["verdict"]) for one in decided)
            total[scale] += counts
            lines.append(f"| {title if scale == ROUND[0] else ''} | {scale} | {len(known)} | {_counted(counts)} |")
    for scale, counts in total.items():
        ran = sum(counts[state] for state in MARKS)
        lines.append(f"| **all that ran** | {scale} | {ran} | {_counted(counts)} |")
    return "\n".join(lines)


def _counted(counts: Counter[str]) -> str:
    if not sum(counts[state] for state in MARKS):
        return "not run | |"
    return " | ".join(str(counts[state]) for state in MARKS)


def _claims(paper: str, found: list[Run]) -> Iterator[str]:
    """The paper's claims, a line each, then the lines that the experiment itself has to reach."""
    from evenrank.papers.claims import claims_of

    for heading, ours in (("", False), ("Lines that our own experiment has to reach:", True)):
        rows = []
        for claim in claims_of(paper):
            if bool(claim.where) == ours:
                continue
            decided = {scale: _of(paper, claim.key, found, scale) for scale in ROUND}
            marks = [MARKS[one["verdict"]] if one else "" for one in decided.values()]
            effects = [_effect(one) for one in decided.values()]
            where = f" ({claim.where})" if claim.where else ""
            cells = [_cell(claim.text + where), marks[0], effects[0], marks[1], effects[1], _cell(claim.published)]
            rows.append(f"| {' | '.join(cells)} |")
        if rows:
            if heading:
                yield heading
            yield "\n".join(
                ["| claim | tiny | | real | | published |", "| --- | :---: | --- | :---: | --- | --- |", *rows]
            )


def _effect(claim: Run | None) -> str:
    """The first comparison with its interval, how many more there are, and what is needed to decide."""
    if claim is None:
        return "not run"
    if not claim["effects"]:
        return _cell(_needs(claim).removeprefix("; "))
    first, *others = claim["effects"]
    span = "" if first["ci95"] is None else f" [{', '.join(_short(end) for end in first['ci95'])}]"
    more = ""
    ends = first["ci95"]
    if first["published"] is not None and ends is not None and not ends[0] <= first["published"] <= ends[1]:
        more = f", not {_short(first['published'])} as published"
    more += f", and {len(others)} more" if others else ""
    ran = "; ".join(claim["rankers"])
    of = f"; {'this ranker' if len(claim['rankers']) == 1 else 'every ranker that ran'}: {ran}" if ran else ""
    return _cell(f"{first['what']}: {_short(first['mean'])}{span}, {first['n']}{more}{of}{_needs(claim)}")


def _needs(claim: Run) -> str:
    return f"; needs {claim['needs']}" if claim["needs"] else ""


def _short(value: float) -> str:
    from evenrank.results.table import short

    return short(value, sign=True)


def _ran(found: list[Run]) -> Iterator[str]:
    """Each run with its settings and warnings, folded."""
    for run in found:
        lines = [f"`evenrank experiment {run['experiment']} --scale {run['scale']}`, {run['date'][:10]}", ""]
        lines += [f"- {_cell(note)}" for note in [*run["notes"], *run["warnings"]]]
        if "values" in run:
            lines.append(
                f"- The values by query, which decide its claims: [{run['values']}](reproduced/{run['values']})"
            )
        text = "\n".join(f"    {line}" if line else "" for line in lines[2:])
        yield f'??? note "{lines[0]}"\n\n{text}'


def _cell(text: str) -> str:
    for mark, escaped in (("&", "&amp;"), ("<", "&lt;"), ("|", "&#124;"), ("*", "\\*"), ("_", "\\_"), ("`", "\\`")):
        text = text.replace(mark, escaped)
    return " ".join(text.split())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--power"]:
        keep_power([Path(name) for name in sys.argv[2:]], POWER)
        sys.exit()
    for name in sys.argv[1:]:
        print(keep(Path(name)))
    PAGE.write_text(page(runs()), encoding="utf-8")
