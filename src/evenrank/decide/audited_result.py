"""An audit's result as a gate reads it: the arrays themselves."""

from __future__ import annotations

from functools import cache

import numpy as np

from evenrank.auditing.data import AuditFigures
from evenrank.files.json_values import json_values
from evenrank.files.types import Array
from evenrank.measures import facts

from .audited import Audited, RuleValues, named_clusters, no_quantity, not_measured
from .budget import Facts, Rule


def audited_result(result: AuditFigures) -> Audited:
    """The audit that a result is, as :func:`evenrank.decide.audited_json.audited_json` has it from a file."""
    poles = result.settings.get("poles")
    provenance = None if result.provenance is None else json_values(result.provenance.to_dict())

    @cache
    def values(run: str, rule: Rule) -> RuleValues:
        return _values(result, run, rule)

    return Audited(
        runs=tuple(result),
        own_baseline=result.baseline,
        queries=len(result.queries),
        facts={str(measure): Facts.of(facts(measure)) for measure in result.measures},
        values=values,
        lengths={run.name: run.lengths for run in result.runs if run.lengths is not None},
        query_group=None if result.query_group is None else result.query_group.to_list(),
        clusters=None if result.query_cluster is None else result.query_cluster.to_numpy(),
        query_clusters=named_clusters(result.settings["query_clusters"]),
        poles=(poles[0], poles[1]) if poles else None,
        warnings=result.warnings,
        unchecked=result.unchecked,
        provenance=provenance if isinstance(provenance, dict) else None,
    )


def _values(result: AuditFigures, run: str, rule: Rule) -> RuleValues:
    figures = result[run].measures
    if rule.measure not in figures:
        raise not_measured(rule, list(figures))
    figure = figures[rule.measure]
    known = figure.known
    effect = figure.vs_random_order if rule.quantity == "vs_random_order" else figure.vs_ideal_order
    if rule.quantity != "figure" and effect is None:
        raise no_quantity(rule, run)
    quantity = figure if rule.quantity == "figure" or effect is None else effect
    parts = (figure.parts if quantity is figure else ()) or (quantity.values,)
    return RuleValues(
        tuple(_finite(part) for part in parts),
        None if quantity.over_ties is None else _finite(quantity.over_ties),
        quantity.sample,
        greatest=figure.greatest if figure.greatest is not None and np.isfinite(figure.greatest) else None,
        partly_labelled=figure.sample is None and known is not None and known.rows != known.of,
    )


def _finite(values: Array) -> Array:
    """The values [Q], with NaN for infinite ones, which JSON cannot have."""
    return values if not np.isinf(values).any() else np.where(np.isinf(values), np.nan, values)
