"""Audits for the gate, from values of queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenrank import gate

QUERIES = 60
RNG = np.random.default_rng(0)
OLD = RNG.uniform(0.2, 0.8, QUERIES)
NOISE = RNG.normal(0, 0.05, QUERIES)
LEAN = RNG.normal(0.0, 0.1, QUERIES)


def audit(new: dict[str, Any], old: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The JSON of an audit of two runs from values by measure."""

    def figure(values: Any) -> dict[str, Any]:
        listed = [None if np.isnan(v) else float(v) for v in values]
        return {"values": listed, "mean": float(np.nanmean(values)), "greatest": 1.0}

    size = len(next(iter(new.values())))
    runs = {
        name: {"lengths": [10] * size, "measures": {m: figure(v) for m, v in own.items()}}
        for name, own in (("old", old or {}), ("new", new))
    }
    return {"baseline": "old", "queries": [str(q) for q in range(size)], "runs": runs, "notes": [], **more}


def rule(measure: str = "nDCG@10", **values: Any) -> dict[str, Any]:
    return {"rule": [{"measure": measure, **values}]}


def one(data: dict[str, Any], budget: dict[str, Any], **options: Any) -> Any:
    [ruling] = gate(data, budget=budget, **options).rules
    return ruling
