"""The pages "What reproduces and what does not": every claim of the papers, and the verdict at each scale that was run.

python docs/reproduced.py FOLDER… takes from finished experiments the values by query of the figures that claims name
(Parquet) and what a reader has to know of the run (JSON) into ``docs/reproduced``, decides every claim by these values,
and makes ``docs/reproduces.md`` and a page a paper of all that is there. python docs/reproduced.py --power FOLDER…
takes n and power of the published effects from runs on development seeds into the claims' ``power.csv``.
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
FOLDER = Path(__file__).parent / "reproduces"
POWER = Path(__file__).parent.parent / "src/evenrank/papers/claims/power.csv"
INTRODUCTION = """# What reproduces and what does not

The claims of the papers, and the verdicts of evenrank's runs."""
READING = """A claim is *supported* (●) if the 95% interval of each of its figures (90% for equivalence) lies on the
claimed side, and *not supported* (○) if one lies on the other side. Otherwise it is *undecided* (·); at
*real*, the table says what would decide it. Of several figures, the table shows the one that decides. "No
significant change" needs p > .05 and a change within the margin stated in the claim; margins and bounds
are ours. A claim about every ranker is supported if it holds for each that ran. If a broken ranker could
also meet a claim, the rankers must score above BM25. Sample size and power come from development seeds,
before the reported runs.

*tiny* is a synthetic collection with a known amount of bias: it tests the mechanism. *real* is real text and weights
on a CPU ([the experiments](guides/experiments.md)). *full*, with the published data, has not been run. Settings were
chosen on development seeds; reported seeds were run once. At *real* both divide the same queries: that is no fresh
test. A *mutant* is a mistake that changes the verdict at *real* (`make mutants`)."""
MARKS = {"supported": "●", "not supported": "○", "undecided": "·"}
ROUND = ("tiny", "real")
TITLES = {
    "ibbr": "In-batch balancing regularization",
    "sampling": "Bias-aware negative sampling",
    "expansion": "Debiased embeddings in query expansion",
    "position": "Position bias",
}
WORDS = {
    "position": "A *rotated* passage is cut at a random word and its two parts are exchanged (the paper's *debiased*,"
    " Eq. 7). A lower MATS (Eqs. 8 and 9) means less position bias. Differences are rotated minus original passages, or"
    " in the claim's order.",
    "sampling": "At *real*, rankers have two towers, counsel-chat replaces dev and QS1, and Grep-BiasIR replaces QS2.",
    "ibbr": "Rankers called *none* are trained without IBBR. Clicks are planted, 80 % male. At *real*, TS with its sign"
    " reversed lowers |ΔA-PRF| too.",
    "expansion": "At *real*, SQuAD replaces Robust04: each question has one relevant paragraph.",
}
"""What a reader of a paper's table has to know."""
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
    return {**run, "claims": [json_values(one) for one in claims], "values": values.name}


def pages(found: list[Run]) -> dict[Path, str]:
    """Every page by its file: the counts at a glance, and a page a paper."""
    parts = [INTRODUCTION, _summary(found), READING]
    return {PAGE: "\n\n".join(parts) + "\n"} | {
        FOLDER / f"{paper}.md": _paper(paper, title, found) for paper, title in TITLES.items()
    }


def _paper(paper: str, title: str, found: list[Run]) -> str:
    """A paper's claims, a line each, and what ran."""
    from evenrank.results.page import CITATIONS

    cited = {"ibbr": "IBBR", "sampling": "BAS", "position": "POS"}.get(paper)
    name, link = SOURCE if cited is None else CITATIONS[cited]
    source = f"[{name}]({link})" if link else name
    own = [run for run in found if run["experiment"] == paper]
    parts = [f"# {title}", f"{source}. [How to read this](../reproduces.md).", *map(_ran, own)]
    parts += [*([WORDS[paper]] if paper in WORDS else []), *_claims(paper, found)]
    if paper == "position":
        parts += _on_gpu(KEPT / "gpu")
    warnings = "\n".join(f"- At *{run['scale']}*: {_cell(warning)}" for run in own for warning in run["warnings"])
    return "\n\n".join([*parts, *([warnings] if warnings else [])]) + "\n"


def _on_gpu(folder: Path) -> Iterator[str]:
    """The claims that position's trainings on a GPU decide, as their values by query say."""
    from evenrank.files.json_values import json_values
    from evenrank.papers.checks import Options
    from evenrank.papers.claims import decided_claims
    from evenrank.papers.figures import Figures
    from evenrank.papers.study import stated

    for file in sorted(folder.glob("position-*.parquet")):
        settings, figures = stated("position", "real", Options(device="cuda")), Figures.read(file)
        claims = decided_claims("position", figures, settings["models"], "cuda", {})
        put = ("drop", "robust", "better", "late", "uncut")
        lines = [
            f"- {_cell(claim.claim.text)}: {_decision(json_values(claim))}"
            for claim in claims
            if claim.claim.key in put
        ]
        seed = file.stem.rpartition("-")[2]
        rankers = ", ".join(f"{name} is {here}" for name, here in settings["models"].items())
        texts = f"MS MARCO is {settings['stand_ins']['MS MARCO']}"
        yield f"A run of seed {seed} on a GPU (`--device cuda`) is not counted above. {_cell(f'{rankers}; {texts}')}."
        yield "\n".join(lines)


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
            name = f"[{title}](reproduces/{paper}.md)" if scale == ROUND[0] else ""
            lines.append(f"| {name} | {scale} | {len(known)} | {_counted(counts)} |")
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

    for heading, ours in (("", False), ("Checks of our own experiment:", True)):
        rows = []
        for claim in claims_of(paper):
            if bool(claim.where) == ours:
                continue
            where = f" ({claim.where})" if claim.where else ""
            tiny, real = (_of(paper, claim.key, found, scale) for scale in ROUND)
            needs = f"; needs {real['needs']}" if real is not None and real["needs"] else ""
            shown = [_decision(tiny), _decision(real) + _cell(needs)]
            rows.append(
                f"| {' | '.join([_cell(claim.text + where), *shown, _cell(claim.published), _cell(claim.mutant)])} |"
            )
        if rows:
            if heading:
                yield heading
            yield "\n".join(["| claim | tiny | real | published | mutant |", "| --- " * 5 + "|", *rows])


def _decision(claim: Run | None) -> str:
    """The verdict with the comparison that decides it, and of how many it is."""
    if claim is None:
        return "not run"
    mark, effects = MARKS[claim["verdict"]], claim["effects"]
    if not effects:
        return mark
    shown = min((one for one in effects if one.get("verdict") == claim["verdict"]), key=_clarity, default=effects[0])
    # What is counted has no error.
    bound, ends = shown.get("bound"), None if shown.get("trainings") == 0 else shown["ci95"]
    values = [value + (bound or 0.0) for value in (shown["mean"], *(ends or ()))]
    said, *interval = (_short(value, sign=bound is None) for value in values)
    # Nor has what is the same in every training.
    text = f"{mark} {said}{f' [{interval[0]}, {interval[1]}]' if len(set(interval)) > 1 else ''}, {shown['n']}"
    if len(effects) > 1:
        text += f", of {len(effects)}{f': {name}' if (name := shown.get('name')) else ''}"
    return _cell(text)


def _clarity(effect: Run) -> float:
    """How far a difference is from 0, or from its margin, as a share of its interval's width."""
    low, high = effect["ci95"] or (0.0, 0.0)
    distance = abs(abs(effect["mean"]) - effect.get("margin", 0.0))
    return distance / (high - low) if high > low else float("inf")


def _short(value: float, sign: bool = True) -> str:
    from evenrank.results.table import short

    return short(value, sign=sign)


def _ran(run: Run) -> str:
    """What ran, and where its values are."""
    command = f"`evenrank experiment {run['experiment']} --scale {run['scale']}`, {run['date'][:10]}"
    stand_ins = "; ".join(f"{name}: {here}" for name, here in {**run["models"], **run["stand_ins"]}.items())
    text = f"{command}, seeds {', '.join(map(str, run['seeds']))}. Stand-ins: {_cell(stand_ins)}."
    return text + (f" [These values](../reproduced/{run['values']}) decide the claims." if "values" in run else "")


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
    FOLDER.mkdir(exist_ok=True)
    for file, text in pages(runs()).items():
        file.write_text(text, encoding="utf-8")
