"""What readers of an audit's JSON, such as the gate, have to know of its measures."""

from __future__ import annotations

import numpy as np
from ir_measures import Measure

from .delegated import DelegatedMeasure
from .linear import LinearMeasure
from .registry import is_bias, resolve
from .utility import UtilityMeasure


def facts(measure: Measure) -> dict[str, object]:
    """What a measure is, as JSON values.

    ``bias``: it measures bias rather than effectiveness; ``signed``: it is best near 0, its sign says towards which
    pole, and a budget is of its absolute value; ``order``: audits say what a run's order adds to its candidates;
    ``cutoff``: how many ranks it looks at, None: all; ``signs``: how the mean of each part of the figure enters it;
    ``least`` and ``most``: no value of a query is beyond, None: unbounded or not known.
    """
    how = resolve(measure)
    utility = isinstance(how, UtilityMeasure) and not isinstance(how, DelegatedMeasure)
    least, most = (0.0, 1.0) if utility else (how.least, how.most)
    units = np.eye(how.part_count)
    return {
        "bias": is_bias(measure),
        "signed": how.signed,
        "order": is_bias(measure) and isinstance(how, LinearMeasure) and not how.drawn,
        "cutoff": measure.params.get("cutoff"),
        "least": least if np.isfinite(least) else None,
        "most": most if np.isfinite(most) else None,
        "signs": [1.0] if len(units) == 1 else [float(how.per_query(list(unit))) for unit in units],
    }
