"""Prints what requirements.lock pins as a bill of materials: CycloneDX 1.6, JSON."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]


def component(kind: str, name: str, version: str) -> dict[str, str]:
    purl = f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}@{version}"
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}


pins = (ROOT / "requirements.lock").read_text(encoding="utf-8").split()
version = runpy.run_path(str(ROOT / "src" / "evenrank" / "_version.py"))["__version__"]
bill = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "version": 1,
    "metadata": {"component": component("application", "evenrank", version)},
    "components": [component("library", *pin.split("==")) for pin in pins],
}
print(json.dumps(bill, indent=1))
