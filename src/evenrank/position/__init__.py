"""Position bias: where answers are in passages, and how that affects rankers.

- answer positions: :mod:`.answers`
- ATS and MATS: :mod:`.similarity`
- position sensitivity: :mod:`.sensitivity`, of the values over places in :mod:`.curves`
- effectiveness by the position of the answer, as it stands: :mod:`.buckets`
"""
