"""The glossary, its page, and ``evenrank explain``."""

from __future__ import annotations

import re
import runpy
import string
from pathlib import Path
from typing import Any

import pytest

from evenrank.files.errors import UnknownNameError
from evenrank.results.finding import phrases
from evenrank.results.terms import explain, explanations, glossary

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_the_glossary() -> None:
    assert runpy.run_path(str(DOCS / "terms.py"))["page"]() == (DOCS / "terms.md").read_text(encoding="utf-8")


def test_terms_and_keys_are_explained() -> None:
    terms = {term: text for part in glossary().values() for term, text in part.items()}
    assert len(terms) >= 60
    for term, text in terms.items():
        assert explain(f" {term.upper()} ").split("\n")[0] == f"{term}: {text}"
        assert text.endswith((".", "]."))
        assert len(text) <= 200
    for command in ("audit", "gate", "rebalance", "scan", "probe"):
        for key in phrases(command).templates:
            assert any(line.startswith(f"{key} ({command}): ") for line in explain(key).split("\n")), key
    # A word of a longer term, not a part of a word; marks by themselves.
    for word, term in {"unjudged": "unjudged document", "sentences": "share of sentences", "▲": "▲▼", "▽": "▽"}.items():
        assert explain(word).startswith(f"{term}: ")
    for part in ("judged", "line", "-", "*", "%"):
        with pytest.raises(UnknownNameError):
            explain(part)
    # What a screen names.
    measures = ("NFaiRR@20", "|ARaB@10|", "nDCG@5", "Share(group='f')@10")
    for name in (*measures, "Holm p", "p", "ideal", "random", "relevance-first", "whose lean", "b/e/w", "known"):
        assert ": " in explain(name)


def test_the_command(evenrank: Any) -> None:
    done = evenrank("explain", "smallest detectable difference")
    assert (done.status, done.out.split(": ")[0]) == (0, "smallest detectable difference")
    leans = evenrank("explain", "leans_as_candidates").out
    assert leans.startswith("leans_as_candidates (audit): for example, BM25 leans male (+.123)")
    assert "lean: A value that is not 0" in " ".join(leans.split())
    assert explain("impact ratio") == explain("ImpactRatio@10")
    wrong = evenrank("explain", "no_leen")
    assert wrong.status == 2
    assert "near it: no_lean" in wrong.err
    with pytest.raises(UnknownNameError, match="lists the terms"):
        explain("xyzxyz")


def test_findings_have_an_example_in_the_words_of_their_template() -> None:
    for finding in explanations():
        assert finding.means.endswith(".")
        assert finding.next.endswith(".")
        template = phrases(finding.command).templates[finding.keys[0]]
        parts = [re.escape(text) + ".*" * (name is not None) for text, name, _, _ in string.Formatter().parse(template)]
        assert re.fullmatch("".join(parts), finding.example, re.DOTALL), finding.keys[0]
        assert all(key in phrases(finding.command).templates for key in finding.keys)
    named = [(finding.command, key) for finding in explanations() for key in finding.keys]
    assert len(named) == len(set(named))
    assert len(explanations()) > 60


def test_a_finding_is_explained_with_what_to_do(snapshot: Any) -> None:
    # Of people and of sentences, too.
    assert "This is not shown: the data are compatible" in explain("missed")
    assert explain("leans_as_candidates") == snapshot
