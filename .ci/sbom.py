"""Prints what requirements.lock and ci/torch.txt pin as a bill of materials: CycloneDX 1.6, JSON.

Licences are those that the packages name, so they are installed where this runs.
"""

from __future__ import annotations

import json
import re
import runpy
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def licence(name: str) -> dict[str, Any]:
    """The SPDX expression of a package, or else the licence by the name that it gives."""
    about = metadata(name)
    if expression := about["License-Expression"]:
        return {"expression": expression}
    named = about["License"] or ""
    # Some have the whole text there.
    if not named or "\n" in named or named == "UNKNOWN":
        (named, *_) = (one for one in about.get_all("Classifier", []) if one.startswith("License :: "))
    return {"license": {"name": named.rpartition(":: ")[2]}}


def component(kind: str, name: str, version: str, hashes: list[str]) -> dict[str, Any]:
    """A component; ``hashes``: SHA-256 of each file that PyPI has of it."""
    name = re.sub("[-_.]+", "-", name).lower()
    purl = f"pkg:pypi/{name}@{version}"
    files = {
        "type": "distribution",
        "url": f"https://pypi.org/simple/{name}/",
        "hashes": [{"alg": "SHA-256", "content": one} for one in hashes],
    }
    made = {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl, "licenses": [licence(name)]}
    return made | ({"externalReferences": [files]} if hashes else {})


locks = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("requirements.lock", "ci/torch.txt"))
pins = re.findall(r"^([\w.-]+)==(\S+)((?: \\\n    --hash=sha256:\w+)*)", locks, re.MULTILINE)
version = runpy.run_path(str(ROOT / "src" / "evenrank" / "_version.py"))["__version__"]
bill = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "version": 1,
    "metadata": {"component": component("application", "evenrank", version, [])},
    "components": [component("library", *pin, re.findall(r"sha256:(\w+)", files)) for *pin, files in pins],
}
print(json.dumps(bill, indent=1))
