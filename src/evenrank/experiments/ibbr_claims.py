"""The claims of the IBBR experiment: evenrank's own lines, then the paper's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evenrank.io.wording import counted

from .ibbr_measured import FIRST, Figures
from .ibbr_trainings import DEV
from .paper_claims import UNDECIDED, Claim, Verdict, above, below, every, floored
from .paper_tables import Value

PAPER = "ibbr"
REMOVED, KEPT, COST = 0.75, 0.97, 0.9


NONE_CHOSEN = "no weight of the grid qualified, so this row is none's"


@dataclass(frozen=True, slots=True)
class Model:
    """A model's figures, and the weight of each row of a term (0: none qualified)."""

    figures: Figures
    weights: Mapping[str, float]

    @property
    def line(self) -> str:
        """The row that evenrank's own lines rest on."""
        return DEV if DEV in self.figures.systems else "TS best"

    def unchosen(self, *systems: str) -> list[str]:
        """The rows of "best" that no training with a term is in: nothing can be said of them."""
        return [name for name in systems if self.weights.get(name) == 0]


Judged = tuple[Verdict, str]
Judge = Callable[[Model], Judged]


def claims(
    figures: Mapping[str, Figures],
    baselines: Figures,
    chosen: Mapping[tuple[str, str], float],
    dev_weight: float | None = None,
) -> tuple[Claim, ...]:
    """Every claim that was measured; the own lines are of the first model. ``dev_weight``: λ of the row "TS dev"."""
    models = {}
    for name, own in figures.items():
        weights = {f"{term} best": weight for (encoder, term), weight in chosen.items() if encoder == name}
        models[name] = Model(own, weights if dev_weight is None else {**weights, DEV: dev_weight})
    small, large = ({name: own for name, own in models.items() if name.endswith(end)} for end in ("L2", "L4"))
    found: list[Claim | None] = [*_own(models[next(iter(models))])]
    found += [
        _each("ts_bias", models, _falls("TS best", "none", "delta_aprf_abs")),
        _each("ts_utility", models, _cheap("TS best")),
        _each("ts_recall", models, _falls("TS best", "none", "recall_10")),
        _each("ts_pd", models, _falls("TS best", "PD best", "delta_aprf_abs")),
        _each("pd_bias", large, *(_falls(name, "none", "delta_aprf_abs") for name in ("PD best", "PD auto"))),
        _each("pd_raises", small, *(_falls("none", name, "delta_aprf_abs") for name in ("PD best", "PD auto"))),
        _each("pd_utility", small, *(_falls(f"PD {how}", f"TS {how}", "mrr") for how in ("best", "auto"))),
        _each("auto_bias", models, _falls("TS best", "TS auto", "delta_aprf_abs")),
        _each("auto_utility", models, _cheap("TS auto")),
        _each("rab", large, _nearer("TS best", "none", "rab_5")),
        _each("dpr_bm25", models, _falls(FIRST, "none", "mrr")),
        _models(small, large),
        _each("lean_l4", large, _leans),
        *_of_baselines(baselines),
    ]
    return tuple(one for one in found if one is not None)


def _own(model: Model) -> list[Claim]:
    figures, row = model.figures, model.line
    n = counted(len(figures.audits), "seed")
    if figures.same_queries:
        n += f", {counted(len(figures.queries), 'query')} in all"
    signed = _value(figures, "none", "delta_aprf_signed")
    gone = figures.difference(row, "none", "delta_aprf_abs", 1 - REMOVED)
    none, best = (_value(figures, name, "delta_aprf_abs").mean for name in ("none", row))
    share = f", {1 - best / none:.0%} removed" if none and best is not None else ""
    kept = figures.difference(row, "none", "mrr", KEPT)
    over = figures.difference(row, "blind", "mrr")
    part = [_value(figures, name, "mrr").mean for name in (row, "none", "blind")]
    said = ", ".join(f"{name} {value:.4f}" for name, value in zip((row, "none", "blind"), part, strict=True) if value)
    if part[0] is not None and part[1]:
        said += f", {part[0] / part[1]:.1%} kept"
    # A weight of 0 is none: its row removes nothing, whatever the noise.
    weight = model.weights.get(row, 0.0)
    acted, no = Verdict(bool(weight)), "" if weight else f" ({NONE_CHOSEN})"
    return [
        Claim.of(PAPER, "gap", every(above(signed), _alive(figures, "none")), f"ΔA-PRF {signed.signed()}, {n}"),
        Claim.of(
            PAPER,
            "removed",
            every(below(gone), acted, _alive(figures, row)),
            f"λ {weight:g}{no}: |ΔA-PRF| {_said(best)} of {_said(none)}{share};"
            f" {row} − a quarter of none {gone.signed()}, {n}",
        ),
        Claim.of(
            PAPER,
            "kept",
            every(above(kept), above(over), acted, _alive(figures, row)),
            f"λ {weight:g}{no}: {said}; {row} − 0.97 none {kept.signed()}, {row} − blind {over.signed()}, {n}",
        ),
    ]


def _said(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _value(figures: Figures, system: str, column: str) -> Value:
    return figures.row(system, [column]).get(column, Value(None))


def _alive(figures: Figures, system: str) -> Verdict:
    """Whether a ranker is above BM25: a broken one fulfils no claim."""
    return above(figures.difference(system, FIRST, "mrr"))


def _each(key: str, models: Mapping[str, Model], *judges: Judge) -> Claim | None:
    """A claim that holds if it holds for every model; None if none was measured."""
    if not models:
        return None
    found = [(name, judge(own)) for name, own in models.items() for judge in judges]
    detail = "; ".join(f"{name} {text}" for name, (_, text) in found)
    return Claim.of(PAPER, key, every(*(verdict for _, (verdict, _) in found)), detail)


def _if_chosen(*systems: str) -> Callable[[Callable[[Figures], Judged]], Judge]:
    """A judge that leaves a claim undecided where no weight qualified for one of the rows."""

    def of(judge: Callable[[Figures], Judged]) -> Judge:
        def judged(model: Model) -> Judged:
            missing = model.unchosen(*systems)
            return (UNDECIDED, f"{', '.join(missing)}: {NONE_CHOSEN}") if missing else judge(model.figures)

        return judged

    return of


def _falls(system: str, baseline: str, column: str) -> Judge:
    """Whether a row's figure is below another's, both rankers being above BM25 (BM25 itself excepted)."""

    @_if_chosen(system, baseline)
    def judged(figures: Figures) -> Judged:
        value = figures.difference(system, baseline, column)
        alive = [_alive(figures, name) for name in (system, baseline) if name != FIRST]
        return floored(below(value), *alive), f"{system} − {baseline} {_with_n(value)}"

    return judged


def _nearer(system: str, baseline: str, column: str) -> Judge:
    """Whether a signed figure is nearer 0 than another."""

    @_if_chosen(system, baseline)
    def judged(figures: Figures) -> Judged:
        value = figures.nearer(system, baseline, column)
        verdict = floored(below(value), _alive(figures, system), _alive(figures, baseline))
        return verdict, f"|{system}| − |{baseline}| {_with_n(value)}"

    return judged


def _cheap(system: str) -> Judge:
    """Whether a row costs at most a tenth of none's MRR."""

    @_if_chosen(system)
    def judged(figures: Figures) -> Judged:
        value = figures.difference(system, "none", "mrr", COST)
        return floored(above(value), _alive(figures, system)), f"{system} − {COST:g} none {_with_n(value)}"

    return judged


def _with_n(value: Value) -> str:
    return f"{value.signed()}, {value.n} {value.unit}"


def _leans(model: Model) -> Judged:
    value = _value(model.figures, "none", "delta_aprf_signed")
    return floored(below(value), _alive(model.figures, "none")), _with_n(value)


def _models(small: Mapping[str, Model], large: Mapping[str, Model]) -> Claim | None:
    if not small or not large:
        return None
    one, other = (next(iter(models.values())).figures for models in (large, small))
    value = one.against(other, "none", "mrr")
    verdict = floored(above(value), _alive(one, "none"), _alive(other, "none"))
    return Claim.of(PAPER, "dpr_l4", verdict, _with_n(value))


def _of_baselines(figures: Figures) -> list[Claim | None]:
    """Table 2's claims: one seed, over its queries."""
    names = figures.systems
    found: list[Claim | None] = []
    if "RM3" in names:
        value = figures.difference("RM3", FIRST, "mrr")
        found.append(Claim.of(PAPER, "rm3", below(value), _with_n(value)))
    others = [name for name in ("C-KNRM", "KNRM", "MP", FIRST) if name in names]
    if "TK" in names and len(others) > 1:
        values = {name: figures.difference("TK", name, "mrr") for name in others}
        detail = "; ".join(f"TK − {name} {value.signed()}" for name, value in values.items())
        found.append(Claim.of(PAPER, "tk", every(*map(above, values.values())), detail))
    return found
