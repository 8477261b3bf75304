"""Listwise re-ranking: a score may depend on the other passages of the list and on their order.

Each query's whole list is given to the ranker at once, in the run's order and in five shuffles of it, so that an audit
can say how much of a figure is the order in which passages were given.
"""

from __future__ import annotations

import hashlib
import os

import numpy as np

from evenrank.engines.progress import progress
from evenrank.io import EvenrankError, Run, write_run
from evenrank.io.run_cards import file_facts

from .load import StoredRanker
from .pairs import Rows, TextPairs
from .scorers import Scorer, Scores

SHUFFLES = 5
# Queries whose lists a ranker is given in one call: a remote one can be asked for several at once.
_QUERIES = 64


def check_listwise(ranker: StoredRanker | Scorer) -> Scorer:
    """The ranker, if its scores can depend on other passages. Raises EvenrankError for any other."""
    if isinstance(ranker, Scorer) and ranker.listwise_capable:
        return ranker
    raise EvenrankError(
        f"`listwise`: expected a function or an endpoint that re-ranks: the scores of {ranker.name} do not depend on"
        " other passages"
    )


def shuffled(rows: Rows, query: str, seed: int, number: int) -> Rows:
    """The rows [n] of a query's list in the order of shuffle ``number`` (from 1); 0: as they are.

    A shuffle depends on the seed, its number, the query's id and the length of the list, not on other queries.
    """
    if not number:
        return rows
    own = int.from_bytes(hashlib.sha256(query.encode(errors="surrogatepass")).digest()[:8], "little")
    return np.random.default_rng([seed, number, own]).permutation(rows)


def listwise_scores(
    scorer: Scorer, pairs: TextPairs, queries: list[str], batch_size: int, seed: int, *, quiet: bool
) -> list[Scores]:
    """The scores [pairs] of every pair in the order given, then in each shuffle; ``queries``: the id of each query."""
    lists = pairs.windows("query", 1)
    found = []
    before = scorer.listwise
    scorer.listwise = True
    try:
        score = scorer.bind(pairs, batch_size)
        with progress("re-ranking", pairs.size * (1 + SHUFFLES), quiet=quiet) as advance:
            for number in range(1 + SHUFFLES):
                scores = np.empty(pairs.size)
                for start in range(0, len(lists), _QUERIES):
                    part = lists[start : start + _QUERIES]
                    asked = np.concatenate(
                        [shuffled(rows, queries[int(pairs.query[rows[0]])], seed, number) for rows in part]
                    )
                    scores[asked] = score(asked)
                    advance(len(asked))
                found.append(scores)
    finally:
        scorer.listwise = before
    return found


def order_path(out: str | os.PathLike[str], number: int) -> str:
    """The file of the run of shuffle ``number``, beside ``out``."""
    return f"{os.fspath(out)}.order-{number}"


def write_orders(run: Run, out: str | os.PathLike[str]) -> list[dict[str, object]]:
    """Writes the runs of the shuffles beside ``out``; what the card says of each: ``file``, ``bytes``, ``sha256``."""
    listed = []
    for number, order in enumerate(run.orders, 1):
        path = order_path(out, number)
        write_run(order, path)
        listed.append({"file": os.path.basename(path), **file_facts(path)})
    return listed
