"""Gangs with devices: each member gets its own cards, joined where it must be, and a try leaves nothing behind."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.device_share import DeviceShare, devices_annotation
from kubenexus.api.keys import gpu
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.backtracking import BacktrackingSearch
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_pod
from kubenexus.testing.harness import a_ledger, run
from tests.state.devices.slices import a_device, a_gpu_node, a_slice
from tests.state.devices.test_columns import bytes_of

PLUGINS = profile_plugins(shipped_profile())
JOINED = {gpu.PREFER_NVLINK.key: "required"}


def with_islands(name: str, **labels: str) -> Node:
    """Eight GPUs in two islands of four."""
    return a_gpu_node(name, 8, labels={gpu.ISLANDS.key: "0-3_4-7", gpu.TOPOLOGY.key: "nvlink"} | labels)


def members(prefix: str, count: int, number: int | None, annotations: dict[str, str] | None = None) -> list[Pod]:
    return [a_pod(f"{prefix}-{i}", cpu=1, gpu=number, annotations=annotations or {}) for i in range(count)]


def a_gang(*pods: Pod, minimum: int | None = None) -> Job:
    return Job("default/gang", pods, len(pods) if minimum is None else minimum)


def decided(ledger: Ledger, job: Job) -> Decision:
    """The decision, which must leave every byte of the devices as it was."""
    ledger.read_devices()
    before = bytes_of(ledger.nodes.devices)
    decision = Planner(PLUGINS).decide(job, ledger.snapshot(), 0.0)
    assert bytes_of(ledger.nodes.devices) == before
    return decision


def taken(decision: Decision) -> dict[tuple[str, str], int]:
    """What members take of each card of each node, in thousandths."""
    total: Counter[tuple[str, str]] = Counter()
    for placement in decision.placements:
        for take in placement.assignment.device_shares:
            total[placement.node, take.device] += take.share
    assert all(share <= 1000 for share in total.values()), total
    return total


def islands_of(decision: Decision) -> list[set[int]]:
    """The islands of four in which each member has cards."""
    return [
        {int(take.device.removeprefix("gpu-")) // 4 for take in placement.assignment.device_shares}
        for placement in decision.placements
    ]


def a_holder(name: str, node: str, *slots: int) -> Pod:
    shares = tuple(DeviceShare(f"gpu-{slot}") for slot in slots)
    return a_pod(name, gpu=len(slots), node=node, annotations={gpu.DEVICES.key: devices_annotation(shares)})


def test_sixteen_members_with_four_joined_gpus_fill_eight_nodes_with_two_islands() -> None:
    ledger = a_ledger([with_islands(f"n{i}") for i in range(8)])
    decision = decided(ledger, a_gang(*members("m", 16, 4, JOINED)))
    assert len(decision.placements) == 16
    assert all(len(each) == 1 for each in islands_of(decision))
    assert len(taken(decision)) == 64
    assert Counter(placement.node for placement in decision.placements) == {f"n{i}": 2 for i in range(8)}


@pytest.mark.parametrize(
    ("broken", "fit"),
    [
        pytest.param(8, 0, id="on all nodes"),
        pytest.param(7, 2, id="on all nodes but one"),
        pytest.param(1, 14, id="on one node"),
    ],
)
def test_members_that_need_an_island_are_refused_where_only_broken_ones_are_left(broken: int, fit: int) -> None:
    """A pod in each island of a node leaves six GPUs, and not four that are joined."""
    pods = [a_holder(f"h{i}-{slot}", f"n{i}", slot) for i in range(broken) for slot in (1, 6)]
    ledger = a_ledger([with_islands(f"n{i}") for i in range(8)], pods)
    gang = members("m", 16, 4, JOINED)
    assert not decided(ledger, a_gang(*gang)).placed
    if fit:
        decision = decided(ledger, a_gang(*gang, minimum=fit))
        assert len(decision.placements) == fit
        assert all(len(each) == 1 for each in islands_of(decision))
    loose = decided(ledger, a_gang(*members("m", 8, 4)))
    assert len(loose.placements) == 8, "members that need not be joined take six of eight"


CLASSES: dict[str, list[Pod]] = {
    "a launcher without GPUs and workers": [*members("launcher", 1, None), *members("worker", 8, 4)],
    "workers with four and with two GPUs": [*members("four", 6, 4), *members("two", 4, 2)],
    "joined workers and loose ones": [*members("four", 4, 4, JOINED), *members("three", 4, 3)],
    "parts and whole GPUs": [*members("half", 8, None, {gpu.FRACTION.key: "0.5"}), *members("whole", 28, 1)],
    "parts of several sizes": [
        *members("half", 10, None, {gpu.FRACTION.key: "0.5"}),
        *members("third", 6, None, {gpu.FRACTION.key: "0.3"}),
        *members("large", 2, None, {gpu.SHARE_MEMORY.key: "60Gi"}),
    ],
    "large cards and any cards": [*members("large", 4, 2, {gpu.VRAM_REQUEST.key: "80Gi"}), *members("any", 4, 6)],
}


@pytest.mark.parametrize("pods", [pytest.param(pods, id=name) for name, pods in CLASSES.items()])
def test_members_of_several_classes_never_collide(pods: list[Pod]) -> None:
    ledger = a_ledger([with_islands(f"n{i}", **{gpu.SHARED.key: "true"}) for i in range(4)])
    decision = decided(ledger, a_gang(*pods))
    assert len(decision.placements) == len(pods), decision.sentence()
    wanted = {pod.key: pod.spec.containers[0].resources.limits for pod in pods}
    for placement in decision.placements:
        number = next(iter((wanted[placement.pod] or {"": 0}).values()))
        assert len(placement.assignment.device_shares) in (number, 1)
    taken(decision)
    for member, islands in zip(decision.placements, islands_of(decision), strict=True):
        assert "four" not in member.pod or len(islands) == 1


def test_a_gang_whose_counted_plan_has_no_cards_is_placed_member_by_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """By number all fit on one node. But each of its islands has one large card, and the gang needs both of these and
    a whole island: so one member goes to the other node."""
    searched: list[int] = []
    place = BacktrackingSearch.place

    def spied(self: BacktrackingSearch, *args: Any) -> Any:
        searched.append(1)
        return place(self, *args)

    monkeypatch.setattr(BacktrackingSearch, "place", spied)
    devices = [a_device(f"gpu-{i}", "80Gi" if i % 4 == 0 else "40Gi", nvlinkDomain=str(i // 4)) for i in range(8)]
    ledger = a_ledger([a_gpu_node("mixed", vram=""), with_islands("other", **{gpu.VRAM.key: "40Gi"})])
    ledger.upsert_resource_slice(a_slice("s", "mixed", *devices))
    gang = [*members("four", 1, 4, JOINED), *members("large", 2, 1, {gpu.VRAM_REQUEST.key: "80Gi"})]
    decision = decided(ledger, a_gang(*gang))
    assert {each.pod: each.node for each in decision.placements} == {
        "default/four-0": "other",
        "default/large-0": "mixed",
        "default/large-1": "mixed",
    }
    assert searched, "the counted plan was not assignable"
    assert len(taken(decision)) == 6
    ledger.remove_node("other")
    assert not decided(ledger, a_gang(*gang)).placed


def test_a_thousand_members_with_one_gpu_fill_125_nodes() -> None:
    done = run(
        [with_islands(f"n{i}") for i in range(125)],
        [a_gang(*members("m", 1000, 1))],
        profile=shipped_profile(),
    )
    (decision,) = done.decisions.values()
    assert len(taken(decision)) == 1000
    assert not done.ledger.nodes.devices.free.any()
    assert done.then([a_pod("more", gpu=1)]).placements == {}


KINDS: list[tuple[int | None, dict[str, str]]] = [
    (None, {}),
    (1, {}),
    (2, {}),
    (2, JOINED),
    (4, JOINED),
    (None, {gpu.FRACTION.key: "0.5"}),
    (None, {gpu.SHARE_MEMORY.key: "30Gi"}),
]


@given(
    kinds=st.lists(st.tuples(st.integers(0, len(KINDS) - 1), st.integers(1, 5)), min_size=1, max_size=3),
    held=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 7)), max_size=4, unique=True),
    minimum=st.integers(1, 15),
)
def test_whatever_a_gang_is_made_of_its_cards_are_free_its_own_and_joined(
    kinds: list[tuple[int, int]], held: list[tuple[int, int]], minimum: int
) -> None:
    holders = [a_holder(f"h{node}-{slot}", f"n{node}", slot) for node, slot in held]
    ledger = a_ledger([with_islands(f"n{i}", **{gpu.SHARED.key: "true"}) for i in range(2)], holders)
    pods = [pod for i, (kind, count) in enumerate(kinds) for pod in members(f"m{i}", count, *KINDS[kind])]
    decision = decided(ledger, a_gang(*pods, minimum=min(minimum, len(pods))))
    cards = taken(decision)
    assert not cards.keys() & {(f"n{node}", f"gpu-{slot}") for node, slot in held}
    kind_of = {pod.key: pod for pod in pods}
    for placement, islands in zip(decision.placements, islands_of(decision), strict=True):
        if gpu.PREFER_NVLINK.key in kind_of[placement.pod].metadata.annotations:
            assert len(islands) == 1
    assert decision == decided(ledger, a_gang(*pods, minimum=min(minimum, len(pods))))


def test_a_gang_of_many_kinds_of_parts_costs_more_of_the_budget_than_one_of_plain_kinds() -> None:
    ledger = a_ledger([with_islands(f"n{i}", **{gpu.SHARED.key: "true"}) for i in range(1000)])
    parts = [a_pod(f"p-{i}", cpu=1, annotations={gpu.FRACTION.key: f"0.{i + 100}"}) for i in range(30)]
    plain = [a_pod(f"p-{i}", cpu=f"{i + 100}m") for i in range(30)]
    assert "different kinds of members" in decided(ledger, a_gang(*parts)).sentence()
    assert decided(ledger, a_gang(*plain)).placed
