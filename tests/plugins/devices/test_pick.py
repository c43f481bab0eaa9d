"""Which devices a pod gets: the right number, free, joined if it must be, the tightest place first, always the same."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.devices.device import UNKNOWN, Device, Link, NodeDevices
from kubenexus.api.keys import gpu
from kubenexus.framework.job import Assignment
from kubenexus.framework.verdict import Verdict
from kubenexus.plugins import BUILT_IN
from kubenexus.plugins.devices.pick import pick_island, pick_parts, pick_whole, slots_of
from kubenexus.state.devices.layout import ISLAND, DeviceLayout, layout_of
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import GPU, a_node, a_pod
from kubenexus.testing.harness import CheckedCluster
from tests.plugins.devices.device_cluster import device_clusters, device_pods, machines
from tests.plugins.devices.device_machine import Machine, largest_component, requests_of
from tests.plugins.devices.test_device_references import signed_class


def machine(count: int, island: int = 0, switch: int = 0, numa: int = 0) -> DeviceLayout:
    """Cards in islands, switches and NUMA nodes of these sizes; 0: none."""
    return layout_of(
        tuple(
            Device(
                name=f"gpu-{i}",
                link=Link.NVLINK,
                island=i // island if island else UNKNOWN,
                switch=i // switch if switch else UNKNOWN,
                numa=i // numa if numa else UNKNOWN,
            )
            for i in range(count)
        )
    )


ALL = 0b1111_1111


@pytest.mark.parametrize(
    ("layout", "free", "count", "taken"),
    [
        pytest.param(machine(8, 4), ALL, 4, 0b1111, id="a whole island for a pod that fills it"),
        pytest.param(machine(8, 4), 0b1111_0011, 2, 0b0011, id="the island that the pod completes"),
        pytest.param(machine(8, 4), 0b1111_0011, 4, 0b1111_0000, id="the island that still has four"),
        pytest.param(machine(8, 4), 0b1111_0111, 1, 0b0001, id="an island in use before a whole one"),
        pytest.param(machine(8, 4), 0b0111_1111, 1, 0b0001_0000, id="also if it comes later"),
        pytest.param(machine(8, 4), 0b0011_0111, 1, 0b0001_0000, id="the tightest of islands in use"),
        pytest.param(machine(8, 8, 2), 0b1111_1001, 2, 0b0011_0000, id="one switch within the island"),
        pytest.param(machine(8, 0, 0, 4), 0b1111_0001, 4, 0b1111_0000, id="one NUMA node without islands"),
        pytest.param(machine(8, 4), 0b0011_0011, 3, 0b0001_0011, id="two islands if none has enough"),
        pytest.param(machine(8, 4), ALL, 0, 0, id="nothing for a pod that needs nothing"),
        pytest.param(machine(8, 4), 0b11, 3, None, id="none where too few are free"),
    ],
)
def test_whole_devices(layout: DeviceLayout, free: int, count: int, taken: int | None) -> None:
    assert pick_whole(layout, free, count, ALL, joined=False) == taken


def test_devices_that_must_be_joined_come_from_one_island_or_not_at_all() -> None:
    layout = machine(8, 4)
    assert pick_whole(layout, 0b0111_0011, 3, ALL, joined=True) == 0b0111_0000
    assert pick_whole(layout, 0b0011_0011, 3, ALL, joined=True) is None
    assert pick_whole(machine(4), 0b1111, 2, 0b1111, joined=True) is None


@pytest.mark.parametrize(
    ("shares", "count", "taken"),
    [
        pytest.param([1000, 500, 1000, 1000], 1, 0b0010, id="a card in use before a free one"),
        pytest.param([700, 500, 600, 1000], 1, 0b0010, id="the card with least left"),
        pytest.param([1000] * 4 + [1000, 0, 1000, 1000], 1, 0b1_0000, id="a free card of an island in use"),
        pytest.param([1000] * 8, 2, 0b0011, id="the first ones if all are alike"),
        pytest.param([500, 300, 1000, 400], 2, 0b1010, id="several cards, those with least left"),
    ],
)
def test_parts_of_devices(shares: list[int], count: int, taken: int) -> None:
    fitting = [slot for slot, share in enumerate(shares) if share > 0]
    found = pick_parts(machine(len(shares), 4), fitting, list(range(len(shares))), shares, count)
    assert sum(1 << slot for slot in found) == taken


@settings(max_examples=4 * settings().max_examples)
@given(found=machines(), free=st.integers(0, 1023), count=st.integers(1, 8), joined=st.booleans())
def test_what_is_picked_is_free_and_enough_and_joined_if_required(
    found: NodeDevices, free: int, count: int, joined: bool
) -> None:
    layout = layout_of(found.devices)
    every = (1 << len(found.devices)) - 1
    free &= every
    taken = pick_whole(layout, free, count, every, joined=joined)
    assert taken == pick_whole(layout, free, count, every, joined=joined)
    most = max((layout.connected(free, group) for group in layout.groups[ISLAND]), default=0)
    if taken is None:
        assert free.bit_count() < count or (joined and most < count)
        return
    assert taken.bit_count() == count
    assert taken & ~free == 0
    if joined:
        assert is_joined(found, layout, taken)
        island = pick_island(layout, free, count, every)
        assert island is not None
        assert island.bit_count() >= count
        assert layout.neighbours or any(island & group == island for group in layout.groups[ISLAND])
    exact = [group for group in layout.groups[ISLAND] if (free & group).bit_count() == count]
    if exact and not layout.neighbours:
        assert any(taken == free & group for group in exact)


def is_joined(found: NodeDevices, layout: DeviceLayout, taken: int) -> bool:
    inside = any(taken & group == taken for group in layout.groups[ISLAND])
    own = [found.devices[slot] for slot in slots_of(taken)]
    linked = not layout.neighbours or largest_component(own) == len(own)
    return inside and linked


@settings(max_examples=2 * settings().max_examples)
@given(cluster=device_clusters(nodes=1), pod=device_pods(), members=st.integers(1, 4))
def test_members_of_a_node_get_what_they_ask_for_and_never_the_same(
    cluster: CheckedCluster, pod: Pod, members: int
) -> None:
    pod_class, nodes = signed_class(pod, cluster.ledger), Nodes(cluster.ledger.nodes)
    fit: Any = BUILT_IN["DeviceFit"]({})
    found = fit.assign_members(pod_class, 0, nodes, members)
    assert found == fit.assign_members(pod_class, 0, nodes, members), "the second time it is known already"
    if isinstance(found, Verdict):
        return
    here = Machine(cluster.reference.infos()["n0"])
    left = {card.device.name: [card.share, card.memory] for card in here.cards}
    for member in found:
        takes_what_it_asks_for(member, pod, here)
        for take in member.device_shares:
            left[take.device][0] -= take.share
            left[take.device][1] -= take.memory
            assert left[take.device][0] >= 0
            assert left[take.device][1] >= 0 or not take.memory


def takes_what_it_asks_for(member: Assignment, pod: Pod, here: Machine) -> None:
    """Each request gets its number or, where names do not matter, none; joined if that is required."""
    by_name = {card.device.name: card for card in here.cards}
    takes = [by_name[take.device] for take in member.device_shares]
    assert len({card.device.name for card in takes}) == len(takes)
    for request in requests_of(pod):
        own = [card for card in takes if request.names(card)]
        assert len(own) in (0, request.number)
        assert all(request.could(card) for card in own)
        if request.joined and own:
            assert request.number in here.joined(own)
        if own and request.is_part:
            assert dict(member.annotations)[gpu.VISIBLE_DEVICES.key]
        if not own:
            known = any(request.names(card) for card in here.cards)
            assert not known or here.sliced or here.unnamed(request.resource) < 0


def test_cards_beyond_those_that_are_known_are_taken_without_names() -> None:
    """The kubelet offers a hundred; sets have 64 bits."""
    cluster = CheckedCluster.of([a_node("n0", resources={GPU: 100})])
    devices = tuple(Device(name=f"gpu-{i}", resource=GPU) for i in range(64))
    cluster.tell("set_devices", "n0", NodeDevices(devices))
    pod_class = signed_class(a_pod(gpu=1), cluster.ledger)
    fit: Any = BUILT_IN["DeviceFit"]({})
    found = fit.assign_members(pod_class, 0, Nodes(cluster.ledger.nodes), 100)
    assert [len(member.device_shares) for member in found] == [1] * 64 + [0] * 36
