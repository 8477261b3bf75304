"""The contract of results."""

from __future__ import annotations

import json
import tempfile
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path

from rich.cells import cell_len

from evenrank._version import __version__
from evenrank.files import InputError, Provenance
from evenrank.results.result import SCHEMA, Result


class _Tags(HTMLParser):
    """The names of all elements and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}


def _refuse(constant: str) -> None:
    raise AssertionError(f"its JSON has {constant}, which is no JSON")


def check_result(result: Result) -> None:
    """Checks that a result keeps what its readers rely on.

    - JSON: version and schema first, provenance last, ``to_dict`` between, every field under its name (but for those
      that say that they are elsewhere), and no NaN; the file has the same text.
    - The screen fits 80 columns; screen, notebook and page hold no control character, the notebook no script, image
      or link, and the page is one HTML document. A result never writes over a file that it was made from.
    - Every frame has a column.

    A name such as ``<script>evil</script>`` in the result is seen only as text.
    Raises AssertionError with the first that is broken.
    """
    result = replace(result, provenance=Provenance("a command"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _check_json(result, folder / "result.json")
        result.report(folder / "result.html")
        page = (folder / "result.html").read_text(encoding="utf-8")
        made_of = replace(result, provenance=Provenance("a command").add("run", folder / "result.json"))
        try:
            made_of.report(folder / "result.json")
        except InputError:
            pass
        else:
            raise AssertionError("its report is written over a file that it was made from")
    screen, notebook = result.table(), result._repr_html_()
    assert screen.strip(), "its screen is empty"
    widest = max(map(cell_len, screen.splitlines()))
    assert widest <= 80, f"its screen is {widest} columns wide"
    assert "\x1b" not in repr(result) + screen + notebook + page, "a control character is shown"
    active = _Tags(notebook).found & {"script", "img", "onerror", "onclick", "href", "src"}
    assert not active, f"its view in a notebook holds {', '.join(sorted(active))}"
    assert "<script>evil" not in notebook + page, "a name is not escaped"
    assert page.startswith("<!doctype html>"), "its page is no HTML document"
    assert all(frame.width for frame in result.frames().values()), "a frame without a column"


def _check_json(result: Result, path: Path) -> None:
    text = result.to_json(path)
    assert path.read_text(encoding="utf-8") == text + "\n", "the JSON that is written differs from that returned"
    written = json.loads(text, parse_constant=_refuse)
    assert list(written)[:2] == ["evenrank", "schema"], "its JSON does not begin with version and schema"
    assert (written["evenrank"], written["schema"]) == (__version__, SCHEMA), "another version or schema"
    assert list(written)[-1] == "provenance", "its JSON does not end with provenance"
    assert written["provenance"]["command"] == "a command", "its provenance is another"
    of = result.to_dict()
    assert {name: value for name, value in written.items() if name in of} == of, "its JSON differs from to_dict"
    lost = [field.name for field in fields(result) if not field.metadata and field.name not in written]
    assert not lost, f"its JSON lacks {', '.join(lost)}"
