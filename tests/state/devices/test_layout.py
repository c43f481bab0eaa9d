"""Layouts: which devices of a node are together, and which stay joined when others are taken."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.devices.device import UNKNOWN, Device, DeviceKind, Link, NodeDevices
from kubenexus.state.devices.layout import ISLAND, NO_LAYOUT, NUMA, SWITCH, layout_of
from tests.plugins.devices.device_cluster import machines, meshes
from tests.plugins.devices.device_machine import largest_component


def cards(*fields: dict[str, Any]) -> tuple[Device, ...]:
    return tuple(Device(name=f"gpu-{i}", **each) for i, each in enumerate(fields))


NVLINK: dict[str, Any] = {"island": 0, "link": Link.NVLINK}
PCIE: dict[str, Any] = {"island": 0, "link": Link.PCIE}


@pytest.mark.parametrize(
    ("devices", "level", "groups"),
    [
        pytest.param(cards(NVLINK, NVLINK, NVLINK), ISLAND, (0b111,), id="joined cards are one island"),
        pytest.param(
            cards(NVLINK, NVLINK | {"island": 1}, NVLINK, NVLINK | {"island": 1}),
            ISLAND,
            (0b0101, 0b1010),
            id="islands may lie between each other",
        ),
        pytest.param(cards(PCIE, PCIE), ISLAND, (), id="PCIe joins no island"),
        pytest.param(cards(NVLINK, NVLINK | {"island": 1}), ISLAND, (), id="one card is no group"),
        pytest.param(cards(NVLINK | {"island": UNKNOWN}, NVLINK), ISLAND, (), id="an unknown island is none"),
        pytest.param(cards({"switch": 3}, {"switch": 3}, {}), SWITCH, (0b11,), id="cards on one switch are a group"),
        pytest.param(cards({"numa": 0}, {"numa": 1}, {"numa": 0}), NUMA, (0b101,), id="so are those on one NUMA node"),
        pytest.param((), NUMA, (), id="a node without devices has no groups"),
    ],
)
def test_groups(devices: tuple[Device, ...], level: int, groups: tuple[int, ...]) -> None:
    assert layout_of(devices).groups[level] == groups


def test_no_devices_have_the_empty_layout() -> None:
    assert layout_of(()) == NO_LAYOUT


def test_resources_and_gpus_are_sets_of_slots() -> None:
    mig = Device(name="mig", kind=DeviceKind.MIG, resource="b")
    layout = layout_of((Device(name="x", resource="b"), Device(name="y"), mig, Device(name="z", resource="a")))
    assert layout.resources == (("a", 0b1000), ("b", 0b0101))
    assert layout.gpus == 0b1011


def test_equal_machines_have_equal_layouts() -> None:
    assert layout_of(cards(NVLINK, NVLINK)) == layout_of(cards(NVLINK | {"memory": 5}, NVLINK))


RING = cards(*[NVLINK | {"peers": (f"gpu-{(i - 1) % 4}", f"gpu-{(i + 1) % 4}")} for i in range(4)])


@pytest.mark.parametrize(
    ("free", "largest"),
    [
        pytest.param(0b1111, 4, id="a whole ring is joined"),
        pytest.param(0b0111, 3, id="a chain is joined"),
        pytest.param(0b0101, 1, id="opposite cards of a ring are not"),
        pytest.param(0b1010, 1, id="nor are the others"),
        pytest.param(0, 0, id="nothing is free"),
    ],
)
def test_a_ring_of_four(free: int, largest: int) -> None:
    layout = layout_of(RING)
    assert layout.connected(free, layout.groups[ISLAND][0]) == largest


def test_a_link_that_one_card_alone_reports_counts_for_both() -> None:
    """The others of its island are peers of a card that reports none, whichever of them comes first."""
    forward = layout_of(cards(NVLINK | {"peers": ("gpu-1",)}, NVLINK | {"peers": ("gpu-0",)}, NVLINK))
    assert forward.connected(0b111, 0b111) == 3
    assert forward.neighbours[0] & 0b100
    assert forward.neighbours[2] & 0b001


@given(data=st.data(), size=st.integers(2, 8), free=st.integers(0, 255))
def test_connected_is_what_a_search_of_the_graph_finds(data: st.DataObject, size: int, free: int) -> None:
    peers = data.draw(meshes(size))
    devices = cards(*[NVLINK | {"peers": tuple(f"gpu-{peer}" for peer in sorted(each))} for each in peers])
    layout = layout_of(devices)
    left = [device for slot, device in enumerate(devices) if free >> slot & 1]
    assert layout.connected(free, (1 << size) - 1) == largest_component(left)


@given(machine=machines())
def test_groups_of_a_level_do_not_overlap_and_have_two_devices_or_more(machine: NodeDevices) -> None:
    for groups in layout_of(machine.devices).groups:
        assert all(group.bit_count() > 1 for group in groups)
        assert sum(group.bit_count() for group in groups) == sum(groups).bit_count()
