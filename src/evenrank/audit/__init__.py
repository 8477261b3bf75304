"""Runs, a score table and judgements in; one result out, as a table, JSON or a page."""

import sys
import types
from typing import Any

from .compute import audit
from .findings import Comparison, Figure, RunAudit
from .inputs import named_runs, run_name
from .result import AuditResult

__all__ = ["AuditResult", "Comparison", "Figure", "RunAudit", "audit", "named_runs", "run_name"]


class _CallableModule(types.ModuleType):
    """Lets ``evenrank.audit(...)`` be the function although ``evenrank.audit`` is also this folder."""

    def __call__(self, *args: Any, **kwargs: Any) -> AuditResult:
        return audit(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
