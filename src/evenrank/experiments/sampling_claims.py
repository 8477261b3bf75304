"""The claims of the sampling experiment: evenrank's own lines, then the paper's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from evenrank.measures.statistics import SIGNIFICANT

from .paper_claims import Claim, Verdict, above, below, every
from .paper_tables import Value
from .published import published
from .sampling_measures import BIAS, FIRST, MEASURES, Figures, margin, share_above
from .sampling_tables import ADVERSARIAL, AWARE, DEV, ORIGINAL, PUBLIC_RUNS, Found

PAPER, BASELINE = "sampling", "advbert"
_ROUNDING = 0.0005
_FLOOR = "a ranker that beats BM25"


def claims(found: Found, main: str) -> tuple[Claim, ...]:
    """Every claim that was measured; ``main``: the ranker of evenrank's own lines."""
    dev, fair, sensitive = (found.sets.get(part, {}) for part in (DEV, "QS1", "QS2"))
    own = [
        _claim("nfairr", fair, _rises, only=main),
        _claim("arab_tf", fair, lambda one: _falls(one, "arab_tf_10"), only=main),
        _claim("arab_bool", fair, lambda one: _falls(one, "arab_bool_10"), only=main),
        _claim("mrr", dev, _kept, only=main),
        reproduced(found),
    ]
    paper = [
        _claim("dev_mrr", dev, lambda one: _no_drop(one, AWARE, ORIGINAL)),
        _claim("qs1_nfairr", fair, _rises),
        _claim("qs1_arab", fair, *(_fall(measure) for measure in BIAS)),
        _claim("qs1_mrr", fair, _costs),
        _claim("qs2_nfairr", sensitive, _rises),
        _claim("qs2_arab", sensitive, *(_fall(measure) for measure in BIAS)),
    ]
    return tuple(
        one
        for one in (*own, *paper, *_against_advbert(found), *_over_shares(found), *_of_advbert(found))
        if one is not None
    )


Judged = tuple[Verdict, str]
Judge = Callable[[Figures], Judged]


def _claim(
    key: str, rankers: Mapping[str, Figures], *judges: Judge, only: str | None = None, paper: str = PAPER
) -> Claim | None:
    """A claim that holds if it holds for every ranker; None if none was measured."""
    shown = {name: figures for name, figures in rankers.items() if only in (None, name)}
    if not shown:
        return None
    found = [(name, judge(figures)) for name, figures in shown.items() for judge in judges]
    detail = "; ".join(f"{name} {text}" for name, (_, text) in found)
    return Claim.of(paper, key, every(*(verdict for _, (verdict, _) in found)), detail)


def _said(value: Value) -> str:
    return f"{value.signed()}, {value.n} {value.unit}"


def _floored(verdict: Verdict, figures: Figures | None, *systems: str) -> Verdict:
    """Support needs rankers above BM25; one below it decides nothing, for a claim or against it."""
    beats = [] if figures is None else [above(figures.difference(one, FIRST, "mrr_10")) for one in systems]
    if figures is None or any(one.supported is False for one in beats):
        return Verdict(None, _FLOOR)
    return Verdict(None, _FLOOR) if verdict.supported and not every(*beats).supported else verdict


def _rises(figures: Figures) -> Judged:
    value = figures.difference(AWARE, ORIGINAL, "nfairr_10")
    return _floored(above(value), figures, AWARE, ORIGINAL), _said(value)


def _falls(figures: Figures, measure: str) -> Judged:
    value = figures.nearer(AWARE, ORIGINAL, measure)
    return _floored(below(value), figures, AWARE, ORIGINAL), f"{measure.split('_')[1]} {_said(value)}"


def _fall(measure: str) -> Judge:
    return lambda figures: _falls(figures, measure)


def _costs(figures: Figures) -> Judged:
    value = figures.difference(AWARE, ORIGINAL, "mrr_10")
    return _floored(below(value), figures, AWARE, ORIGINAL), _said(value)


def _kept(figures: Figures) -> Judged:
    """Not inferior: the one-sided 95% interval ends above −5% of the original's."""
    value = figures.difference(AWARE, ORIGINAL, "mrr_10", level=0.90)
    limit = margin(figures, ORIGINAL)
    text = f"{_said(value)}, limit {limit:+.4f}, 90% interval"
    return every(above(value, limit), above(figures.difference(AWARE, FIRST, "mrr_10"))), text


def _no_drop(figures: Figures, system: str, baseline: str) -> Judged:
    """ "No significant drop": refuted by one; shown only by not being inferior, since a missing one shows nothing."""
    test = figures.test(system, baseline, "mrr_10")
    value = figures.difference(system, baseline, "mrr_10", level=0.90)
    text = f"{_said(value)}, p {'unknown' if test.p is None else f'{test.p:.3f}'}"
    if test.p is not None and test.p < SIGNIFICANT and (test.mean or 0.0) < 0:
        return Verdict(False), text
    shown = above(value, margin(figures, baseline))
    return _floored(Verdict(None, shown.needs) if shown.supported is False else shown, figures, system, baseline), text


def attacked(found: Found) -> Claim | None:
    """Whether a fresh attack finds less after AdvBert's training than before: a ranker that finds nothing either hides
    the group from any attack."""
    if not found.leakage:
        return None
    verdicts, said = [], []
    for name, leakage in found.leakage.items():
        value = leaked(leakage["before"], leakage["after"])
        verdicts.append(_floored(below(value), found.small.get(name), ADVERSARIAL, ORIGINAL))
        said.append(f"{name} {_said(value)}")
    return Claim.of(BASELINE, "adversary", every(*verdicts), "; ".join(said))


def leaked(before: Value, after: Value) -> Value:
    """after − before, with the interval of two independent figures: both attacks are on the same pairs, so it is
    rather too wide."""
    if before.mean is None or after.mean is None or before.ci95 is None or after.ci95 is None:
        return Value(None)
    half = math.hypot(*((one.ci95[1] - one.ci95[0]) / 2 for one in (before, after) if one.ci95))
    difference = after.mean - before.mean
    return Value(difference, before.n, "queries", (difference - half, difference + half))


def reproduced(found: Found) -> Claim | None:
    """Whether the authors' runs give the printed rows."""
    if found.public is None:
        return None
    lines = {(line["ranker"], line["training"]): line for line in published("sampling_table3")}
    gaps = [
        abs(found.public.mean(name, measure) - float(lines[key][measure]))
        for name, key in PUBLIC_RUNS.items()
        if name in found.public.seeds[0]
        for measure in MEASURES
    ]
    if not gaps:
        return None
    near = sum(gap <= _ROUNDING for gap in gaps)
    detail = f"{near} of {len(gaps)} figures, the largest gap {max(gaps):.4f}"
    return Claim.of(PAPER, "public_rows", Verdict(near == len(gaps)), detail)


def _nearer(measure: str, first: str, second: str) -> Judge:
    """Whether |ARaB| of ``first`` is below that of ``second``."""

    def judge(figures: Figures) -> Judged:
        value = figures.nearer(first, second, measure)
        return _floored(below(value), figures, first, second), f"{measure.split('_')[1]} {_said(value)}"

    return judge


def _higher(measure: str, first: str, second: str) -> Judge:
    """Whether a measure of ``first`` is above that of ``second``."""

    def judge(figures: Figures) -> Judged:
        value = figures.difference(first, second, measure)
        return _floored(above(value), figures, first, second), _said(value)

    return judge


def _of_advbert(found: Found) -> list[Claim | None]:
    """Of the baseline's own paper."""
    small = _with_advbert(found)

    def costs(figures: Figures) -> Judged:
        value = figures.difference(ADVERSARIAL, ORIGINAL, "mrr_10")
        return _floored(below(value), figures, ADVERSARIAL, ORIGINAL), _said(value)

    nearer = [_nearer(measure, ADVERSARIAL, ORIGINAL) for measure in BIAS]
    return [
        attacked(found),
        _claim("nfairr", small, _higher("nfairr_10", ADVERSARIAL, ORIGINAL), paper=BASELINE),
        _claim("arab", small, *nearer, paper=BASELINE),
        _claim("mrr", small, costs, paper=BASELINE),
    ]


def _with_advbert(found: Found) -> dict[str, Figures]:
    return {name: figures for name, figures in found.small.items() if ADVERSARIAL in figures.seeds[0]}


def _against_advbert(found: Found) -> list[Claim | None]:
    small = _with_advbert(found)
    aware = [_nearer(measure, AWARE, ADVERSARIAL) for measure in BIAS]
    adversarial = [_nearer(measure, ADVERSARIAL, AWARE) for measure in BIAS]
    made = [
        _claim("adv_nfairr", small, _higher("nfairr_10", AWARE, ADVERSARIAL)),
        _claim("adv_mrr", small, _higher("mrr_10", AWARE, ADVERSARIAL)),
        _claim("adv_arab_tiny", small, *aware, only="BERT-Tiny"),
        _claim("adv_arab_mini", small, *adversarial, only="BERT-Mini"),
    ]
    for key, name in (("fairer_tiny", "BERT-Tiny"), ("fairer_mini", "BERT-Mini")):
        if name in found.fairer and name in small:
            value = share_above(found.fairer[name]["difference"])
            detail = f"{_percent(value)} of {value.n} queries"
            verdict = _floored(above(value, 0.5), small[name], AWARE, ADVERSARIAL)
            made.append(Claim.of(PAPER, key, verdict, detail))
    return made


def _percent(value: Value) -> str:
    return "undefined" if value.mean is None else f"{value.mean:.0%}"


def _over_shares(found: Found) -> list[Claim | None]:
    """Fig. 1: NFaiRR on QS2, MRR on dev; one seed."""
    if DEV not in found.shares or "QS2" not in found.shares:
        return []
    dev, sensitive = found.shares[DEV], found.shares["QS2"]
    shares = sorted((name for name in dev.seeds[0] if name.replace(".", "", 1).isdigit()), key=float)
    zero, others = shares[0], shares[1:]
    if float(zero) != 0 or not others:
        return []
    gains = {name: sensitive.difference(name, zero, "nfairr_10") for name in others}
    rise = every(*(_floored(above(value), sensitive, name, zero) for name, value in gains.items()))
    made: list[Claim | None] = [
        Claim.of(PAPER, "shares_nfairr", rise, "; ".join(f"λ {n} {v.signed()}" for n, v in gains.items()))
    ]
    low = [(name, _no_drop(dev, name, zero)) for name in others if float(name) <= 0.6]
    if low:
        detail = "; ".join(f"λ {name} {text}" for name, (_, text) in low)
        made.append(Claim.of(PAPER, "shares_mrr", every(*(verdict for _, (verdict, _) in low)), detail))
    high = {name: dev.difference(name, zero, "mrr_10") for name in others if float(name) > 0.6}
    if high:
        verdict = every(*(_floored(below(value), dev, name, zero) for name, value in high.items()))
        made.append(Claim.of(PAPER, "shares_drop", verdict, "; ".join(f"λ {n} {v.signed()}" for n, v in high.items())))
    return made
