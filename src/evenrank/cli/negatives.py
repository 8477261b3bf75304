"""``evenrank negatives``: training data with bias-aware negatives."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# Twenty negatives per query, 60% of them the most biased candidates.
evenrank negatives bm25.run --qrels qrels.txt --collection docs.tsv \
    --queries queries.tsv --out negatives.parquet
# Fewer, and all at random, to compare with.
evenrank negatives bm25.run --qrels qrels.txt --collection docs.tsv \
    --n 8 --share 0 --out random.parquet
# As tuples for sentence-transformers.
evenrank negatives bm25.run --qrels qrels.txt --collection docs.tsv \
    --queries queries.tsv --format n-tuple --out tuples.jsonl
"""


def command(
    *, given: Annotated[Values, From("mitigation.negatives", "write_negatives")], quiet: opt.Quiet = False
) -> None:
    from evenrank import write_negatives
    from evenrank.files.wording import counted

    _output.refuse_standard(given["out"])
    done = write_negatives(**given, quiet=quiet)
    written = f"{done['biased']} biased and {done['random']} random negatives: {given['out']}"
    _output.say(f"{counted(done['queries'], 'query')}, {written}", err=True)
    for note in done["notes"]:
        _output.say(note, err=True)
    left, short, gendered = done["left_out"], done["short"], done["short_of_gendered"]
    notes = {
        "left out, without a judged relevant document": left["without_relevant"],
        "left out, without an unjudged document": left["without_candidate"],
        f"left out of the n-tuples, with fewer than {given['n']} negatives": left.get("too_few_for_n_tuple", 0),
        f"with fewer than {given['n']} unjudged documents": short["queries"],
        "with fewer biased documents than the share asks for": gendered["queries"],
    }
    for what, count in notes.items():
        if count:
            _output.say(f"queries {what}: {count}", err=True)
    unknown = done.get("unknown", {"candidates": 0})
    if unknown["candidates"]:
        of = f"{unknown['candidates']:,} of {done['candidates']:,} ({counted(unknown['queries'], 'query')})"
        drawn = f"never chosen for their bias, {unknown['negatives']:,} drawn at random"
        _output.say(f"candidates without a label: {of}; {drawn}", err=True)
