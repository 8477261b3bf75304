"""Parts of a written page, and a page that is open in a browser."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from pathlib import Path
from typing import Any

SCREENS = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
TALLEST = 6000
"""The most pixels that a page is high before anything is opened."""


def section(page: str, name: str) -> str:
    """What stands in a part of a page that opens; "" without it."""
    found = re.search(rf'<details class="part" id="{name}">(.*?)</details>', page, re.DOTALL)
    return found[1] if found else ""


def unpacked(page: str, name: str) -> str:
    """What a page has packed."""
    found = re.search(rf'<script type="text/plain" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert found, name
    return gzip.decompress(base64.b64decode(found[1])).decode()


def data(page: str) -> Any:
    """What the script of a page reads."""
    return json.loads(unpacked(page, "data"))


def cells(table: str) -> list[list[str]]:
    """The text of each cell of each row."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.DOTALL)
    parts = [re.findall(r"<(t[hd])\b[^>]*>(.*?)</\1>", row, re.DOTALL) for row in rows]
    return [[" ".join(html.unescape(re.sub("<[^>]*>", "", part)).split()) for _, part in row] for row in parts]


class Opened:
    """A page that is open, with what it wrote to the console and asked for."""

    def __init__(self, browser: Any, path: Path, screen: str = "desktop", **options: Any) -> None:
        self.page = browser.new_page(viewport=SCREENS[screen], **options)
        self.address = path.as_uri()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(self.address)
        if options.get("java_script_enabled", True) and self.page.locator("#list").count():
            self.page.wait_for_selector("#list button", state="attached")

    def open(self, name: str = "") -> None:
        """Opens a part, or all, and waits for its charts."""
        part = f"#{name}" if name else ".part"
        self.page.evaluate(f"document.querySelectorAll('{part}').forEach(one => {{ one.open = true; }})")
        there = "c => c.querySelector('svg.marks, .chart, .hint')"
        self.page.wait_for_function(f"() => [...document.querySelectorAll('{part} .chart')].every({there})")

    def bottom(self, selector: str) -> float:
        """Where an element ends, in pixels from the top of the page."""
        box = self.page.locator(selector).first.bounding_box()
        assert box is not None, selector
        return float(box["y"] + box["height"])

    def size(self) -> tuple[int, int]:
        """How much wider the page is than its window, and how high it is."""
        found = self.page.evaluate(
            "(one => [one.scrollWidth - one.clientWidth, one.scrollHeight])(document.documentElement)"
        )
        return int(found[0]), int(found[1])

    def texts(self, selector: str) -> list[str]:
        return [" ".join(text.split()) for text in self.page.locator(selector).all_text_contents()]

    def close(self) -> None:
        """Nothing was said and nothing asked for; ends the page."""
        assert self.said == []
        assert self.asked == [self.address]
        self.page.close()
