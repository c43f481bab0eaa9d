"""The rules that look at no node: who may be queued at all, and in which order."""

import pytest

from kubenexus.framework.verdict import Code
from kubenexus.plugins.priority_sort import PrioritySort
from kubenexus.plugins.scheduling_gates import SchedulingGates
from kubenexus.testing.builders import a_pod


def test_a_pod_without_gates_may_come_in() -> None:
    assert SchedulingGates({}).pre_enqueue(a_pod("p")) is None


def test_a_gated_pod_waits_for_all_of_its_gates() -> None:
    verdict = SchedulingGates({}).pre_enqueue(a_pod("p", gates=["quota", "kueue.x-k8s.io/admission"]))
    assert verdict is not None
    assert verdict.code is Code.UNRESOLVABLE
    assert verdict.reasons == ("waiting for scheduling gates: [quota kueue.x-k8s.io/admission]",)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param((10, 5.0), (0, 1.0), id="higher priority goes first, however long the other waits"),
        pytest.param((0, 1.0), (0, 5.0), id="of equal priority, who waits longer"),
        pytest.param((0, 5.0), (-1, 1.0), id="negative priorities come last"),
        pytest.param((2_000_001_000, 9.0), (2_000_000_000, 1.0), id="system-critical ones among themselves"),
    ],
)
def test_the_order_of_the_queue(first: tuple[int, float], then: tuple[int, float]) -> None:
    order = PrioritySort({}).sort_key
    assert order(*first) < order(*then)
