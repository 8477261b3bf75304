"""Budgets: what a file may say, and what each mistake gets."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from evenrank.decide.budget import as_budget
from evenrank.files import EvenrankError, InputError

RULE = 'measure = "nDCG@10"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected one [[rule]] or more"),
        ("[rule]", "expected one [[rule]] or more"),
        ("[[rule]", "no valid TOML: "),
        (f"level = 1\n[[rule]]\n{RULE}at_least = 1", "unknown key 'level' (allowed: alpha, [[rule]])"),
        (f"alpha = 0.5\n[[rule]]\n{RULE}at_least = 1", "alpha: expected a number above 0 and below 0.5, found '0.5'"),
        (f"alpha = nan\n[[rule]]\n{RULE}at_least = 1", "alpha: expected a number above 0 and below 0.5, found 'nan'"),
        (f"[[rule]]\n{RULE}at_least = 1\n[[rule]]\n{RULE}at_least = 1", "rule 2: repeats rule 1"),
    ],
)
def test_a_mistake_is_one_line_with_the_file(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "budget.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        as_budget(path)
    assert str(caught.value).startswith(f"{path}: {said}")
    assert "\n" not in str(caught.value)


LEAN = {"measure": "ARaB@10", "against": "b"}
NUMBER = 'at_least: expected a number or a share such as "-2%", found '
LINE = "expected a text without line ends and control characters, found"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"measure": None}, "expected a measure"),
        ({"measure": 3}, "measure: expected a text, found '3'"),
        ({"measure": "ndgc@10"}, "no measure 'ndgc@10': did you mean "),
        ({"measure": "ARaB"}, "'ARaB' needs a cutoff, such as ARaB@10"),
        ({"at_leat": 1}, "unknown key 'at_leat' (allowed: measure, against, "),
        ({"at_least": None}, "expected one of at_least and at_most, found neither"),
        ({"at_most": 1}, "expected one of at_least and at_most, found both"),
        ({"at_least": True}, f"{NUMBER}'True'"),
        ({"at_least": math.nan}, f"{NUMBER}'nan'"),
        ({"at_least": int("9" * 400)}, f"{NUMBER}'999"),
        ({"at_least": "2 percent"}, f"{NUMBER}'2 percent'"),
        (
            {"against": "b", "at_least": "95%"},
            "at_least: a share is a change of the other run's mean, found '95%' (did",
        ),
        ({"at_least": "-2%"}, "at_least: a share needs `against`: expected a number"),
        ({"against": "b", "at_least": "-100%"}, "at_least: expected a share above -100%"),
        ({"against": " "}, "against: expected a text, found ' '"),
        ({"against": "a\u001b"}, f"against: {LINE}"),
        ({"name": "a\n::add-mask::b"}, f"name: {LINE}"),
        ({"quantity": "more"}, "quantity: expected one of figure, vs_random_order, vs_"),
        ({"quantity": "vs_random_order"}, "nDCG@10 has no 'vs_random_order': only bias measures"),
        ({"signed": True}, "signed: nDCG@10 has no sign"),
        ({"signed": 1}, "signed: expected true or false, found '1'"),
        ({"greatest": 1}, "greatest: no value is beyond 1, as is known of"),
        ({"at_least": None, "at_most": 0.5}, "at_most: nDCG@10 is better the higher it is: expected at_least"),
        ({"at_least": 300}, "at_least: nDCG@10 is from 0 to 1, found 300"),
        ({"at_least": -3}, 'at_least: nDCG@10 is from 0 to 1, found -3 (did you mean against = "baseline" and "-3%"?)'),
        ({"against": "b", "at_least": -3}, "at_least: differences of nDCG@10 are from -1 to 1, found -3 (did you mean"),
        (LEAN | {"at_least": None, "at_most": "2%"}, "at_most: |ARaB@10| can be near 0, where a share means nothing"),
        (LEAN | {"signed": True, "at_least": "-2%"}, "at_least: ARaB@10 can be near 0, where a share means nothing"),
        ({"measure": "NFaiRR@5", "at_least": -1}, "at_least: NFaiRR@5 is 0 or more, found -1"),
        ({"measure": "DeltaAPRF", "at_least": 0.1}, "at_least: DeltaAPRF is better nearer 0"),
        ({"measure": "DeltaAPRF", "at_least": None, "at_most": 2}, "at_most: |DeltaAPRF| is from 0 to 1, found 2"),
        ({"measure": "RaB@5", "at_least": None, "at_most": -0.1}, "at_most: no absolute value is below 0, found -0.1"),
        (LEAN | {"at_least": None, "at_most": 1, "greatest": 0}, "greatest: expected a number above 0, found"),
    ],
)
def test_a_mistake_is_named_with_its_rule(values: dict[str, object], said: str) -> None:
    given = {"measure": "nDCG@10", "at_least": 0, **values}
    with pytest.raises(EvenrankError) as caught:
        as_budget({"rule": [{key: value for key, value in given.items() if value is not None}]})
    assert str(caught.value).startswith(f"`budget`: rule 1: {said}")
    assert "\n" not in str(caught.value)
