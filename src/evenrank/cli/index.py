"""``evenrank index``: a first stage that is kept, in a folder."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# BM25, kept in a folder.
evenrank index docs.tsv --out bm25.index
# Dense vectors.
evenrank index docs.tsv --model sentence-transformers/all-MiniLM-L6-v2 \
    --out dense.index
# BM25 for texts in German.
evenrank index docs.tsv --stopwords german --stemmer german --out de.index
"""


def command(
    *,
    given: Annotated[Values, From("search.indexes", "build_index")],
    encoded: Annotated[Values, From("search.index_folder", "Encoding")],
    quiet: opt.Quiet = False,
) -> None:
    """Index a collection once, to search it often. To search: evenrank retrieve INDEX QUERIES.

    The same command continues an encoding that was interrupted.
    """
    from evenrank import Encoding, build_index
    from evenrank.files.wording import counted

    _output.refuse_standard(given["out"])
    manifest = build_index(**given, encoding=Encoding(**encoded), quiet=quiet)
    _output.say(f"{counted(manifest.documents, 'document')} indexed: {given['out']}", err=True)
