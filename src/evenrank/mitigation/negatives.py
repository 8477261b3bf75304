"""Bias-aware negative sampling: negatives that mention a group, so that a ranker learns not to prefer them.

Bigdeli et al., the paper cited as [BAS]: of the N negatives of a query, a share λ are the unjudged documents of its
first-stage list with the largest bias β, the others are drawn at random from the rest.

When it misleads: β has no side: if the first stage finds mostly passages of one group, mostly that group is pushed
down, which can reverse a lean rather than remove it. An unjudged document may well be relevant; choosing it for its
words teaches the ranker that it is not. If a list has too few gendered documents, they do not fill the share (the
manifest counts such queries; ``gendered_only`` then draws the rest at random).

Worked example: of four unjudged documents with β 0, ln 3, 0 and ln 2, two negatives are taken, half of them by bias:
the one with ln 3, and one of the other three, by the seed.

>>> import polars as pl
>>> from evenrank.mitigation.negatives import sample
>>> table = pl.DataFrame({"query_id": ["q"] * 4, "doc_id": ["a", "b", "c", "d"], "beta": [0.0, 1.0986, 0.0, 0.6931]})
>>> drawn = sample(table, n=2, share=0.5)
>>> drawn.filter("biased")["doc_id"].to_list(), drawn.height
(['b'], 2)
"""

from __future__ import annotations

from .negative_files import Format, write_negatives
from .negative_sampling import Beta, beta, candidates, sample

__all__ = ["Beta", "Format", "beta", "candidates", "sample", "write_negatives"]
