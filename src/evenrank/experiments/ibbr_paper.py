"""Li et al. 2022, "Debiasing neural retrieval via in-batch balancing regularization": Tables 1 to 3.

A two-tower ranker is trained on clicks; then training continues with the queries of the fairness set, without the term
("none"), with PD, with TS, or, from its start on, with group words masked ("blind"): rows that differ by that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from evenrank.io import Run
from evenrank.io.wording import counted

from . import work
from .ibbr_setup import SOURCE, TERMS, Data, Experiment, Settings
from .paper_page import Drawing, ExperimentPage, plane
from .paper_tables import CONTROLS, Claim, Row, Table, Value, paired
from .published import numbers, published
from .work import Figures, Trained

COLUMNS = {
    "recall_10": "R@10",
    "mrr": "RR",
    "ndcg_10": "nDCG@10",
    "delta_aprf_abs": "|DeltaAPRF|",
    "delta_aprf_signed": "DeltaAPRF",
    "rab_5": "RaB@5",
    "rab_10": "RaB@10",
}
HEADINGS = {
    "recall_10": "Recall@10",
    "mrr": "MRR",
    "ndcg_10": "nDCG@10",
    "delta_aprf_abs": "|ΔA-PRF|",
    "delta_aprf_signed": "ΔA-PRF",
    "rab_5": "RaB@5",
    "rab_10": "RaB@10",
}
FIRST = "BM25"


def run(settings: Settings, folder: Path, say: Callable[[str], None] = lambda _: None, jobs: int = 1) -> ExperimentPage:
    """Runs the whole experiment, resuming finished trainings; returns its tables and figures."""
    work.write_settings(folder, {k: v for k, v in asdict(settings).items() if k != "seeds"})
    experiment = Experiment(settings, folder, say)
    if jobs > 1:
        experiment.everything_ahead(jobs)
    first = settings.seeds[0]
    figures: dict[str, Figures] = {encoder: {} for encoder in settings.encoders}
    grids: dict[str, Figures] = {encoder: {} for encoder in settings.encoders}
    chosen: dict[tuple[str, str], float] = {}
    found_grids: dict[tuple[str, str], dict[float, Trained]] = {}
    measures = " ".join(COLUMNS.values())
    for encoder in settings.encoders:
        for term in TERMS:
            chosen[encoder, term], found_grids[encoder, term] = experiment.best(encoder, term)
        for seed in settings.seeds:
            systems: dict[str, Trained | Run] = {"none": experiment.fair(seed, encoder, "TS", 0, settings.score)}
            for term in TERMS:
                weight = chosen[encoder, term]
                systems[f"{term} best"] = experiment.fair(seed, encoder, term, weight, settings.score)
                systems[f"{term} auto"] = experiment.fair(seed, encoder, term, "auto", settings.score)
            systems["blind"] = experiment.blind(seed, encoder)
            _audit(experiment, seed, systems, figures[encoder], measures)
        every: dict[str, Trained | Run] = {
            f"{term} {weight:g}": trained
            for term in TERMS
            for weight, trained in found_grids[encoder, term].items()
            if weight
        }
        every |= {"none": found_grids[encoder, "TS"][0.0], "blind": experiment.blind(first, encoder)}
        _audit(experiment, first, every, grids[encoder], measures)
    baselines: Figures = {}
    others: dict[str, Trained | Run] = {name: experiment.baseline(name) for name in settings.baselines}
    _audit(experiment, first, others | {"RM3": experiment.rm3(first)}, baselines, measures)
    compared = _compared(experiment, found_grids)
    tables = [
        _table1(settings, figures, chosen),
        _table2(figures, baselines),
        _table3(experiment.of(first)),
        *(_grid_table(encoder, grids[encoder], found_grids, chosen) for encoder in settings.encoders),
        compared,
    ]
    drawings = [_plane(encoder, figures[encoder]) for encoder in settings.encoders]
    drawings += [_plane(encoder, grids[encoder], "every weight, one seed") for encoder in settings.encoders]
    main = next(iter(settings.encoders))
    return ExperimentPage(
        "ibbr",
        "In-batch balancing regularization",
        SOURCE,
        (("scale", settings.scale), ("seeds", str(len(settings.seeds))), ("test queries", str(settings.sizes["test"]))),
        claims(figures[main], chosen[main, "TS"]),
        tuple(tables),
        tuple(drawings),
        _notes(settings, chosen),
    )


def _audit(
    experiment: Experiment, seed: int, systems: Mapping[str, Trained | Run], into: Figures, measures: str
) -> None:
    part, trainings = experiment.of(seed).parts["test"], experiment.work(seed)
    runs = {name: one if isinstance(one, Run) else trainings.rank(one, "test", part) for name, one in systems.items()}
    work.collect(into, trainings.audit(part, runs, measures, FIRST))


def claims(figures: Figures, weight: float) -> tuple[Claim, ...]:
    """What the experiment has to show: bias without the term, three quarters of it gone with TS, MRR above blind's."""
    signed = Value.over_seeds(work.per_seed(figures, "none", "DeltaAPRF"))
    none, best = (Value.over_seeds(work.per_seed(figures, name, "|DeltaAPRF|")) for name in ("none", "TS best"))
    utility = paired(work.per_seed(figures, "TS best", "RR"), work.per_seed(figures, "blind", "RR"))
    assert none.mean is not None
    assert best.mean is not None
    gone = 1 - best.mean / none.mean if none.mean else float("nan")
    n = counted(none.n, "seed")
    return (
        Claim(
            "male-skewed clicks give |ΔA-PRF| clearly above 0 without the term",
            None if signed.ci95 is None else signed.ci95[0] > 0 or signed.ci95[1] < 0,
            f"|ΔA-PRF| {none.mean:.3f}; ΔA-PRF {signed.signed(3)}, {n}",
        ),
        Claim(
            "TS with the weight that validation chose removes at least three quarters of it",
            gone >= 0.75,
            f"λ {weight:g}: |ΔA-PRF| {best.mean:.3f} of {none.mean:.3f}, {gone:.0%} removed, {n}",
        ),
        Claim(
            "and keeps MRR above that of blind",
            None if utility.mean is None else utility.mean > 0,
            f"MRR of TS − MRR of blind {utility.signed(3)}, {n}",
        ),
    )


def _controls(figures: Figures, labels: int, keys: Mapping[str, str]) -> list[Row]:
    rest = ("",) * (labels - 1)
    return [Row((name, *rest), work.row_values(figures, name, keys), control=True) for name in CONTROLS]


def _table1(settings: Settings, figures: Mapping[str, Figures], chosen: Mapping[tuple[str, str], float]) -> Table:
    columns = [name for name in HEADINGS if name != "delta_aprf_signed"]
    keys = {name: COLUMNS[name] for name in columns}
    rows = []
    for line in published("ibbr_table1"):
        system = "none" if line["ibbr"] == "none" else f"{line['ibbr']} {line['lambda']}"
        measured = work.row_values(figures.get(line["model"], {}), system, keys)
        rows.append(Row((line["model"], line["ibbr"], line["lambda"]), measured, numbers(line, columns)))
    for encoder in settings.encoders:
        rows += [replace(row, labels=(encoder, row.labels[0], "")) for row in _controls(figures[encoder], 3, keys)]
    best = ", ".join(f"{encoder} {term}: {weight:g}" for (encoder, term), weight in chosen.items())
    notes = (f"λ best, chosen on the validation queries of one seed (0: none is): {best}.",)
    return Table(
        "Table 1",
        "With and without the term",
        ("model", "IBBR", "λ"),
        {k: HEADINGS[k] for k in columns},
        tuple(rows),
        notes,
    )


def _table2(figures: Mapping[str, Figures], baselines: Figures) -> Table:
    columns = [name for name in HEADINGS if name != "delta_aprf_abs"]
    keys = {name: COLUMNS[name] for name in columns}
    rows = []
    for line in published("ibbr_table2"):
        name = line["model"]
        of_encoder = figures.get(name.replace("DPR-", "BERT-"), {})
        measured = (
            work.row_values(of_encoder, "none", keys)
            if name.startswith("DPR-")
            else work.row_values(baselines, name, keys)
        )
        rows.append(Row((name,), measured, numbers(line, columns)))
    rows += _controls(next(iter(figures.values())), 1, keys)
    return Table(
        "Table 2",
        "Rankers without the term",
        ("ranker",),
        {key: HEADINGS[key] for key in columns},
        tuple(rows),
        ("BM25, RM3 and kernel rankers: one seed, interval over queries.",),
    )


def _table3(data: Data) -> Table:
    parts = {name: float(part.count) for name, part in data.parts.items()}
    test = parts["test"]
    counts = {
        "DPR": {"train": parts["dpr"], "dev": parts["dpr_dev"], "test": test},
        "Fairness": {"train": parts["train"], "dev": parts["dev"], "test": test},
    }
    columns = ["train", "dev", "test", "total"]
    rows = []
    for line in published("ibbr_table3"):
        own = counts[line["data"]]
        own |= {"total": sum(own.values())}
        rows.append(
            Row(
                (line["data"],),
                {key: Value(value, 1, "count") for key, value in own.items()},
                numbers(line, columns),
            )
        )
    return Table("Table 3", "Queries", ("data",), {key: key for key in columns}, tuple(rows))


def _grid_table(
    encoder: str,
    figures: Figures,
    grids: Mapping[tuple[str, str], Mapping[float, Trained]],
    chosen: Mapping[tuple[str, str], float],
) -> Table:
    columns = {name: COLUMNS[name] for name in HEADINGS if name != "delta_aprf_signed"}
    rows = []
    for term in TERMS:
        for weight, trained in grids[encoder, term].items():
            system = f"{term} {weight:g}" if weight else "none"
            values = work.row_values(figures, system, columns)
            mark = " (best)" if chosen[encoder, term] == weight else ""
            rows.append(Row((term, f"{weight:g}{mark}"), {**values, **_validation(trained)}))
    rows += _controls(figures, 2, columns)
    headings = {key: HEADINGS[key] for key in columns} | {"valid_mrr": "valid. MRR", "valid_bias": "valid. |ΔA-PRF|"}
    note = "One seed, intervals over test queries. Best: lowest validation |ΔA-PRF| among those with at least 0.95 of"
    return Table(f"Grid {encoder}", "Every weight", ("term", "λ"), headings, tuple(rows), (f"{note} the MRR at λ 0.",))


def _validation(trained: Trained) -> dict[str, Value]:
    return {"valid_mrr": Value(trained.value, 1), "valid_bias": Value(trained.bias, 1)}


def _compared(experiment: Experiment, grids: Mapping[tuple[str, str], Mapping[float, Trained]]) -> Table:
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


def _plane(encoder: str, figures: Figures, what: str = "means over seeds") -> Drawing:
    points = {
        system: (work.summary(values["RR"]), work.summary(values["|DeltaAPRF|"])) for system, values in figures.items()
    }
    return plane(
        f"Plane {encoder}",
        f"MRR against |ΔA-PRF|: {what}",
        points,
        "MRR (higher is better)",
        "|ΔA-PRF| (nearer 0 is better)",
        ("none", "blind"),
    )


def _notes(settings: Settings, chosen: Mapping[tuple[str, str], float]) -> tuple[str, ...]:
    notes = [
        "Our reading: the ranker is trained with nll on the DPR queries, and continues with the fairness queries; none"
        " and blind go on with them too, without the term, so that rows differ by the term alone.",
        f"A query's list: its clicked passage and BM25's first {settings.listed - 1} others (of the first"
        f" {settings.depth}); the clicks are the judgements, as published.",
        "λ was chosen on the validation queries of one seed and then used for all; nothing was chosen on test queries.",
        "blind, random and neutral-first are controls; random is the expectation over random orders.",
    ]
    if settings.planted is not None:
        notes += [
            f"Scale tiny: the built-in collection ({settings.planted.passages:,} passages, generated for each seed; "
            f"{settings.planted.click_male_share:.0%} of the gendered clicks are male), a BERT with"
            f" {settings.small_bert.layers} layer and {settings.small_bert.hidden} dimensions that starts from random"
            " weights in place of BERT-L2, mean pooling, no BERT-L4; kernel rankers with vectors made here. On the"
            " fairness queries only the projection after the encoder moves: the whole encoder learned those queries by"
            " heart, so that |ΔA-PRF| fell on them and hardly on others.",
        ]
    else:
        notes += [
            "The paper does not say which 1,252 of the 1,765 neutral annotated queries it takes: a seeded draw of those"
            " that are judged. DPR queries: a seeded draw of all other judged queries of train and dev. Kernel rankers"
            " learn their word vectors from the collection (the papers: GloVe 42B; set ranker.vectors to its file).",
        ]
    for (encoder, term), weight in chosen.items():
        if not weight:
            notes.append(f"{encoder} {term}: no weight of the grid kept 0.95 of the MRR; its best row is that of none.")
    return tuple(notes)
