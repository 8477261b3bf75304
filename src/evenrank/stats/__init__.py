"""Statistics in standard terms: estimates, comparisons, bounds, clusters, planning, ratios, sampling.

Arrays in, dataclasses out; nothing here knows of rankings. Every interval, p-value and verdict of evenrank is made in
this folder, and docs/verdicts-table.md says how often each verdict is false.
"""
