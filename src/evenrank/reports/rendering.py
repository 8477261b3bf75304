"""Renders templates into HTML pages that open without a network and run no script but their own."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evenrank._version import __version__
from evenrank.io.run_cards import made_by_text

from .folding import asset, make_foldable, style_sheet
from .libraries import chart_libraries

if TYPE_CHECKING:
    from markupsafe import Markup

    from evenrank.io import Provenance

_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def render(
    template: str,
    *,
    scripts: Sequence[str],
    data: Mapping[str, object],
    provenance: Provenance | None,
    **context: object,
) -> str:
    """A page from a template.

    ``scripts``: the assets that make up its script, which runs after the chart libraries; ``data``: JSON values by
    the id of the element that carries them. Besides ``context`` the template sees ``css``, ``policy``, ``version``,
    ``data``, ``scripts`` and ``provenance`` (None if it is unknown), and may include the assets ``head.html.j2``,
    ``provenance.html.j2`` and ``scripts.html.j2``. Every text is escaped.
    """
    import jinja2
    from markupsafe import Markup

    code = "\n".join(asset(name) for name in scripts)
    elements = [_script(_scoped(chart_libraries())), _script(_scoped(f'"use strict";\n{code}'))]
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    page = environment.from_string(template).render(
        **context,
        version=__version__,
        css=Markup(style_sheet()),
        policy=_policy(elements),
        data=[(name, _embedded(value)) for name, value in data.items()],
        scripts=elements,
        provenance=None if provenance is None else _provenance(provenance),
    )
    return make_foldable(page)


def _scoped(code: str) -> str:
    """Code in a function, so that its names are its own, but for those that it defines on the window."""
    return f"(() => {{\n{code}\n}})();"


def _script(code: str) -> Markup:
    """Code as the content of a script element; whatever would end it or open a comment is escaped."""
    from markupsafe import Markup

    code = code.replace("\r\n", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return Markup(code)


def _policy(scripts: list[Markup]) -> str:
    """A content security policy that forbids every request and every script but these."""
    hashes = [base64.b64encode(hashlib.sha256(str(script).encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )


def _embedded(value: object) -> Markup:
    """JSON as the content of a script element, which nothing in it can end."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))


def _provenance(provenance: Provenance) -> dict[str, object]:
    """What the template of the provenance section shows."""
    values = provenance.to_dict()
    files = [
        {
            "role": file["role"],
            "path": file["path"] or "",
            "digest": file.get("sha256") or file.get("commit"),
            "card": [made_by_text(file["card"]), file["card"].get("command")] if "card" in file else [],
            "about": [f"{file[unit]:,} {unit}" for unit in ("files", "rows", "bytes") if file.get(unit) is not None]
            + [text for text in (file.get("note"), "changed since it was read" if "changed" in file else None) if text],
        }
        for file in values["files"]
    ]
    made = {
        "command": values["command"],
        "date": values["date"],
        "versions": ", ".join(f"{name} {version}" for name, version in values["versions"].items()),
        "platform": values["platform"],
    }
    return {"made": made, "files": files, "folders": any("files" in file for file in values["files"])}
