"""Documents and queries from JSONL: an id and a text an object."""

from __future__ import annotations

import json
import os

import polars as pl

from .errors import InputError, quoted
from .files import Block
from .tables import lines_of

IDS = ("doc_id", "query_id", "id", "_id", "docid", "docno", "pid", "qid")
TEXTS = ("text", "contents", "body", "passage", "query")
"""What the columns of ids and texts may be called."""


def parse_jsonl(path: str | os.PathLike[str], block: Block, id_column: str, first: bool) -> pl.DataFrame:
    try:
        rows = [json_row(value) for value in map(json.loads, filter(str.strip, block.data.decode().split("\n")))]
        return pl.DataFrame(rows, schema={id_column: pl.String, "text": pl.String}, orient="row")
    except (ValueError, RecursionError):
        for line, content in lines_of(block).iter_rows():
            try:
                "".join(json_row(json.loads(content))).encode()
            except UnicodeEncodeError:
                raise InputError(
                    path, f"expected Unicode, found half a surrogate pair: {quoted(content)}", line=line
                ) from None
            except (ValueError, RecursionError) as error:
                reason = str(error) if isinstance(error, _FieldError) else "expected a JSON object"
                raise InputError(path, f"{reason}, found {quoted(content)}", line=line) from None
        raise


class _FieldError(ValueError):
    pass


def json_row(value: object) -> tuple[str, str]:
    if not isinstance(value, dict):
        raise _FieldError("expected a JSON object")
    row_id = next((value[name] for name in IDS if name in value), None)
    text = next((value[name] for name in TEXTS if name in value), None)
    if isinstance(row_id, bool) or not isinstance(row_id, str | int) or row_id == "":
        raise _FieldError(f"expected a string or an integer under one of {', '.join(IDS)}")
    if not isinstance(text, str):
        raise _FieldError(f"expected a string under one of {', '.join(TEXTS)}")
    title = value.get("title")
    return str(row_id), f"{title} {text}" if isinstance(title, str) and title else text
