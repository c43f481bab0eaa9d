"""Taints and tolerations, rule by rule."""

import pytest

from kubenexus.api.core import Taint, Toleration
from kubenexus.api.tolerations import HARD_EFFECTS, SOFT_EFFECTS, tolerated, tolerates, untolerated

GPU = Taint(key="gpu", value="a100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration(key="gpu", operator="Equal", value="a100", effect="NoSchedule"), True, id="all equal"),
        pytest.param(
            Toleration(key="gpu", value="a100"), True, id="no operator means Equal, no effect means every effect"
        ),
        pytest.param(Toleration(key="gpu", value="h100"), False, id="another value"),
        pytest.param(Toleration(key="tpu", value="a100"), False, id="another key"),
        pytest.param(Toleration(key="gpu", operator="Exists"), True, id="Exists takes every value"),
        pytest.param(Toleration(key="gpu", operator="Exists", effect="NoExecute"), False, id="but not every effect"),
        pytest.param(Toleration(operator="Exists"), True, id="no key takes every key"),
        pytest.param(Toleration(value="a100"), True, id="with Equal, too"),
        pytest.param(Toleration(key="gpu", operator="exists"), False, id="an unknown operator tolerates nothing"),
    ],
)
def test_one_toleration(toleration: Toleration, expected: bool) -> None:
    assert tolerates(toleration, GPU) is expected


@pytest.mark.parametrize(
    ("operator", "ours", "theirs", "expected"),
    [
        ("Gt", "5", "7", True),
        ("Gt", "7", "7", False),
        ("Lt", "7", "5", True),
        ("Lt", "-7", "-8", True),
        ("Gt", "05", "7", False),
        ("Gt", "5", "+7", False),
        ("Gt", "", "7", False),
        ("Gt", "5", "9223372036854775808", False),
    ],
)
def test_comparisons_work_where_they_are_switched_on(operator: str, ours: str, theirs: str, expected: bool) -> None:
    toleration, taint = (
        Toleration(key="k", operator=operator, value=ours),
        Taint(key="k", value=theirs, effect="NoSchedule"),
    )
    assert tolerates(toleration, taint, comparisons=True) is expected
    assert not tolerates(toleration, taint), "off by default in 1.37"


def test_any_toleration_will_do() -> None:
    assert tolerated([Toleration(key="x"), Toleration(key="gpu", operator="Exists")], GPU)
    assert not tolerated([], GPU)


def test_only_taints_with_the_asked_effects_are_listed() -> None:
    soft = Taint(key="old", effect="PreferNoSchedule")
    gone = Taint(key="gone", effect="NoExecute")
    odd = Taint(key="odd", effect="Whatever")
    taints = [soft, GPU, odd, gone]
    assert untolerated([], taints) == (GPU, gone)
    assert untolerated([], taints, effects=SOFT_EFFECTS) == (soft,)
    assert untolerated([Toleration(key="gpu", operator="Exists")], taints, effects=HARD_EFFECTS) == (gone,)
