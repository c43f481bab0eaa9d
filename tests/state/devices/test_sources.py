"""Devices from ResourceSlices: complete generations alone count, in whatever order the slices come."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.devices.inventory import NO_FACTS, node_facts
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.state.devices.sources import MAX_POOL_SLICES, DeviceSources
from kubenexus.state.digest import digest
from kubenexus.testing.harness import a_ledger
from tests.state.devices.slices import a_device, a_gpu_node, a_slice, gpus


def names(sources: DeviceSources, node: str) -> list[str]:
    return [device.name for device in sources.read(node).devices]


def of(*slices: ResourceSlice) -> DeviceSources:
    sources = DeviceSources()
    for each in slices:
        sources.set_slice(each.metadata.name, each)
    return sources


TWO = ["gpu-0", "gpu-1"]
HALF = a_slice("a", "n", a_device("gpu-0"), count=2)
OTHER = a_slice("b", "n", a_device("gpu-1"), count=2)
NEWER = a_slice("c", "n", a_device("gpu-9"), generation=2)


@pytest.mark.parametrize(
    ("slices", "found"),
    [
        pytest.param([a_slice("a", "n", *gpus(2))], TWO, id="one slice is a pool"),
        pytest.param([HALF, OTHER], TWO, id="two slices of a pool of two"),
        pytest.param([HALF], [], id="half a pool is none"),
        pytest.param([HALF, OTHER, NEWER], ["gpu-9"], id="a newer generation replaces the older"),
        pytest.param(
            [HALF, OTHER, a_slice("c", "n", a_device("gpu-9"), generation=2, count=2)],
            [],
            id="a newer generation that is not complete leaves nothing",
        ),
        pytest.param([HALF, a_slice("b", "n", a_device("gpu-1"), count=3)], [], id="slices that contradict each other"),
        pytest.param([a_slice("a", "m", *gpus(2))], [], id="the slices of another node"),
        pytest.param([a_slice("a", "n", *gpus(2), driver="nic.example.com")], [], id="network cards are no devices"),
        pytest.param(
            [a_slice("a", "n", *gpus(1), pool="x"), a_slice("b", "n", *gpus(1, 1), pool="y")],
            TWO,
            id="several pools of one node",
        ),
        pytest.param(
            [a_slice("a", "", a_device("gpu-0", node="n"), a_device("gpu-1", node="m"), pool="rack")],
            ["gpu-0"],
            id="a pool of several nodes has devices of each",
        ),
    ],
)
def test_the_devices_of_a_node(slices: list[ResourceSlice], found: list[str]) -> None:
    for order in permutations(slices):
        assert names(of(*order), "n") == found


def test_a_slice_that_completes_a_pool_concerns_all_nodes_of_the_pool() -> None:
    sources = of(a_slice("a", "", a_device("gpu-0", node="n"), pool="rack", count=2))
    fresh = a_slice("b", "", a_device("gpu-1", node="m"), pool="rack", count=2)
    assert names(sources, "n") == []
    assert sources.set_slice("b", fresh) == {"n", "m"}
    assert (names(sources, "n"), names(sources, "m")) == (["gpu-0"], ["gpu-1"])
    assert sources.set_slice("b", fresh) == set(), "nothing changed"
    assert sources.set_slice("b", None) == {"n", "m"}
    assert names(sources, "n") == []


def test_a_slice_that_moves_to_another_pool_concerns_both() -> None:
    sources = of(a_slice("a", "n", *gpus(1), pool="x"), a_slice("b", "m", *gpus(1), pool="y"))
    assert sources.set_slice("a", a_slice("a", "n", *gpus(1), pool="y", count=2)) == {"n", "m"}


def test_a_pool_of_too_many_slices_is_not_read_until_it_is_smaller_again() -> None:
    most = MAX_POOL_SLICES
    slices = [a_slice(f"s{i}", f"n{i}", *gpus(1, i), pool="all", count=most) for i in range(most + 2)]
    sources = of(*slices[:most])
    assert names(sources, "n0") == ["gpu-0"]
    assert sources.set_slice(f"s{most}", slices[most]) >= {"n0", f"n{most - 1}"}
    assert names(sources, "n0") == []
    sources.set_slice(f"s{most + 1}", slices[most + 1])
    sources.set_slice(f"s{most + 1}", None)
    assert sources.set_slice(f"s{most}", None) >= {"n0", f"n{most - 1}"}
    assert names(sources, "n0") == ["gpu-0"]


def test_nothing_is_left_of_what_is_gone() -> None:
    sources, facts = of(HALF, OTHER, NEWER), node_facts(a_gpu_node("n"))
    assert sources.set_facts("n", facts)
    assert not sources.set_facts("n", facts)
    for name in "abc":
        sources.set_slice(name, None)
    assert sources.set_facts("n", NO_FACTS)
    assert all(not kept for kept in vars(sources).values())


SLICES = st.builds(
    lambda name, node, pool, generation, count, number: a_slice(
        name, node, *gpus(number), pool=pool, generation=generation, count=count
    ),
    name=st.sampled_from("abcd"),
    node=st.sampled_from(["n", "m"]),
    pool=st.sampled_from(["x", "y"]),
    generation=st.integers(1, 2),
    count=st.integers(1, 2),
    number=st.integers(0, 3),
)


@given(events=st.lists(SLICES | st.sampled_from("abcd"), max_size=12))
def test_after_any_events_a_ledger_has_the_devices_of_one_that_lists_the_slices(
    events: list[ResourceSlice | str],
) -> None:
    nodes = [a_gpu_node("n", 4), a_gpu_node("m", 0)]
    live, left = a_ledger(nodes), dict[str, ResourceSlice]()
    for event in events:
        if isinstance(event, str):
            left.pop(event, None)
            live.remove_resource_slice(event)
        else:
            left[event.metadata.name] = event
            live.upsert_resource_slice(event)
    rebuilt = a_ledger()
    for each in reversed(left.values()):
        rebuilt.upsert_resource_slice(each)
    for node in nodes:
        rebuilt.upsert_node(node)
    assert [live.devices_of(name) for name in "nm"] == [rebuilt.devices_of(name) for name in "nm"]
    assert digest(live) == digest(rebuilt)
