"""evenrank measures bias in search rankings, beside effectiveness, and removes it."""

__version__ = "0.1.0"
