"""What goes into a page beside its words: scripts and data that nothing in them can end, and what it may load."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup

    from evenrank.io import Provenance


def asset(name: str) -> str:
    """A file of the folder assets."""
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def bundle() -> str:
    """Vega, Vega-Lite and vega-embed in one script, which puts them on the window and keeps its other names in."""
    import vl_convert

    return enclosed(vl_convert.javascript_bundle())  # type: ignore[call-arg]


def enclosed(code: str) -> str:
    """Code whose names nobody else sees."""
    return f"(() => {{\n{code}\n}})();"


def script(code: str) -> Markup:
    """Code as the content of a script element; what would end it or open a comment is written with an escape."""
    from markupsafe import Markup

    code = code.replace("\r\n", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return Markup(code)


def policy(scripts: list[Markup]) -> str:
    """No request of any kind, and of scripts only those on the page as it was written."""
    hashes = [base64.b64encode(hashlib.sha256(str(script).encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )


_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def embedded(value: Any) -> Markup:
    """JSON as the content of a script element: nothing in it can end the element."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))


def provenance_section(provenance: Provenance | None) -> Markup | None:
    """How a result was made, as the section of a page; every text is escaped."""
    import jinja2
    from markupsafe import Markup

    if provenance is None:
        return None
    values = provenance.to_dict()
    files = [
        {
            "role": file["role"],
            "path": file["path"] or "",
            "digest": file.get("sha256") or file.get("commit"),
            "about": [f"{file[unit]:,} {unit}" for unit in ("files", "rows", "bytes") if file.get(unit) is not None]
            + [text for text in (file.get("note"), "changed since it was read" if "changed" in file else None) if text],
        }
        for file in values["files"]
    ]
    folders = any("files" in file for file in values["files"])
    made = {
        "command": values["command"],
        "date": values["date"],
        "versions": ", ".join(f"{name} {version}" for name, version in values["versions"].items()),
        "platform": values["platform"],
    }
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return Markup(environment.from_string(asset("provenance.html.j2")).render(made=made, files=files, folders=folders))
