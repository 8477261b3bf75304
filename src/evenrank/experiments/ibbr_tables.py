"""The tables and drawings of the IBBR experiment."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenrank.measures.statistics import holm

from .ibbr_data import Data
from .ibbr_measured import CLICKED, COLUMNS, FIRST, GROUP_HEADINGS, HEADINGS, QUERY_COLUMNS, Figures
from .ibbr_setup import TERMS, Settings
from .ibbr_trainings import DEV, Experiment
from .paper_page import Curves, Drawing, curve, plane
from .paper_tables import Row, Table, Value
from .published import numbers, published
from .work import Trained

CONTROLS = ("base", "blind", "shift × 0.5", "shift", "random", "neutral-first")
OWN_HEADINGS = {CLICKED: "ΔA-PRF, clicks", **GROUP_HEADINGS}
_CLAMP = math.exp(5)


def _row(labels: tuple[str, ...], figures: Figures | None, system: str, columns: Sequence[str], **more: object) -> Row:
    measured = {} if figures is None else figures.row(system, columns)
    warning = figures.warning(system) if figures is not None and measured else ""
    return replace(Row(labels, measured, warning=warning), **more)  # type: ignore[arg-type]


def controls(figures: Figures, labels: int, columns: Sequence[str]) -> list[Row]:
    """The rows that every table has beside the paper's: yardsticks, and the ranker before the fairness queries."""
    rest = ("",) * (labels - 1)
    found = [name for name in CONTROLS if name in figures.systems]
    return [_row((name, *rest), figures, name, columns, control=True) for name in found]


def table1(
    settings: Settings, figures: Mapping[str, Figures], chosen: Mapping[tuple[str, str], float], words: str = ""
) -> Table:
    """Table 1 of the paper: without a term, and each term with the best and the trained weight. ``words``: the lexicon
    and tokens of the bias measures, if not the published ones; without published figures then."""
    printed = [name for name in HEADINGS if name != "delta_aprf_signed"]
    columns = [*HEADINGS, *(key for key in OWN_HEADINGS if _measured(figures, key))]
    rows = []
    for line in published("ibbr_table1"):
        system = "none" if line["ibbr"] == "none" else f"{line['ibbr']} {line['lambda']}"
        labels = (line["model"], line["ibbr"], line["lambda"])
        own = figures.get(line["model"])
        rows.append(_row(labels, own, system, columns, published={} if words else numbers(line, printed)))
    for encoder, own in figures.items():
        if DEV in own.systems:
            rows.append(_row((encoder, "TS", f"{settings.dev_weight:g} (dev)"), own, DEV, columns))
        rows += [replace(row, labels=(encoder, row.labels[0], "")) for row in controls(own, 3, columns)]
    best = ", ".join(f"{encoder} {term}: {weight:g}" for (encoder, term), weight in chosen.items())
    notes = [
        f"λ best, chosen on the development queries of seed {settings.seeds[0]} (0: none is): {best}.",
        "base: before the fairness queries. blind: group words masked throughout. shift: none's scores with the least"
        " offset between the groups that removes ΔA-PRF on the development queries; × 0.5: half of it.",
    ]
    if CLICKED in columns:
        notes.append("ΔA-PRF, clicks: on one unskewed click a query in place of every relevant passage.")
    headings = {key: {**HEADINGS, **OWN_HEADINGS}[key] for key in columns}
    name, title = _named("Table 1", "With and without the term", words)
    return Table(name, title, ("model", "IBBR", "λ"), headings, tuple(rows), tuple(notes))


def _named(name: str, title: str, words: str) -> tuple[str, str]:
    return (f"{name} ours", f"{title}: {words}") if words else (name, title)


def _measured(figures: Mapping[str, Figures], column: str) -> bool:
    return any(column in row for one in figures.values() for more in one.more for row in more.values())


def changes(figures: Mapping[str, Figures]) -> Table:
    """Every row against none: relative changes, and their p with Holm's correction over the rows of a column."""
    columns = [*QUERY_COLUMNS, "delta_aprf_abs", "rab_5", "rab_10"]
    headings: dict[str, str] = {}
    for key in columns:
        headings |= {key: f"{HEADINGS[key]} %", f"{key}_p": "p", f"{key}_holm": "Holm"}
    rows: list[Row] = []
    for encoder, own in figures.items():
        others = [name for name in own.systems if name not in ("none", "BM25", "random", "neutral-first")]
        found: dict[str, dict[str, Value]] = {name: {} for name in others}
        for key in columns:
            tests = [own.test(name, "none", key) for name in others]
            for name, test, corrected in zip(others, tests, holm([one.p for one in tests]), strict=True):
                part = relative(own.per_seed(name, key), own.per_seed("none", key))
                n = (test.n, test.limit) if own.same_queries else (test.seeds, "seeds")
                found[name] |= {
                    key: Value(part, *n),
                    f"{key}_p": Value(test.p, *n),
                    f"{key}_holm": Value(corrected, *n),
                }
        rows += [Row((encoder, name), found[name], control=name in CONTROLS) for name in others]
    notes = (
        "Change of the mean over seeds in % of none's. p: over queries nested in seeds (mixed view) for Recall, MRR and"
        " nDCG, a paired t-test over seeds for the others; where seeds share queries, both count in every test (n is of"
        " the one that the error mostly comes from). Holm's correction is over the rows of a column.",
    )
    return Table("Changes", "Against none", ("model", "row"), headings, tuple(rows), notes)


def relative(values: Sequence[float], baseline: Sequence[float]) -> float | None:
    """The change of the mean in % of the baseline's; None if that is 0 or unknown."""
    before = sum(baseline) / len(baseline)
    found = 100 * (sum(values) / len(values) - before) / abs(before) if before else math.nan
    return None if math.isnan(found) else found


def table2(figures: Mapping[str, Figures], baselines: Figures, words: str = "") -> Table:
    """Table 2: rankers without the term; ``words`` as in :func:`table1`."""
    printed = [name for name in HEADINGS if name != "delta_aprf_abs"]
    columns = [*HEADINGS, *(key for key in OWN_HEADINGS if _measured(figures, key))]
    rows = []
    for line in published("ibbr_table2"):
        name = line["model"]
        own = figures.get(name.replace("DPR-", "BERT-")) if name.startswith("DPR-") else baselines
        system = "none" if name.startswith("DPR-") else name
        rows.append(_row((name,), own, system, columns, published={} if words else numbers(line, printed)))
    rows += controls(next(iter(figures.values())), 1, columns)
    headings = {key: {**HEADINGS, **OWN_HEADINGS}[key] for key in columns}
    notes = ("BM25, RM3 and kernel rankers: one seed, interval over queries.",)
    return Table(*_named("Table 2", "Rankers without the term", words), ("ranker",), headings, tuple(rows), notes)


def retrieval_table(settings: Settings, figures: Mapping[str, Figures]) -> Table:
    """The rows that search the whole collection themselves, beside BM25."""
    columns = list(HEADINGS)
    rows = []
    for encoder, own in figures.items():
        rows += [_row((encoder, name), own, name, columns) for name in (FIRST, *settings.retrieved)]
        rows += [
            replace(row, labels=(encoder, row.labels[0]))
            for row in controls(own, 1, columns)
            if row.labels[0] not in settings.retrieved
        ]
    notes = (
        f"The first {settings.listed} passages of the whole collection by the ranker's own vectors (exact search),"
        " where Table 1 re-ranks lists that always have the clicked passage. random and neutral-first order BM25's"
        " lists.",
    )
    return Table("Retrieval", "The same rankers as first stages", ("model", "ranking"), HEADINGS, tuple(rows), notes)


def table3(data: Data) -> Table:
    """Table 3: the numbers of queries."""
    parts = {name: float(part.count) for name, part in data.parts.items()}
    counts = {
        "DPR": {"train": parts["dpr"], "dev": parts["dpr_dev"], "test": parts["test"]},
        "Fairness": {"train": parts["train"], "dev": parts["dev"], "test": parts["test"]},
    }
    columns = ["train", "dev", "test", "total"]
    rows = []
    for line in published("ibbr_table3"):
        own = counts[line["data"]]
        own |= {"total": sum(own.values())}
        measured = {key: Value(value, 1, "count") for key, value in own.items()}
        rows.append(Row((line["data"],), measured, numbers(line, columns)))
    return Table("Table 3", "Queries", ("data",), {key: key for key in columns}, tuple(rows))


def grid_table(
    encoder: str,
    figures: Figures,
    grids: Mapping[tuple[str, str], Mapping[float, Trained]],
    chosen: Mapping[tuple[str, str], float],
) -> Table:
    """Every weight on one seed's test queries, with what validation chose by."""
    columns = list(COLUMNS)
    rows = []
    for term in TERMS:
        for weight, trained in grids[encoder, term].items():
            system = f"{term} {weight:g}" if weight else "none"
            mark = " (best)" if chosen[encoder, term] == weight else ""
            row = _row((term, f"{weight:g}{mark}"), figures, system, columns)
            rows.append(replace(row, measured={**row.measured, **_validation(trained)}))
    rows += controls(figures, 2, columns)
    headings = HEADINGS | {"valid_mrr": "valid. MRR", "valid_bias": "valid. |ΔA-PRF|"}
    notes = (
        "One seed, intervals over test queries. Best: lowest validation |ΔA-PRF| among those with at least 0.95 of the"
        " MRR at λ 0.",
    )
    return Table(f"Grid {encoder}", "Every weight", ("term", "λ"), headings, tuple(rows), notes)


def _validation(trained: Trained) -> dict[str, Value]:
    return {"valid_mrr": Value(trained.value, 1), "valid_bias": Value(trained.bias, 1)}


def score_table(experiment: Experiment, grids: Mapping[tuple[str, str], Mapping[float, Trained]]) -> Table:
    """R in nPRF: TS with each, on the validation queries of one seed."""
    settings = experiment.settings
    encoder, first = next(iter(settings.encoders)), settings.seeds[0]
    found: list[tuple[str, float, Trained]] = [
        (settings.score, weight, trained) for weight, trained in grids[encoder, "TS"].items()
    ]
    for score, weights in settings.scores.items():
        found += [(score, w, experiment.fair(first, encoder, "TS", w, score)) for w in weights]  # type: ignore[arg-type]
    blind = experiment.blind(first, encoder)
    rows = [Row((score if w else "any", f"{w:g}"), _validation(trained)) for score, w, trained in found]
    rows.append(Row(("blind", ""), {"valid_mrr": Value(blind.value, 1)}, control=True))
    headings = {"valid_mrr": "valid. MRR", "valid_bias": "valid. |ΔA-PRF|"}
    notes = ("TS, one seed, validation queries: which R has the lowest |ΔA-PRF| for the MRR that it costs.",)
    return Table("Score R", "R in nPRF: softmax, sigmoid or identity", ("R", "λ"), headings, tuple(rows), notes)


def auto_table(experiment: Experiment) -> Table:
    """The trained weights at the end of training, beside their optimum for the losses of the last steps."""
    rows = []
    for encoder in experiment.settings.encoders:
        for term in TERMS:
            trained = experiment.fair(experiment.settings.seeds[0], encoder, term, "auto", experiment.settings.score)
            rows.append(Row((encoder, term), auto_weights(experiment.log(trained), experiment.auto_state(trained))))
    headings = {
        "fair": "L_fair",
        "weight": "e^−b",
        "optimum": "1/L_fair",
        "rank": "L_rank",
        "rank_weight": "e^−a",
        "rank_optimum": "1/L_rank",
        "ratio": "λ = e^−b / e^−a",
    }
    notes = (
        "One seed. Losses: means over the last tenth of the training. The optimum is kept within e^−5 and e^5, as the"
        " trained weights are.",
    )
    return Table(
        "Auto", "The trained weight and its optimum in closed form", ("model", "term"), headings, tuple(rows), notes
    )


def auto_weights(log: Sequence[Mapping[str, object]], state: str) -> dict[str, Value]:
    """The columns of :func:`auto_table` from a training's log and the state of its last checkpoint (JSON)."""
    lines = _steps(log)
    last = lines[-max(1, len(lines) // 10) :]
    values = json.loads(state)["values"] if state else {}
    found: dict[str, Value] = {}
    for name, key, number in (("fair", "fair_loss_gender", "0"), ("rank", "rank_loss", "rank")):
        # A line is the mean of its steps; the term has no loss in batches that lack a group.
        lacking = "lacking_a_group_gender" if name == "fair" else ""
        known = [(_number(line, key), steps - _number(line, lacking, 0)) for line, steps in last if key in line]
        known = [(loss, steps) for loss, steps in known if steps > 0]
        steps = sum(count for _, count in known)
        if not steps:
            continue
        loss = sum(mean * count for mean, count in known) / steps
        best = min(max(1 / loss, 1 / _CLAMP), _CLAMP) if loss > 0 else _CLAMP
        prefix = "" if name == "fair" else "rank_"
        found |= {name: Value(loss, round(steps), "steps"), f"{prefix}optimum": Value(best, 1)}
        if number in values:
            found[f"{prefix}weight"] = Value(math.exp(-values[number][0]), 1)
    one, other = found.get("weight"), found.get("rank_weight")
    if one is not None and other is not None and one.mean is not None and other.mean:
        found["ratio"] = Value(one.mean / other.mean, 1)
    return found


def _steps(log: Sequence[Mapping[str, object]]) -> list[tuple[Mapping[str, object], float]]:
    """The lines of a log with losses, and over how many steps each is the mean."""
    found, before = [], 0.0
    for line in log:
        if "rank_loss" in line:
            step = _number(line, "step")
            found.append((line, step - before))
            before = step
    return found


def _number(line: Mapping[str, object], key: str, default: float = math.nan) -> float:
    value = line.get(key, default)
    return float(value) if isinstance(value, int | float) else math.nan


def systems_plane(
    encoder: str, figures: Figures, what: str = "means over seeds", curves: Curves | None = None
) -> Drawing:
    """MRR against |ΔA-PRF|; ``curves``: none's runs reordered."""
    names = [name for name in figures.systems if name not in ("random", "neutral-first", "BM25")]
    points = {}
    for name in names:
        found = figures.row(name, ["mrr", "delta_aprf_abs"])
        if len(found) == 2:
            points[name] = (found["mrr"], found["delta_aprf_abs"])
    return plane(
        f"Plane {encoder}",
        f"MRR against |ΔA-PRF|: {what}",
        points,
        "MRR (higher is better)",
        "|ΔA-PRF| (nearer 0 is better)",
        ("none", "blind"),
        curves,
    )


def none_curve(experiment: Experiment, encoder: str) -> Drawing:
    """How none's loss, MRR and ΔA-PRF went in training, so that a reader sees whether it converged."""
    names = {"rank_loss": "loss in training", "eval_validation": "validation MRR", "eval_delta_aprf_gender": "ΔA-PRF"}
    log = experiment.curve(experiment.settings.seeds[0], encoder)
    rows = [
        {"x": line["step"], "measure": title, "value": line[key], "low": line[key], "high": line[key]}
        for line in log
        for key, title in names.items()
        if line.get(key) is not None
    ]
    hint = "The first seed's training on the fairness queries without a term."
    return curve(f"Curve {encoder}", "none in training", rows, "step", hint)
