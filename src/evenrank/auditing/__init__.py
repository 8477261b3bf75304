"""Runs, a group table and judgements in; one result out, as a table, JSON or a page."""

from .audit_result import AuditResult
from .compute import audit
from .data import NEUTRAL_FIRST, RANDOM, RELEVANCE_FIRST, FromLabels, MetricValue, OrderEffect, RunAudit, RunComparison
from .inputs import named_runs, run_name

__all__ = [
    "NEUTRAL_FIRST",
    "RANDOM",
    "RELEVANCE_FIRST",
    "AuditResult",
    "FromLabels",
    "MetricValue",
    "OrderEffect",
    "RunAudit",
    "RunComparison",
    "audit",
    "named_runs",
    "run_name",
]
