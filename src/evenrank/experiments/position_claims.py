"""What the position paper claims, the lines that the experiment has to reach, and what was measured of each."""

from __future__ import annotations

import numpy as np

from evenrank.io.wording import counted
from evenrank.position.answer_positions import AnswerPositions

from .paper_claims import Claim, Verdict, above, below, every, within
from .paper_tables import Value, paired, t_interval
from .position_found import Found, Key, both_tests, relative_mats
from .position_setup import BIASED, DEBIASED, ORIGINAL, OTHER, RANKERS
from .position_tables import TRANSFER

PAPER = "position"
MARGIN = 0.02
"""How far apart, relative to the mean, two means may be that count as equivalent."""
LOSS = 0.15
"""What training on rotated passages may cost on the original test, relative to the original-trained ranker."""
SHORT_NAMES = {"BERT_CAT": "cat", "BERT_DOT": "dot", "TK": "tk"}
SMALLER = 3.0
"""How many times smaller MATS has to be."""


def claims(found: Found, positions: dict[str, AnswerPositions]) -> tuple[Claim, ...]:
    """All claims that the measured values decide, in the order of the statements."""
    measured = [ranker for ranker in RANKERS if (BIASED, ranker, ORIGINAL, ORIGINAL) in found.values]
    made = [*_answers(positions), *_similarity(found)]
    for ranker in measured:
        made += _lines(found, ranker)
    if measured:
        made += _published_effects(found, measured)
        for ranker in measured:
            made += _transfer(found, ranker)
    return tuple(made)


def _of(key: str, verdict: Verdict, detail: str) -> Claim:
    return Claim.of(PAPER, key, verdict, detail)


def _n(found: Found, key: Key) -> str:
    """How many queries and seeds a figure is over."""
    of = found.values[key]
    return f"{counted(len(of[0]['ndcg']), 'query')} in {counted(len(of), 'seed')}"


# --- the lines that have to be reached ---


def _lines(found: Found, ranker: str) -> list[Claim]:
    name = SHORT_NAMES[ranker]
    key = {
        (training, test): (BIASED, ranker, training, test)
        for training in (ORIGINAL, DEBIASED)
        for test in (ORIGINAL, DEBIASED)
    }
    n = _n(found, key[ORIGINAL, ORIGINAL])
    drop = found.difference(key[ORIGINAL, DEBIASED], key[ORIGINAL, ORIGINAL])
    better = found.difference(key[DEBIASED, DEBIASED], key[ORIGINAL, DEBIASED])
    loss = found.difference(key[DEBIASED, ORIGINAL], key[ORIGINAL, ORIGINAL], level=0.90)
    base = float(np.mean(found.mean(key[ORIGINAL, ORIGINAL], "ndcg")))
    both = key[DEBIASED, ORIGINAL], key[ORIGINAL, ORIGINAL]
    little = floored(found, above(loss, -LOSS * base), *both)
    equivalent, detail = _equivalent(found, ranker)
    return [
        _of(f"drop_{name}", floored(found, below(drop), key[ORIGINAL, ORIGINAL]), f"{drop.signed()}, {n}"),
        _of(f"equivalent_{name}", equivalent, f"{detail}, {n}"),
        _of(
            f"better_{name}",
            floored(found, above(better), key[DEBIASED, DEBIASED], key[ORIGINAL, ORIGINAL]),
            f"{better.signed()}, {n}",
        ),
        _of(f"loss_{name}", little, f"{loss.signed()} on {base:.3f} (90% interval), {n}"),
    ]


def _equivalent(found: Found, ranker: str) -> tuple[Verdict, str]:
    """Whether the rotated-trained ranker is as good on both versions (two one-sided tests at 5%), and above BM25."""
    keys = both_tests(BIASED, ranker, DEBIASED)
    difference = found.difference(*keys, level=0.90)
    mean = float(np.mean([np.mean(found.mean(key, "ndcg")) for key in keys]))
    verdicts, floors = [within(difference, -MARGIN * mean, MARGIN * mean)], []
    for key in keys:
        over = _over_bm25(found, key)
        verdicts.append(above(over))
        floors.append(over.signed())
    detail = f"{difference.signed()} on {mean:.3f} (90% interval); above BM25 by {' and '.join(floors)}"
    return every(*verdicts), detail


def _over_bm25(found: Found, key: Key) -> Value:
    """A ranker's difference from BM25, each seed against BM25 on its own queries."""
    return found.difference(key, (key[0], "BM25", "", key[3]))


def both_trainings(name: str, ranker: str) -> tuple[Key, Key]:
    """The rotated-trained and the original-trained ranker, on the original test."""
    return (name, ranker, DEBIASED, ORIGINAL), (name, ranker, ORIGINAL, ORIGINAL)


def floored(found: Found, verdict: Verdict, *keys: Key) -> Verdict:
    """A verdict on rankers that are all shown to be above BM25; otherwise it is open: a broken ranker shows nothing."""
    floor = every(*(above(_over_bm25(found, key)) for key in keys))
    return verdict if floor.supported else Verdict(None)


# --- what the paper claims ---


def _answers(positions: dict[str, AnswerPositions]) -> list[Claim]:
    made = []
    if BIASED in positions:
        of = positions[BIASED]
        mean = _mean(of)
        made.append(_of("answers_early", below(mean, of.uniform()["mean"]), f"mean {mean.mean:.3f}, {_matches(of)}"))
    if BIASED in positions and OTHER in positions:
        one, other = _mean(positions[BIASED]), _mean(positions[OTHER])
        assert one.mean is not None
        assert other.mean is not None
        half, later = float(np.hypot(_half(one), _half(other))), other.mean - one.mean
        gap = Value(later, other.n, "matches", (later - half, later + half))
        ks = f"distance to uniform {positions[BIASED].ks:.3f} and {positions[OTHER].ks:.3f}"
        made.append(_of("answers_spread", above(gap), f"means {one.mean:.3f} and {other.mean:.3f}, {ks}"))
    return made


def _mean(of: AnswerPositions) -> Value:
    """The mean position with its normal interval."""
    return Value(of.mean, len(of.position), "matches", t_interval(of.position))


def _half(value: Value) -> float:
    return 0.0 if value.ci95 is None else (value.ci95[1] - value.ci95[0]) / 2


def _matches(of: AnswerPositions) -> str:
    return f"{of.table.height:,} matches"


def _similarity(found: Found) -> list[Claim]:
    if not found.similarity.get((BIASED, DEBIASED)):
        return []
    made = []
    mats = {
        (name, training): [one.mats for one in found.similarity.get((name, training), [])]
        for name in (BIASED, OTHER)
        for training in (ORIGINAL, DEBIASED)
    }
    for key, name in (("mats", BIASED), ("mats_squad", OTHER)):
        verdict, detail = _smaller(mats[name, ORIGINAL], mats[name, DEBIASED])
        made.append(_of(key, floored(found, verdict, *both_trainings(name, "TK")), detail))
    verdict, detail = _smaller(*(relative_mats(found, BIASED, training) for training in (ORIGINAL, DEBIASED)))
    made.append(_of("mats_relative", floored(found, verdict, *both_trainings(BIASED, "TK")), detail))
    gap = paired(mats[BIASED, ORIGINAL], mats[OTHER, ORIGINAL])
    alive = [(name, "TK", ORIGINAL, ORIGINAL) for name in (BIASED, OTHER)]
    made.append(
        _of("mats_collections", floored(found, above(gap), *alive), f"{gap.signed()}, {counted(gap.n, 'seed')}")
    )
    return made


def _smaller(before: list[float], after: list[float]) -> tuple[Verdict, str]:
    """Whether a figure is at least ``SMALLER`` times smaller: before − SMALLER · after > 0, over seeds."""
    first, second = float(np.nanmean(before)), float(np.nanmean(after))
    ratio = f"{first / second:.1f} ×" if second > 0 else "nothing left"
    margin = paired(before, [SMALLER * value for value in after])
    # A figure that is not above 0 before has nothing to fall from.
    known = Value.over_seeds(list(before))
    return every(above(known), above(margin)), f"{first:.4f} against {second:.4f}: {ratio}, {counted(margin.n, 'seed')}"


def _published_effects(found: Found, rankers: list[str]) -> list[Claim]:
    made = []
    costs = {
        ranker: found.difference((BIASED, ranker, DEBIASED, ORIGINAL), (BIASED, ranker, ORIGINAL, ORIGINAL))
        for ranker in rankers
    }
    trained = {ranker: both_trainings(BIASED, ranker) for ranker in rankers}
    every_key = [key for keys in trained.values() for key in keys]
    made.append(_of("cost", floored(found, every(*map(below, costs.values())), *every_key), _listed(costs)))
    drops = {
        ranker: found.difference((BIASED, ranker, ORIGINAL, DEBIASED), (BIASED, ranker, ORIGINAL, ORIGINAL))
        for ranker in rankers
    }
    alive = [key for _, key in trained.values()]
    made.append(_of("drop", floored(found, every(*map(below, drops.values())), *alive), _listed(drops)))
    changes = {ranker: found.change((BIASED, ranker, ORIGINAL), "ndcg") for ranker in rankers}
    if len(changes) > 1 and {"TK", "BERT_CAT"} <= set(changes):
        verdict, detail = _most(changes["TK"], changes["BERT_CAT"])
        of_both = [key for name in ("TK", "BERT_CAT") for key in trained[name][1:]]
        made.append(_of("tk_most", floored(found, verdict, *of_both), detail))
    squad = {}
    for ranker in rankers:
        keys = both_tests(OTHER, ranker, ORIGINAL)
        squad[ranker] = (found.difference(*keys, level=0.90), float(np.mean(found.mean(keys[1], "ndcg"))))
    verdicts = [within(value, -MARGIN * mean, MARGIN * mean) for value, mean in squad.values()]
    on_squad = [key for ranker in rankers for key in both_tests(OTHER, ranker, ORIGINAL)]
    values = {name: value for name, (value, _) in squad.items()}
    made.append(_of("squad_small", floored(found, every(*verdicts), *on_squad), _listed(values)))
    gains = {}
    for ranker in rankers:
        key: Key = (OTHER, ranker, ORIGINAL, ORIGINAL)
        gain = found.difference((OTHER, ranker, DEBIASED, ORIGINAL), key, level=0.90)
        gains[ranker] = (gain, float(np.mean(found.mean(key, "ndcg"))))
    verdicts = [above(value, -MARGIN * mean) for value, mean in gains.values()]
    on_squad = [key for ranker in rankers for key in both_trainings(OTHER, ranker)]
    values = {name: value for name, (value, _) in gains.items()}
    made.append(_of("squad_no_loss", floored(found, every(*verdicts), *on_squad), _listed(values)))
    return made


def _most(tk: Value, cat: Value) -> tuple[Verdict, str]:
    """Whether TK's relative change is below BERT_CAT's: two independent intervals."""
    if tk.mean is None or cat.mean is None or tk.ci95 is None or cat.ci95 is None:
        return Verdict(None), "undefined"
    half, gap = float(np.hypot(_half(tk), _half(cat))), tk.mean - cat.mean
    value = Value(gap, cat.n, cat.unit, (gap - half, gap + half))
    return below(value), f"{tk.mean:+.1f}% against {cat.mean:+.1f}%, difference {value.signed(1)} points"


def _listed(values: dict[str, Value]) -> str:
    return ", ".join(f"{name} {value.signed()}" for name, value in values.items())


def _transfer(found: Found, ranker: str) -> list[Claim]:
    scratch, original, debiased = ((OTHER, ranker, training, ORIGINAL) for training in TRANSFER.values())
    if debiased not in found.values:
        return []
    name = SHORT_NAMES[ranker]
    n = _n(found, debiased)
    if ranker == "BERT_CAT":
        mean = float(np.mean(found.mean(scratch, "ndcg")))
        differences = [found.difference(key, scratch, level=0.90) for key in (original, debiased)]
        verdict = every(*(within(value, -MARGIN * mean, MARGIN * mean) for value in differences))
        verdict = floored(found, verdict, scratch, original, debiased)
        return [_of("transfer_cat", verdict, f"{' and '.join(one.signed() for one in differences)} on {mean:.3f}, {n}")]
    gain, against = found.difference(debiased, scratch), found.difference(debiased, original)
    return [
        _of(f"transfer_{name}", floored(found, above(gain), debiased, scratch), f"{gain.signed()}, {n}"),
        _of(
            f"transfer_debiased_{name}", floored(found, above(against), debiased, original), f"{against.signed()}, {n}"
        ),
    ]
