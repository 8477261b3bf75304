"""What removes bias: each method one small piece, usable alone."""

from typing import Literal

Term = Literal["ibbr-pd", "ibbr-ts"]
"""The fairness terms that are built in (:mod:`evenrank.mitigation.ibbr`), known without importing PyTorch."""
