"""How the test files are spread over the processes of pytest-xdist."""

from __future__ import annotations

LONGEST = (
    "test_docs.py",
    "files/test_ray.py",
    "papers/test_sampling.py",
    "papers/test_ibbr.py",
    "papers/test_position.py",
    "probes/test_scan.py",
    "calibration/test_calibration.py",
    "papers/test_expansion_study.py",
    "test_core_alone.py",
    "models/test_rerank.py",
    "models/test_backends.py",
    "papers/test_hub.py",
    "results/test_widths.py",
    "training/test_resuming.py",
    "test_readme.py",
)
"""The files that take longest, from the longest: begun last, one of them would leave the other processes waiting."""
