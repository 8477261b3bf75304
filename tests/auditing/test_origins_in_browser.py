"""The charts of where the bias comes from, in a browser: marks stand at their figures, and names are only names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank.auditing import AuditResult
from page_parts import Opened
from small_origins import excess, with_differences
from small_reports import small_audit

EVIL = ("<img src=x onerror='window.evil=1'>", "datum.evil ? toString.constructor('window.evil=1')() : 1")

TICKS = """chart => {
  const axes = [...chart.querySelectorAll('.role-axis')].filter(axis => axis.querySelector('.role-axis-tick line'));
  const labels = axes.flatMap(axis => [...axis.querySelectorAll('.role-axis-label text')].map(one => one.textContent));
  const ticks = axes.flatMap(axis => [...axis.querySelectorAll('.role-axis-tick line')].map(one => {
    const rect = one.getBoundingClientRect();
    return (rect.left + rect.right) / 2;
  }));
  return [labels, ticks];
}"""
BOXES = "all => all.map(one => { const r = one.getBoundingClientRect(); return [r.left, r.right, r.top, r.bottom]; })"


def audited(names: tuple[str, str]) -> AuditResult:
    added, beyond = excess([0.1, 0.2, 0.6], 0.05, (0.1, 0.6), 0.03), excess([0.0, 0.1, 0.5], 0.15, (-0.1, 0.5), 0.2)
    alone = excess([-0.25] * 3, 0.5, None, None)
    return with_differences(small_audit(names), {names[0]: (added, beyond), names[1]: (alone, None)})


def scale(opened: Opened, chart: str) -> tuple[float, float]:
    """Pixel = slope × value + offset, from the ticks of the axis across."""
    labels, ticks = opened.page.locator(f"#{chart} svg.marks").evaluate(TICKS)
    values = [float(label.replace("−", "-")) for label in labels[-len(ticks) :]]
    slope, offset = np.polyfit(values, ticks, 1)
    assert np.polyval((slope, offset), values) == pytest.approx(ticks, abs=1)
    return float(slope), float(offset)


def shown(browser: Any, path: Path, audit: AuditResult, screen: str) -> Opened:
    """The audit's page with what it says of origins open."""
    audit.report(path)
    opened = Opened(browser, path, screen)
    opened.open("origins")
    return opened


def test_marks_stand_at_their_figures_and_names_are_only_names(browser: Any, tmp_path: Path) -> None:
    opened = shown(browser, tmp_path / "p.html", audited(EVIL), "phone")
    slope, offset = scale(opened, "origins-chart")
    points = opened.page.locator("#origins-chart .mark-symbol path").evaluate_all(BOXES)
    # A ideal ranking adds 0.1 in each query; of the second run only what its order adds is known.
    wanted = [0.3, 0.1, 0.2, -0.25]
    assert [(left + right) / 2 for left, right, *_ in points] == pytest.approx(
        [slope * value + offset for value in wanted], abs=2
    )
    lines = opened.page.locator("#origins-chart .interval_marks line").evaluate_all(BOXES)
    assert [line[:2] for line in lines] == [
        pytest.approx([slope * low + offset, slope * high + offset], abs=2) for low, high in ((0.1, 0.6), (-0.1, 0.5))
    ]
    legend = opened.page.locator("#origins-legend > span").all_text_contents()
    assert legend == ["order adds", "ideal ranking adds", "beyond relevance"]
    said = opened.page.locator("#origins-chart").get_attribute("aria-label")
    assert f"{EVIL[0]}: order adds +0.3000 (+0.1000 to +0.6000); {EVIL[0]}: ideal ranking adds +0.1000;" in said
    assert EVIL[1] in said
    assert opened.size()[0] == 0
    assert opened.page.evaluate("typeof window.evil") == "undefined"
    assert opened.page.locator("img").count() == 0
    opened.close()
