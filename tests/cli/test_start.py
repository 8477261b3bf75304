"""What a command need not load to begin with: an audit of few queries is mostly its imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

# pyarrow is loaded by nothing but Parquet and texts in great number; numba and its kernels by these too.
HEAVY = (
    *("numba", "llvmlite", "pyarrow", "pandas", "torch", "ray", "ir_datasets", "ssl"),
    *("scipy.linalg", "scipy.stats", "scipy.sparse", "altair", "narwhals", "jsonschema"),
    *("evenrank.cli.train", "evenrank.mitigation", "evenrank.models", "evenrank.search", "evenrank.decide"),
)
FOR_REPORTS = ("jinja2", "vl_convert")
FOR_ANY_FIGURE = ("polars", "numpy", "scipy", "transformers", "Stemmer", "urllib.request")
LOADED = """
import sys
from evenrank.cli import main
try:
    main()
finally:
    print(*[name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("line", "heavy"),
    [
        ("audit a=run b=second --collection c.tsv --qrels qrels --json a.json --values", HEAVY + FOR_REPORTS),
        ("audit run second --collection c.tsv --qrels qrels --report r.html", HEAVY),
        ("audit --help", HEAVY + FOR_REPORTS + FOR_ANY_FIGURE),
    ],
)
def test_a_command_loads_what_it_uses(given, line, heavy):
    given({
        "run": "".join(f"{q} Q0 {d} {d} {9 - d} t\n" for q in range(5) for d in range(1, 5)),
        "second": "".join(f"{q} Q0 {d} {d} {d * q} t\n" for q in range(5) for d in range(1, 5)),
        "c.tsv": "1\tShe met her.\n2\tHe met his men, he said.\n3\tNobody.\n4\tA girl's book.\n",
        "qrels": "".join(f"{q} 0 {1 + q % 4} 1\n" for q in range(5)),
    })  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-c", LOADED.format(heavy=heavy), *line.split()], capture_output=True, text=True
    )
    assert ended.stderr.splitlines()[-1] == "", ended.stderr
    assert ended.returncode == 0
