"""Budgets: what a file may say, and what each mistake gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenrank.decide.budget import as_budget
from evenrank.files import EvenrankError, InputError

GOOD = """alpha = 0.1
[[rule]]
measure = "nDCG@10"
against = "baseline"
at_least = "-2%"
[[rule]]
measure = "ARaB(magnitude='tf')@10"
at_most = 0.05
quantity = "vs_ideal_order"
greatest = 6
name = "lean"
"""


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "budget.toml"
    path.write_text(GOOD, encoding="utf-8")
    budget = as_budget(path)
    first, second = budget.rules
    assert (budget.alpha, first.bound, first.relative, first.floor, first.against) == (
        0.1,
        -0.02,
        True,
        True,
        "baseline",
    )
    assert (second.measure, second.bound, second.floor, second.quantity) == ("ARaB@10", 0.05, False, "vs_ideal_order")
    assert (first.subject, first.limit) == ("nDCG@10", "at least -2%")
    assert (second.subject, second.limit, second.name) == ("|ARaB@10 vs ideal order|", "at most 0.05", "lean")
    assert [str(measure) for measure in budget.measures] == ["nDCG@10", "ARaB@10"]
    assert (first.greatest, second.greatest) == (None, 6.0)
    # A rule's values are a rule again.
    assert as_budget({"rule": [rule.to_dict() for rule in budget.rules]}).rules == budget.rules


RULE = 'measure = "nDCG@10"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected one [[rule]] or more"),
        ("[rule]\n", "expected one [[rule]] or more"),
        ("rule = []\n", "expected one [[rule]] or more"),
        ("[[rule]\n", "no valid TOML: "),
        (f"level = 1\n[[rule]]\n{RULE}at_least = 1", "unknown key 'level' (allowed: alpha, [[rule]])"),
        (f"alpha = 0.5\n[[rule]]\n{RULE}at_least = 1", "alpha: expected a number above 0 and below 0.5, found '0.5'"),
        (f"alpha = nan\n[[rule]]\n{RULE}at_least = 1", "alpha: expected a number above 0 and below 0.5, found 'nan'"),
        ("[[rule]]\nat_least = 1", "rule 1: expected a measure"),
        ("[[rule]]\nmeasure = 3\nat_least = 1", "rule 1: measure: expected a text, found '3'"),
        ("[[rule]]\nmeasure = 'ndgc@10'\nat_least = 1", "rule 1: no measure 'ndgc@10': did you mean "),
        ("[[rule]]\nmeasure = 'ARaB'\nat_most = 1", "rule 1: 'ARaB' needs a cutoff, such as ARaB@10"),
        (f"[[rule]]\n{RULE}at_leat = 1", "rule 1: unknown key 'at_leat' (allowed: measure, against, "),
        (f"[[rule]]\n{RULE}", "rule 1: expected one of at_least and at_most, found neither"),
        (f"[[rule]]\n{RULE}at_least = 1\nat_most = 1", "rule 1: expected one of at_least and at_most, found both"),
        (
            f"[[rule]]\n{RULE}at_least = true",
            "rule 1: at_least: expected a number or a share such as \"-2%\", found 'True'",
        ),
        (f"[[rule]]\n{RULE}at_least = nan", "rule 1: at_least: expected a number or a share such as"),
        (f"[[rule]]\n{RULE}at_least = inf", "rule 1: at_least: expected a number or a share such as"),
        (f"[[rule]]\n{RULE}at_least = {'9' * 400}", "rule 1: at_least: expected a number or a share such as"),
        (f"[[rule]]\nx{'.x' * 25_000} = 1", "no valid TOML: the key in line 2 has more than 100 parts"),
        (f"[[rule]]\n{RULE}at_least = '2 percent'", "rule 1: at_least: expected a number or a share such as"),
        (f"[[rule]]\n{RULE}at_least = '-2%'", "rule 1: at_least: a share needs `against`: expected a number"),
        (f"[[rule]]\n{RULE}against = 'b'\nat_least = '-100%'", "rule 1: at_least: expected a share above -100%"),
        (f"[[rule]]\n{RULE}against = ' '\nat_least = 1", "rule 1: against: expected a text, found ' '"),
        (
            f"[[rule]]\n{RULE}at_least = 1\nquantity = 'more'",
            "rule 1: quantity: expected one of figure, vs_random_order, vs_",
        ),
        (
            f"[[rule]]\n{RULE}at_least = 1\nquantity = 'vs_random_order'",
            "rule 1: nDCG@10 has no 'vs_random_order': only bias measures",
        ),
        (f"[[rule]]\n{RULE}at_least = 1\n[[rule]]\n{RULE}at_least = 1", "rule 2: repeats rule 1"),
        (
            "[[rule]]\nmeasure = 'ARaB@10'\nagainst = 'b'\nat_most = '2%'",
            "rule 1: at_most: |ARaB@10| can be near 0, where a share means nothing: expected a number",
        ),
        (
            "[[rule]]\nmeasure = 'NFaiRR@10'\nquantity = 'vs_random_order'\nagainst = 'b'\nat_most = '2%'",
            "rule 1: at_most: NFaiRR@10 vs random order can be near 0",
        ),
        ("[[rule]]\nmeasure = 'DeltaAPRF'\nat_least = 0.1", "rule 1: at_least: DeltaAPRF is better nearer 0"),
        (f"[[rule]]\n{RULE}at_least = 0\nsigned = true", "rule 1: signed: nDCG@10 has no sign"),
        (f"[[rule]]\n{RULE}at_least = 0\nsigned = 1", "rule 1: signed: expected true or false, found '1'"),
        (
            "[[rule]]\nmeasure = 'ARaB@10'\nsigned = true\nagainst = 'b'\nat_least = '-2%'",
            "rule 1: at_least: ARaB@10 can be near 0, where a share means nothing",
        ),
        (f"[[rule]]\n{RULE}at_most = 0.5", "rule 1: at_most: nDCG@10 is better the higher it is: expected at_least"),
        (
            f"[[rule]]\n{RULE}against = 'b'\nat_least = -3",
            'rule 1: at_least: differences of nDCG@10 are from -1 to 1, found -3 (did you mean "-3%"?)',
        ),
        (
            f"[[rule]]\n{RULE}at_least = -3",
            'rule 1: at_least: nDCG@10 is from 0 to 1, found -3 (did you mean against = "baseline" and "-3%"?)',
        ),
        (f"[[rule]]\n{RULE}at_least = 0\ngreatest = 1", "rule 1: greatest: no value is beyond 1, as is known of"),
        (
            "[[rule]]\nmeasure = 'RaB@5'\nat_most = 1\ngreatest = 0",
            "rule 1: greatest: expected a number above 0, found",
        ),
        (f"[[rule]]\n{RULE}at_least = 300", "rule 1: at_least: nDCG@10 is from 0 to 1, found 300"),
        ("[[rule]]\nmeasure = 'DeltaAPRF'\nat_most = 2", "rule 1: at_most: |DeltaAPRF| is from 0 to 1, found 2"),
        ("[[rule]]\nmeasure = 'NFaiRR@5'\nat_least = -1", "rule 1: at_least: NFaiRR@5 is 0 or more, found -1"),
        (
            f'[[rule]]\n{RULE}at_least = 0\nname = "a\\n::add-mask::b"',
            "rule 1: name: expected a text without line ends and control characters, found",
        ),
        (f'[[rule]]\n{RULE}at_least = 0\nagainst = "a\\u001b"', "rule 1: against: expected a text without line ends"),
        ("[[rule]]\nmeasure = 'RaB@5'\nat_most = -0.1", "rule 1: at_most: no absolute value is below 0, found -0.1"),
    ],
)
def test_a_mistake_is_one_line_with_the_file_and_the_rule(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "budget.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        as_budget(path)
    assert str(caught.value).startswith(f"{path}: {said}")
    assert "\n" not in str(caught.value)


def test_bounds_that_a_measure_can_have() -> None:
    def limit(**values: object) -> str:
        [found] = as_budget({"rule": [values]}).rules
        return found.limit

    assert limit(measure="ARaB@10", against="b", at_most=0) == "at most 0"
    assert limit(measure="ARaB@10", against="b", at_most=0.1) == "at most +0.1"
    assert limit(measure="ARaB@10", at_most=-0.0) == "at most 0"
    assert limit(measure="nDCG@10", against="b", at_least="-0%") == "at least 0%"
    assert limit(measure="nDCG@10", against="b", at_least=-1) == "at least -1"
    assert limit(measure="DeltaAPRF", against="b", at_most=-1) == "at most -1"
    # What no range is known of, and what an older audit does not tell.
    assert limit(measure="NumRet", at_least=30) == "at least 30"
    assert limit(measure="NFaiRR@5", at_most=3) == "at most 3"
    assert limit(measure="NFaiRR@5", quantity="vs_random_order", at_least=-3) == "at least -3"


def test_other_sources_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        as_budget(tmp_path / "none.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match="no valid TOML"):
        as_budget(tmp_path / "b.toml")
    with pytest.raises(EvenrankError, match=r"^`budget`: rule 1: expected a measure$"):
        as_budget({"rule": [{}]})
