"""The chart libraries, bundled once; and the charts that they draw."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import vl_convert

from evenrank.results.page import chart_libraries


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What is bundled, call by call."""
    calls: list[str] = []

    def bundle() -> str:
        calls.append("window.vega = 'é';\r\n")
        return calls[-1]

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return calls


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"// 0\nwindow.vega = 1"])
def test_a_damaged_file_is_made_again(bundled: list[str], tmp_path: Path, damage: bytes) -> None:
    chart_libraries()
    [kept] = (tmp_path / "cache" / "evenrank").iterdir()
    assert vl_convert.get_vega_version() in kept.name
    whole = kept.read_bytes()
    for data in (damage, whole[:-1], whole + b" "):
        kept.write_bytes(data)
        assert chart_libraries() == bundled[0]
        assert kept.read_bytes() == whole
    chart_libraries()
    assert len(bundled) == 4


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize("home", ["a file", "a file where the folder should be", "no home", "a device"])
def test_without_a_cache(bundled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    if home == "a device":
        monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    elif home == "no home":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", no_home)
    else:
        file = tmp_path / "cache" / ("evenrank" if "folder" in home else "")
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    assert [chart_libraries(), chart_libraries()] == bundled
    assert len(bundled) == 2


def test_a_relative_cache_is_ignored(bundled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    chart_libraries()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
