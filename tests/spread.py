"""How the test files are spread over the processes of pytest-xdist."""

from __future__ import annotations

LONGEST = (
    "probes/test_scan.py",
    "papers/test_sampling.py",
    "papers/test_ibbr.py",
    "calibration/test_calibration.py",
    "papers/test_position.py",
    "papers/test_expansion_study.py",
    "models/test_contract.py",
    "decide/test_rebalance.py",
    "test_docs.py",
    "test_core_alone.py",
    "papers/test_hub.py",
    "test_testing.py",
    "models/test_kinds.py",
    "auditing/test_page_in_browser.py",
    "results/test_widths.py",
    "test_readme.py",
)
"""The files that take longest, from the longest: begun last, one of them would leave the other processes waiting."""
