"""The lexicons that are built in: their form, their inflected forms in sentences, and how often they are right."""

from __future__ import annotations

import json
import runpy
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenrank.groups import Tokens, builtin_lexicons, gendered_spans, load_lexicon
from slow_groups import scored, slow_tokens

ROOT = Path(__file__).parents[2]
made = runpy.run_path(str(ROOT / "docs" / "lexicons.py"))
NAMES = builtin_lexicons()


@pytest.mark.parametrize("name", NAMES)
def test_form(name: str) -> None:
    lexicon = load_lexicon(name)
    assert lexicon.name == name
    assert lexicon.language == name[-2:]
    assert lexicon.about.startswith(("Gendered words", "English words"))
    assert lexicon.misses.endswith(".")
    assert lexicon.shares == pytest.approx([1 / len(lexicon.groups)] * len(lexicon.groups))
    times = Counter(tuple(slow_tokens(word, "word")) for word, _ in lexicon.words)
    assert [key for key, count in times.items() if count > 1] == []


@pytest.mark.parametrize("tokens", ["word", "whitespace"])
@pytest.mark.parametrize("name", NAMES)
def test_every_word_is_matched(name: str, tokens: Tokens) -> None:
    lexicon = load_lexicon(name)
    words = [pair for pair in lexicon.words if tokens == "word" or " " not in pair[0]]
    for written in (str.lower, str.upper, str.title):
        # Titles of apostrophes are none: Qur'An.
        some = [pair for pair in words if written(pair[0]).lower() == pair[0].lower()]
        assert len(some) > 0.95 * len(words)
        table = scored([written(word) for word, _ in some], lexicon, tokens)
        for group in lexicon.groups:
            assert table[f"count_{group}"].to_list() == [int(of == group) for _, of in some]


def test_groups_and_poles() -> None:
    assert load_lexicon().name == "gender-en"
    for name in ("gender-de", "gender-en", "gender-es", "gender-fr"):
        assert (load_lexicon(name).groups, load_lexicon(name).poles) == (("f", "m"), ("m", "f"))
    assert (load_lexicon("age-en").poles, load_lexicon("age-en").poles_assumed) == (("young", "old"), False)
    religion = load_lexicon("religion-en")
    assert religion.groups == ("christian", "muslim", "jewish", "hindu", "buddhist", "sikh")
    assert (religion.poles, religion.with_poles("sikh,rest").language) == (None, "en")


SENTENCES = {
    "gender-de": [
        ("Die Lehrerin gab ihm das Buch ihrer Mutter.", "Lehrerin/f ihm/m Mutter/f"),
        ("Den Müttern und Vätern der Schülerinnen dankte er.", "Müttern/f Vätern/m Schülerinnen/f er/m"),
        ("Des Königs Söhne und der Fürstin Töchter.", "Königs/m Söhne/m Fürstin/f Töchter/f"),
        ("Das Haus des Mannes, den Männern bekannt", "Mannes/m Männern/m"),
        # The generic masculine, and words of both or of neither.
        ("Die Lehrer, Ärzte und Studenten sagten ihr und Ihnen, sie hätten sein Buch.", ""),
        ("Später war sie krank; sie wurde Ärztin, und SIE STARB 1903.", "sie wurde/f Ärztin/f SIE STARB/f"),
        ("Der junge Staat und die Jungen", ""),
        ("Eine Kauffrau, ein Kaufmann, die Kaufleute", "Kauffrau/f Kaufmann/m"),
    ],
    "gender-en": [
        ("The woman's friend, she said, is her mother-in-law.", "woman/f she/f her/f mother-in-law/f"),
        ("He is his own man; don't ask him.", "He/m his/m man/m him/m"),
    ],
    "gender-es": [
        ("La profesora habló con él y con sus hijas.", "profesora/f él/m hijas/f"),
        ("Las actrices y los hombres; ella no, el rey sí.", "actrices/f hombres/m ella/f rey/m"),
        ("Los profesores, sus hijos, los niños y ellos", ""),
        ("La reina, el príncipe y la primera ministra", "reina/f príncipe/m primera ministra/f"),
        ("Su madre y su padre, las señoras y don Juan", "madre/f padre/m señoras/f don/m"),
        ("la música política de la clase obrera", ""),
    ],
    "gender-fr": [
        ("L'actrice et l'homme d'affaires parlaient d'hommes.", "L'actrice/f l'homme d'affaires/m d'hommes/m"),
        ("Sa grand-mère, ses sœurs et son beau-père", "grand-mère/f sœurs/f beau-père/m"),
        ("Elle écrit, il mourut; il faut qu'il pleuve.", "Elle écrit/f il mourut/m"),
        ("Mme Curie, physicienne, et M. Curie, le mari", "Mme/f physicienne/f mari/m"),
        ("Les professeurs, leurs étudiants et lui", ""),
        ("Les étudiantes de l’école", "étudiantes/f"),
    ],
    "age-en": [
        ("An elderly man and two teenagers; old houses, five years old.", "elderly/old teenagers/young"),
        ("Older people and children met in a nursing home.", "Older people/old children/young nursing home/old"),
        ("the old man's granddaughter, a toddler", "old man/old toddler/young"),
    ],
    "religion-en": [
        ("Rabbis, imams and bishops met.", "Rabbis/jewish imams/muslim bishops/christian"),
        ("in the Golden Temple of Guru Nanak", "Golden Temple/sikh Guru Nanak/sikh"),
        ("A Hindu and a Zen Buddhist prayed to God.", "Hindu/hindu Zen/buddhist Buddhist/buddhist"),
        ("the Qur’an, the Shi'ites", "Qur’an/muslim Shi'ites/muslim"),
        ("the church’s Bible", "church/christian Bible/christian"),
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
    # A new lexicon is on the page without being measured.
    new = {**KEPT["lexicons"], "age-fr": {**KEPT["lexicons"]["age-en"], "language": "fr"}}
    page = made["page"]({**KEPT, "lexicons": new})
    assert "No labelled text was at hand for `age-en`, `gender-fr`, `religion-en` and `age-fr`." in page


def test_tried_words_are_not_in_the_lexicons() -> None:
    for name, trials in tomllib.loads(made["TRIED"].read_text(encoding="utf-8")).items():
        words = {word.casefold() for word, _ in load_lexicon(name).words}
        for trial in trials:
            assert not words & {word.casefold() for group in "mf" for word in trial.get(group, ())}
            assert set(trial.get("without", ())) <= words


def test_agreement_with_the_labels(shared_data: Path) -> None:
    found = json.loads(json.dumps(made["_against_labels"](shared_data / "grepbiasir")))
    assert found == KEPT["grepbiasir"]
    assert found["confusion"]["documents"][:3] == [[203, 9, 14, 6], [8, 201, 15, 8], [8, 5, 4, 216]]
    assert found["groups"]["f"]["precision"]["value"] == pytest.approx(203 / 219)
    assert found["groups"]["m"]["recall"]["value"] == pytest.approx(201 / 232)


@pytest.mark.parametrize(("name", "agree"), [("gender-de", (100, 96)), ("gender-es", (97, 100))])
def test_agreement_on_parallel_passages(shared_data: Path, name: str, agree: tuple[int, int]) -> None:
    for half, count in zip(made["HALVES"], agree, strict=True):
        found = json.loads(json.dumps(made["parallel"](shared_data / "xquad", name, half)))
        assert found == KEPT["xquad"][name][half]
        assert (found["agree"], found["passages"], found["articles"]) == (count, 120, 24)
        assert found["ci95"][0] < count / 120 < found["ci95"][1]


def test_scoring_of_the_halves() -> None:
    passages = [(title, f"{title}/{number}", "") for title in "abcde" for number in (1, 2)]
    first, second = (made["_of_half"](passages, half) for half in made["HALVES"])
    assert [one[1] for one in first] == ["a/1", "a/2", "b/1", "b/2"]
    assert first + second == passages
