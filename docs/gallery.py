"""Generates small real reports from the built-in collection and takes screenshots of them for the page "Reports".

python docs/gallery.py [--out docs/gallery] [--only audit …] (needs chromium and playwright)
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

WIDTH, PHONE = 1280, 390
RUN = Path(__file__).parent / "reproduced"
"""What is kept of the experiments."""
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def audit(folder: Path) -> Path:
    """The README's audit: BM25, and BM25 with RM3."""
    import evenrank

    data = collection(folder)
    texts, queries = data / "collection.tsv", data / "queries.tsv"
    runs = {
        "BM25": evenrank.retrieve(texts, queries, k=50, quiet=True),
        "RM3": evenrank.retrieve(texts, queries, k=50, rm3=evenrank.RM3(), quiet=True),
    }
    result = evenrank.audit(
        runs,
        baseline="BM25",
        collection=texts,
        queries=queries,
        qrels=data / "qrels.txt",
    )
    result.report(folder / "audit.html")
    return folder / "audit.html"


def answers(folder: Path) -> Path:
    """Where the planted answers are: early."""
    data = collection(folder)
    command("position", "answers", data / "answers.json", "--report", folder / "answers.html")
    return folder / "answers.html"


def experiment(folder: Path) -> Path:
    """The claims on query expansion with debiased vectors, as the values kept of their experiment decide them."""
    from evenrank.papers.claims import decided_claims
    from evenrank.papers.figures import Figures
    from evenrank.papers.report import ExperimentPage

    run = json.loads((RUN / "expansion-real.json").read_text(encoding="utf-8"))
    figures = Figures.read(RUN / "expansion-real.parquet")
    ExperimentPage(
        name=run["experiment"],
        title="Debiased embeddings in query expansion",
        source="",
        scale=run["scale"],
        seeds=tuple(run["seeds"]),
        models=run["models"],
        stand_ins=run["stand_ins"],
        claims=decided_claims(run["experiment"], figures, run["models"], run["scale"], run["stand_ins"]),
        layouts=(),
        extra=(),
        drawings=(),
        notes=(),
    ).report(folder / "experiment.html")
    return folder / "experiment.html"


# Name of the picture, its report, the element at its top ("": the top of the page; a closed section is opened), and the
# size of the window.
PICTURES: tuple[tuple[str, Callable[[Path], Path], str, tuple[int, int]], ...] = (
    ("audit", audit, "", (WIDTH, 800)),
    ("audit-phone", audit, "", (PHONE, 844)),
    ("audit-origins", audit, "#origins", (WIDTH, 640)),
    ("audit-queries", audit, "#queries", (1000, 560)),
    ("answers", answers, "details.part", (WIDTH, 500)),
    ("experiment", experiment, "", (WIDTH, 550)),
)


def collection(folder: Path) -> Path:
    """The built-in collection: 80% of the gendered passages that answer are male-worded, and answer early."""
    from evenrank import SyntheticConfig, generate

    data = folder / "data"
    if not data.is_dir():
        generate(
            SyntheticConfig(passages=1000, male_share=0.6, relevance_male_share=0.8, answer_position="early")
        ).write(data)
    return data


def command(*arguments: object) -> None:
    """Runs ``evenrank`` in this process."""
    from evenrank.cli import main

    sys.argv = ["evenrank", *map(str, arguments)]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


VISIBLE = """[...document.querySelectorAll("h1, h2, summary, p, li, th, td")].filter(element => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.top >= 0 && box.bottom <= innerHeight;
}).map(element => element.innerText.trim()).filter(text => text)"""


def take(browser: Any, report: Path, start: str, size: tuple[int, int], picture: Path) -> list[str]:
    """Takes a screenshot of a report from ``start`` on; the texts that it shows."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme="light")
    page.goto(report.as_uri())
    page.wait_for_timeout(1500)
    if start:
        if page.locator(f"details:is({start})").count():
            page.locator(f"{start} > summary").first.click()
            page.wait_for_timeout(1500)
        page.evaluate(f"document.querySelector({start!r}).scrollIntoView()")
        page.wait_for_timeout(300)
    page.screenshot(path=picture)
    texts: list[str] = page.evaluate(VISIBLE)
    page.close()
    return texts


def main() -> None:
    """Generates the reports, takes the screenshots, and keeps the texts that they show, which a test compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=Path(__file__).parent / "gallery", type=Path)
    parser.add_argument("--only", nargs="*", default=[name for name, *_ in PICTURES])
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "shown.json"
    shown = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    made: dict[Callable[[Path], Path], Path] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, report, *_ in PICTURES:
            if name in options.only and report not in made:
                made[report] = report(Path(folder))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
            for name, report, start, size in PICTURES:
                if name in options.only:
                    shown[name] = take(browser, made[report], start, size, options.out / f"{name}.png")
            browser.close()
    kept.write_text(json.dumps(shown, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
