"""Runs, a score table and judgements in; one result out, as a table, JSON or a page."""

from .compute import audit, run_name
from .result import AuditResult, Comparison, Figure, RunAudit

__all__ = ["AuditResult", "Comparison", "Figure", "RunAudit", "audit", "run_name"]
