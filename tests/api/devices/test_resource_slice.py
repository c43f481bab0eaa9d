"""Pools of ResourceSlices: complete ones count, whatever the order in which their slices come."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.codec import read_object
from kubenexus.api.devices.resource_slice import (
    CompleteDevices,
    ResourceSlice,
    complete_devices,
    natural_order,
    node_names,
)
from tests.api.devices.builders import a_device, a_slice


def names(found: CompleteDevices) -> list[str]:
    return [device.name for device in found.devices]


@pytest.mark.parametrize(
    ("slices", "devices", "warning"),
    [
        pytest.param([], [], "", id="no slice"),
        pytest.param([a_slice(a_device("a"))], ["a"], "", id="a pool of one slice"),
        pytest.param([a_slice()], [], "", id="a pool without devices"),
        pytest.param([a_slice(a_device("a"), count=2)], [], "1 of 2 slices are there", id="a slice is missing"),
        pytest.param([a_slice(a_device("a"), count=0)], [], "1 of 0 slices are there", id="a slice too many"),
        pytest.param(
            [a_slice(a_device("a"), count=2, name="x"), a_slice(a_device("b"), count=2, name="y")],
            ["a", "b"],
            "",
            id="both slices are there",
        ),
        pytest.param(
            [a_slice(a_device("a"), count=2, name="x"), a_slice(a_device("a"), count=2, name="y")],
            [],
            "two devices are named 'a'",
            id="a name occurs twice",
        ),
        pytest.param(
            [a_slice(a_device("a"), count=2, name="x"), a_slice(a_device("b"), count=3, name="y")],
            [],
            "its slices disagree about their number: 2, 3",
            id="slices of one generation disagree",
        ),
        pytest.param(
            [a_slice(a_device("old"), name="x"), a_slice(a_device("new"), generation=2, name="y")],
            ["new"],
            "",
            id="the newest generation counts",
        ),
        pytest.param(
            [a_slice(a_device("old"), name="x"), a_slice(a_device("new"), generation=2, count=2, name="y")],
            [],
            "1 of 2 slices are there",
            id="an older complete generation does not help",
        ),
        pytest.param(
            [a_slice(a_device("a"), pool="p"), a_slice(a_device("b"), pool="q", count=2)],
            ["a"],
            "pool q: 1 of 2 slices are there",
            id="pools count by themselves",
        ),
        pytest.param(
            [a_slice(a_device("a"), driver="gpu.amd.com"), a_slice(a_device("a"))],
            ["a", "a"],
            "",
            id="drivers count by themselves",
        ),
        pytest.param(
            [a_slice(a_device("gpu-10"), a_device("gpu-9"), a_device("gpu-2"))],
            ["gpu-2", "gpu-9", "gpu-10"],
            "",
            id="names are in natural order",
        ),
        pytest.param(
            [a_slice(a_device("a"), count=2, name="x"), a_slice(count=2, name="y", node="")],
            ["a"],
            "",
            id="a slice of counters alone completes the pool",
        ),
        pytest.param([a_slice(a_device("a"), node="", allNodes=True)], [], "", id="devices of all nodes are of none"),
        pytest.param([a_slice(a_device("a"), node="", nodeSelector={})], [], "", id="devices behind a selector"),
    ],
)
def test_complete_pools(slices: list[ResourceSlice], devices: list[str], warning: str) -> None:
    for order in (slices, slices[::-1]):
        found = complete_devices(order)
        assert names(found) == devices
        assert warning in "".join(found.warnings)
        assert bool(warning) == bool(found.warnings)


def test_a_pool_with_devices_of_several_nodes() -> None:
    devices = [a_device("a") | {"nodeName": "n1"}, a_device("b") | {"nodeName": "n2"}, a_device("c")]
    found = a_slice(*devices, node="", perDeviceNodeSelection=True)
    assert node_names(found) == {"n1", "n2"}
    assert names(complete_devices([found])) == ["a", "b"]
    assert names(complete_devices([found], "n2")) == ["b"]


def test_the_nodes_of_a_slice() -> None:
    assert node_names(a_slice(a_device("a"))) == {"n1"}
    assert node_names(a_slice(a_device("a"), node="", allNodes=True)) == frozenset()


def test_the_form_of_v1beta1() -> None:
    raw = b"""{"metadata": {"name": "s"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "gpu-0", "basic": {
        "attributes": {"uuid": {"string": "GPU-1"}, "index": {"int": 0}}, "capacity": {
        "memory": {"value": "80Gi"}}}}]}}"""
    found = read_object(raw, ResourceSlice)
    assert isinstance(found, ResourceSlice)
    (device,) = complete_devices([found]).devices
    assert device.content.attributes["uuid"].string == "GPU-1"
    assert device.content.attributes["index"].number == 0
    assert device.content.capacity["memory"].value == "80Gi"


def test_lists_versions_and_unread_fields() -> None:
    raw = b"""{"metadata": {"name": "s"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": "n1", "sharedCounters": [],
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "gpu-0", "attributes": {
        "a": {"ints": [1, 0]}, "b": {"strings": ["x"]}, "c": {"version": "1.2.3"}, "d": {"bool": false},
        "e": {"bools": [true]}}, "consumesCounters": [{"counterSet": "x", "counters": {"m": {"value": "1"}}}]}]}}"""
    found = read_object(raw, ResourceSlice)
    assert isinstance(found, ResourceSlice)
    attributes = complete_devices([found]).devices[0].content.attributes
    assert attributes["a"].numbers == [1, 0]
    assert attributes["b"].strings == ["x"]
    assert attributes["c"].version == "1.2.3"
    assert attributes["d"].flag is False


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["gpu-", "", "a1-"]), st.sampled_from(["", "-x"]))
def test_numbers_in_names_are_in_the_order_of_numbers(one: int, other: int, head: str, tail: str) -> None:
    first, second = natural_order(f"{head}{one}{tail}"), natural_order(f"{head}{other}{tail}")
    assert (first < second) == (one < other)


def reference(slices: Sequence[ResourceSlice]) -> set[tuple[str, str, str]]:
    """The same rule for one pool at a time, as it is in the documentation of the API."""
    kept = set()
    for driver, pool in {(each.spec.driver, each.spec.pool.name) for each in slices}:
        own = [each for each in slices if (each.spec.driver, each.spec.pool.name) == (driver, pool)]
        last = max(each.spec.pool.generation for each in own)
        own = [each for each in own if each.spec.pool.generation == last]
        listed = [device.name for each in own for device in each.spec.devices]
        complete = all(each.spec.pool.resource_slice_count == len(own) for each in own)
        if complete and len(set(listed)) == len(listed):
            kept |= {(driver, pool, name) for name in listed}
    return kept


@st.composite
def pools(draw: Any) -> list[ResourceSlice]:
    slices = []
    for number in range(draw(st.integers(0, 8))):
        devices = draw(st.lists(st.sampled_from(["gpu-0", "gpu-1", "gpu-2", "gpu-10"]), max_size=2))
        slices.append(
            a_slice(
                *map(a_device, devices),
                driver=draw(st.sampled_from(["gpu.nvidia.com", "gpu.amd.com"])),
                pool=draw(st.sampled_from(["p", "q"])),
                generation=draw(st.integers(1, 3)),
                count=draw(st.integers(1, 3)),
                name=f"s{number}",
            )
        )
    return slices


@given(pools(), st.randoms(use_true_random=False))
def test_complete_pools_of_shuffled_slices_of_several_generations(slices: list[ResourceSlice], random: Any) -> None:
    found = complete_devices(slices)
    assert {(each.driver, each.pool, each.name) for each in found.devices} == reference(slices)
    shuffled = list(slices)
    random.shuffle(shuffled)
    assert complete_devices(shuffled) == found
