"""The plane of effectiveness against bias as a drawing for notebooks."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import evenrank
from evenrank.auditing.plane import HEIGHT, WIDTH, Axis, _labels, _overlap, plane_svg
from small_audits import TEXTS, collection, judged, run

SVG = "{http://www.w3.org/2000/svg}"
QUERIES = [str(number) for number in range(8)]
EVIL = "<script>alert('x')</script>&\"\x1b[2J"


@pytest.fixture(scope="module")
def audit() -> evenrank.AuditResult:
    orders = {"one": ["m", "n", "f", "b"], EVIL: ["n", "f", "m", "b"]}
    runs = {name: run({q: docs[int(q) % 2 :] for q in QUERIES}) for name, docs in orders.items()}
    qrels = judged(dict.fromkeys(QUERIES, "n"))
    return evenrank.audit(runs, collection=collection(TEXTS), qrels=qrels, measures="nDCG@10 ARaB@10")


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


def scale(drawing: ET.Element, anchor: str, place: str) -> tuple[float, float]:
    """Pixel = slope × value + offset, from the tick labels of one axis."""
    ticks = [
        (float((text.text or "").replace("−", "-")), float(text.attrib[place]))
        for text in drawing.findall(f"{SVG}text")
        if text.attrib["text-anchor"] == anchor and "font-weight" not in text.attrib
    ]
    (value, pixel), (last, end) = ticks[0], ticks[-1]
    slope = (end - pixel) / (last - value)
    return slope, pixel - slope * value


def test_points_and_intervals_are_at_the_figures(audit: evenrank.AuditResult) -> None:
    drawing = ET.fromstring(plane_svg(audit))
    (across, x0), (up, y0) = scale(drawing, "middle", "x"), scale(drawing, "end", "y")
    assert across > 0 > up
    marks = drawing.findall(f"{SVG}g")
    shown = [audit[name] for name in ("one", EVIL, "random", "relevance-first")]
    for mark, result in zip(marks, shown, strict=True):
        utility, bias = result["nDCG@10"], result["ARaB@10"]
        assert utility.mean is not None
        assert bias.mean is not None
        point = (across * utility.mean + x0, up * bias.mean + y0)
        circle = mark.find(f"{SVG}circle")
        if circle is not None:
            drawn = (float(circle.attrib["cx"]), float(circle.attrib["cy"]))
        else:
            left, top = numbers(mark.findall(f"{SVG}path")[-1].attrib["d"])[:2]
            drawn = (left, top + 6)
        assert (circle is None) == result.reference
        assert drawn == pytest.approx(point, abs=0.15)
        assert 0 < drawn[0] < WIDTH
        assert 0 < drawn[1] < HEIGHT
        bars = [path.attrib["d"] for path in mark.findall(f"{SVG}path")]
        if utility.ci95 is not None:
            start, _, end = numbers(bars[0])
            assert (start, end) == pytest.approx([across * value + x0 for value in utility.ci95], abs=0.15)
        title = mark.findtext(f"{SVG}title") or ""
        assert f"nDCG@10 {utility.mean:.4f}" in title
        assert ("(reference ranking)" in title) == result.reference


def test_axes_and_names(audit: evenrank.AuditResult) -> None:
    drawing = ET.fromstring(plane_svg(audit))
    texts = [text.text for text in drawing.iter(f"{SVG}text")]
    assert "nDCG@10 (higher is better)" in texts
    assert "ARaB@10 (nearer 0 is better)" in texts
    assert {"one", "candidates", "perfect"} <= set(texts)
    # A line at 0, where bias is balanced.
    up, y0 = scale(drawing, "end", "y")
    (dashed,) = [path for path in drawing.findall(f"{SVG}path") if "stroke-dasharray" in path.attrib]
    assert numbers(dashed.attrib["d"])[1] == pytest.approx(y0, abs=0.15)
    assert up < 0


def test_every_text_is_escaped_and_nothing_is_loaded(audit: evenrank.AuditResult) -> None:
    page = audit._repr_html_()
    assert plane_svg(audit) in page
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"href|src=|url\(|@import|\son\w+=", plane_svg(audit))


def test_it_reads_on_any_background(audit: evenrank.AuditResult) -> None:
    drawing = ET.fromstring(plane_svg(audit))
    colours = {part.attrib[name] for part in drawing.iter() for name in ("fill", "stroke") if name in part.attrib}

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert colours > {"currentColor"}
    for colour in colours - {"currentColor", "none"}:
        assert 1.05 / (luminance(colour) + 0.05) >= 3
        assert (luminance(colour) + 0.05) / 0.05 >= 3


def test_nothing_to_set_against_bias() -> None:
    lists = run({q: ["m", "n"] for q in QUERIES})
    without = evenrank.audit(lists, collection=collection(TEXTS), measures="ARaB@10")
    assert plane_svg(without) == ""
    assert "<svg" not in without._repr_html_()
    alone = evenrank.audit(lists, qrels=judged(dict.fromkeys(QUERIES, "n")), measures="nDCG@10")
    assert plane_svg(alone) == ""


def test_round_ticks() -> None:
    axis = Axis.over([0.0, 1.0], 0.0, 100.0)
    assert axis.ticks == pytest.approx((0, 0.25, 0.5, 0.75, 1.0))
    assert (axis.place(axis.low), axis.place(axis.high)) == (0.0, 100.0)
    single = Axis.over([3.0], 0.0, 10.0)
    assert single.low < 3 < single.high
    assert len(single.ticks) > 1


def test_names_are_clear_of_lines() -> None:
    # The second name has long intervals above, below and to both sides of its point.
    places = [(240.0, 150.0), (260.0, 154.0)]
    bars = [(100.0, 149.0, 400.0, 151.0), (239.0, 30.0, 241.0, 250.0), (72.0, 160.0, 440.0, 162.0)]
    labels = _labels(["one", "candidates"], places, bars)
    boxes = []
    for label, name in zip(labels, ("one", "candidates"), strict=True):
        left = label.x if label.anchor == "start" else label.x - 6.6 * len(name)
        boxes.append((left, label.y - 11, left + 6.6 * len(name), label.y + 3))
    points = [(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    for box, others in ((boxes[0], [boxes[1], *bars, *points]), (boxes[1], [boxes[0], *bars, *points])):
        assert all(_overlap(box, other) == 0 for other in others)
    (alone,) = _labels(["one"], [(240.0, 150.0)], [(100.0, 149.0, 400.0, 151.0)])
    assert (alone.x, alone.anchor) == (249.0, "start")
    assert alone.y < 150
