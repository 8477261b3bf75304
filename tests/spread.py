"""How the test files are spread over the processes of pytest-xdist."""

from __future__ import annotations

LONGEST = (
    "test_docs.py",
    "papers/test_ibbr.py",
    "papers/test_expansion_study.py",
    "papers/test_sampling.py",
    "files/test_ray.py",
    "test_readme.py",
    "results/test_widths.py",
    "training/test_st_with_fairness.py",
    "training/test_fairness.py",
    "training/test_choice.py",
    "auditing/test_page_in_browser.py",
    "measures/test_own_measures.py",
    "measures/test_exposure.py",
    "models/test_contract.py",
    "decide/test_rebalance.py",
    "cli/test_streams.py",
    "cli/test_gate.py",
    "cli/test_audit.py",
    "papers/test_hub.py",
    "training/test_adversarial.py",
    "models/test_backends.py",
    "training/test_st_training.py",
    "cli/test_killed.py",
    "auditing/test_page_labels.py",
    "auditing/test_page_origins.py",
    "auditing/test_label_bounds.py",
    "probes/test_probe.py",
)
"""The files that take longest, from the longest: begun last, one of them would leave the other processes waiting."""

TOGETHER: dict[str, str] = {}
"""Files that share a fixture which takes long, and the file whose process also runs them."""
