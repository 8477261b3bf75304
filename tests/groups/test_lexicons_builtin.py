"""The lexicons that are built in: their form, their inflected forms in sentences, and how often they are right."""

from __future__ import annotations

import json
import runpy
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenrank.groups import gendered_spans, load_lexicon
from slow_groups import scored

ROOT = Path(__file__).parents[2]
made = runpy.run_path(str(ROOT / "docs" / "lexicons.py"))


SENTENCES = {
    "gender-de": [
        ("Des Königs Söhne und der Fürstin Töchter.", "Königs/m Söhne/m Fürstin/f Töchter/f"),
        ("Das Haus des Mannes, den Männern bekannt", "Mannes/m Männern/m"),
        # The generic masculine, and words of both or of neither.
        ("Die Lehrer, Ärzte und Studenten sagten ihr und Ihnen, sie hätten sein Buch.", ""),
        ("Später war sie krank; sie wurde Ärztin, und SIE STARB 1903.", "sie wurde/f Ärztin/f SIE STARB/f"),
        ("Eine Kauffrau, ein Kaufmann, die Kaufleute", "Kauffrau/f Kaufmann/m"),
    ],
    "gender-en": [
        ("The woman's friend, she said, is her mother-in-law.", "woman/f she/f her/f mother-in-law/f"),
    ],
    "gender-es": [
        ("Las actrices y los hombres; ella no, el rey sí.", "actrices/f hombres/m ella/f rey/m"),
        ("La reina, el príncipe y la primera ministra", "reina/f príncipe/m primera ministra/f"),
        ("la música política de la clase obrera", ""),
    ],
    "gender-fr": [
        ("L'actrice et l'homme d'affaires parlaient d'hommes.", "L'actrice/f l'homme d'affaires/m d'hommes/m"),
        ("Elle écrit, il mourut; il faut qu'il pleuve.", "Elle écrit/f il mourut/m"),
        ("Les étudiantes de l’école", "étudiantes/f"),
    ],
    "age-en": [
        ("An elderly man and two teenagers; old houses, five years old.", "elderly/old teenagers/young"),
        ("Older people and children met in a nursing home.", "Older people/old children/young nursing home/old"),
    ],
    "religion-en": [
        ("in the Golden Temple of Guru Nanak", "Golden Temple/sikh Guru Nanak/sikh"),
        ("A Hindu and a Zen Buddhist prayed to God.", "Hindu/hindu Zen/buddhist Buddhist/buddhist"),
        ("the Qur’an, the Shi'ites", "Qur’an/muslim Shi'ites/muslim"),
    ],
}


@pytest.mark.parametrize(("name", "text", "expected"), [(n, *one) for n, some in SENTENCES.items() for one in some])
def test_sentences(name: str, text: str, expected: str) -> None:
    lexicon = load_lexicon(name)
    found = [f"{text[start:end]}/{group}" for start, end, group in gendered_spans(text, lexicon)]
    assert " ".join(found) == expected
    counts = Counter(entry.rpartition("/")[2] for entry in found)
    table = scored([text], lexicon)
    assert {group: table[f"count_{group}"][0] for group in lexicon.groups if table[f"count_{group}"][0]} == counts


KEPT: Any = json.loads(made["KEPT"].read_text(encoding="utf-8"))


def test_the_page_is_that_of_the_kept_figures() -> None:
    assert made["PAGE"].read_text(encoding="utf-8") == made["page"](KEPT), "python docs/lexicons.py makes it anew"
    found = made["described"]()
    assert json.loads(json.dumps(found)) == KEPT["lexicons"], "python docs/lexicons.py counts anew"


def test_agreement_with_the_labels(shared_data: Path) -> None:
    found = json.loads(json.dumps(made["_against_labels"](shared_data / "grepbiasir")))
    assert found == KEPT["grepbiasir"]


def test_tried_words_are_not_in_the_lexicons() -> None:
    for name, trials in tomllib.loads(made["TRIED"].read_text(encoding="utf-8")).items():
        words = {word.casefold() for word, _ in load_lexicon(name).words}
        for trial in trials:
            assert not words & {word.casefold() for group in "mf" for word in trial.get(group, ())}
            assert set(trial.get("without", ())) <= words
