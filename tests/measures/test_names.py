"""Names and parameters of measures."""

from __future__ import annotations

import pytest

from evenrank.files import EvenrankError
from evenrank.measures import parse_measure, parse_measures


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("NFaiRR @ 10", "NFaiRR@10"),
        ("ARaB(magnitude='tf')@10", "ARaB@10"),
        ("|ARaB(magnitude='bool')|@10", "|ARaB|(magnitude='bool')@10"),
        ("MRR@10", "RR@10"),
        ("Recall@1000", "R@1000"),
        ("MAP", "AP"),
        ("AWRF(base=2, discount='log') @ 5", "AWRF(base=2)@5"),
        ("ImpactRatio(group='f × yes',pooled=True)@10", "ImpactRatio(group='f × yes',pooled=True)@10"),
    ],
)
def test_measures_are_written_as_ir_measures_writes_them(text, written):
    measure = parse_measure(text)
    assert str(measure) == written
    assert parse_measure(written) == measure


def test_a_list_is_split_at_spaces_outside_brackets():
    found = parse_measures("nDCG@10  ARaB(magnitude='bool', poles='m, f') @ 5 nDCG@10")
    assert [str(measure) for measure in found] == ["nDCG@10", "ARaB(magnitude='bool',poles='m, f')@5"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Foo@3", "no measure 'Foo@3' (bias: RaB, ARaB,"),
        ("ARaB", "'ARaB' needs a cutoff, such as ARaB@10"),
        ("ARaB(depth=1)@3", "unsupported params found: ['depth']"),
        ("ARaB(magnitude='idf')@3", "invalid param magnitude='idf'"),
        ("ARaB@0", "the cutoff must be 1 or more"),
        ("ARaB(poles='m')@3", "poles are written 'A,B'"),
        ("__import__('os')", "is not a measure"),
        ("araB@10", "no measure 'araB@10': did you mean ARaB@10? (bias: RaB,"),
        ("NFaiR(magnitude='x')@3", "did you mean NFaiRR(magnitude='x')@3?"),
        ("ARaB@10,nDCG@10", "'ARaB@10,nDCG@10' has a comma: separate measures with spaces"),
        ("", "expected at least one measure"),
        ("Share@10", "'Share@10' needs a group, such as Share(group='m')@10"),
        ("Exposure(group='f')", "needs a cutoff, such as Exposure(group='f')@10"),
        ("AWRF(target='half')@10", "invalid param target='half'"),
        ("AWRF(discount='rbp',gamma=0)@10", "invalid param gamma=0"),
        ("ImpactRatio(group='f',discount='rbp')@3", "invalid param discount='rbp'"),
    ],
)
def test_what_is_no_measure_is_said_in_one_line(text, message):
    with pytest.raises(EvenrankError) as error:
        parse_measures(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
