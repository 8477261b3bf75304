"""Prints what requirements.lock and ci/torch.txt pin as a bill of materials: CycloneDX 1.6, JSON."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def component(kind: str, name: str, version: str, hashes: list[str]) -> dict[str, Any]:
    """A component; ``hashes``: SHA-256 of each file that PyPI has of it."""
    name = re.sub("[-_.]+", "-", name).lower()
    purl = f"pkg:pypi/{name}@{version}"
    files = {
        "type": "distribution",
        "url": f"https://pypi.org/simple/{name}/",
        "hashes": [{"alg": "SHA-256", "content": one} for one in hashes],
    }
    made = {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}
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
