"""Compares the figures of two trees, while the source gets another shape: every command, every study at its smallest.

``make freeze`` makes the figures of the commit in ``freeze/base`` and of the working tree, each with its own commands
(:mod:`freeze.steps`), and compares them to 1e-12 (:mod:`freeze.figures`). ``freeze/changes.toml`` names what was
renamed, taken out or changed on purpose, with the reason.
"""
