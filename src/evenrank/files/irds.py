"""Collections, queries and qrels from ir_datasets, written ``irds:NAME``."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import EvenrankError, InputError, require
from .reading import first_line

if TYPE_CHECKING:
    import polars as pl

_PREFIX = "irds:"
_BATCH = 1 << 15
T = TypeVar("T")


def is_identifier(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is an ir_datasets identifier rather than a file."""
    return os.fspath(path).startswith(_PREFIX)


def batches(identifier: str, id_column: str) -> Iterator[pl.DataFrame]:
    """Documents (``id_column="doc_id"``) or queries of a data set, in batches with the id and ``text``."""
    import polars as pl

    kind = "docs" if id_column == "doc_id" else "queries"
    items = _iterate(identifier, kind)
    schema = {id_column: pl.String, "text": pl.String}
    while rows := [(getattr(item, id_column), item.default_text()) for item in itertools.islice(items, _BATCH)]:
        yield pl.DataFrame(rows, schema=schema, orient="row")


def texts(identifier: str, ids: pl.Series) -> pl.DataFrame:
    """The documents named by ``ids``, looked up rather than scanned; ids that do not exist are left out."""
    import polars as pl

    documents = _load(identifier, "docs")
    wanted = ids.unique(maintain_order=True).to_list()
    items = _guard(identifier, lambda: documents.docs_store().get_many_iter(wanted))
    rows = [(item.doc_id, item.default_text()) for item in items]
    return pl.DataFrame(rows, schema={"doc_id": pl.String, "text": pl.String}, orient="row")


def queries(identifier: str) -> Iterator[Any]:
    """The queries of a data set with all their fields, as ir_datasets returns them."""
    return _iterate(identifier, "queries")


def qrels(identifier: str) -> pl.DataFrame:
    """The judgements of a data set: ``query_id``, ``doc_id``, ``relevance``."""
    import polars as pl

    rows = [(item.query_id, item.doc_id, item.relevance) for item in _iterate(identifier, "qrels")]
    schema = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").unique(
        ["query_id", "doc_id"], keep="first", maintain_order=True
    )


def _load(identifier: str, kind: str) -> Any:
    require(f"reading {identifier}", "datasets", "ir_datasets")
    import ir_datasets

    name = identifier.removeprefix(_PREFIX)
    try:
        dataset = ir_datasets.load(name)
        has_kind = getattr(dataset, f"has_{kind}")()
    except KeyError:
        raise EvenrankError(f"{identifier}: ir_datasets has no data set {name!r}") from None
    except (OSError, RuntimeError) as error:
        raise _unreadable(identifier, error) from None
    if not has_kind:
        raise EvenrankError(f"{identifier}: this data set has no {kind}")
    return dataset


def _iterate(identifier: str, kind: str) -> Iterator[Any]:
    dataset = _load(identifier, kind)
    return _guard(identifier, lambda: getattr(dataset, f"{kind}_iter")())


def _guard(identifier: str, start: Callable[[], Iterable[T]]) -> Iterator[T]:
    """The items of ``start()``; a failed download or a missing package becomes an error of one line."""
    try:
        yield from start()
    except ImportError as error:
        # Some data sets need another package, which the message of ir_datasets names.
        raise InputError(identifier, " ".join(str(error).split())) from None
    except (OSError, RuntimeError) as error:
        raise _unreadable(identifier, error) from None


def _unreadable(identifier: str, error: Exception) -> InputError:
    # It lists every try, and the error within the error.
    return InputError(identifier, f"cannot be downloaded or read: {first_line(error)}")
