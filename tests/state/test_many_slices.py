"""ResourceSlices in numbers that only a broken driver publishes: what they cost is bounded."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.state.claims import pools
from kubenexus.state.claims.pools import MAX_SLICES
from kubenexus.state.claims.store import ClaimStore
from kubenexus.state.devices.sources import MAX_NODE_SLICES, DeviceSources
from tests.state.devices.slices import a_slice, gpus

BEYOND = MAX_SLICES + 1


def spread(number: int, count: int) -> list[ResourceSlice]:
    """Slices of one pool, each for a node of its own."""
    return [a_slice(f"s{i}", f"n{i}", *gpus(1, i), pool="all", count=count) for i in range(number)]


def own_pools(number: int) -> list[ResourceSlice]:
    """Slices of one node, each a pool of its own."""
    return [a_slice(f"s{i}", "n0", *gpus(1, i), pool=f"p{i}") for i in range(number)]


def store_of(slices: list[ResourceSlice]) -> ClaimStore:
    store = ClaimStore({f"n{i}": i for i in range(len(slices))})
    for each in slices:
        store.set_slice(each)
    return store


def usable(store: ClaimStore, node: str) -> int:
    return sum(pool.usable for pool in store.pools(node, {}))


def test_a_pool_has_a_bounded_number_of_slices() -> None:
    store = store_of(spread(BEYOND, BEYOND))
    assert [usable(store, f"n{i}") for i in (0, BEYOND - 1)] == [0, 0]
    assert store.take_warnings() == {"gpu.nvidia.com/all": f"more than {MAX_SLICES} slices"}
    for each in spread(MAX_SLICES, MAX_SLICES):
        store.set_slice(each)
    store.remove_slice(f"s{MAX_SLICES}")
    assert [usable(store, f"n{i}") for i in (0, MAX_SLICES - 1)] == [1, 1]


def test_a_node_has_a_bounded_number_of_slices_and_each_counts_again_once_they_are_fewer() -> None:
    store = store_of(own_pools(BEYOND))
    store.set_slice(a_slice("other", "n1", *gpus(1)))
    assert (usable(store, "n0"), usable(store, "n1")) == (0, 1)
    assert store.take_warnings() == {"node/n0": f"more than {MAX_SLICES} slices for one node"}
    store.remove_slice("s0")
    assert usable(store, "n0") == MAX_SLICES
    assert store.take_warnings() == {}


@pytest.fixture
def made() -> Iterator[list[str]]:
    """The pools that are made, in order."""
    found, make = list[str](), pools._pool

    def counted(id: pools.PoolId, *args: object) -> object:
        found.append(id[1])
        return make(id, *args)  # type: ignore[arg-type]

    with patch.object(pools, "_pool", counted):
        yield found


@pytest.mark.parametrize(
    ("slices", "most"),
    [
        pytest.param(spread(100, 100), 100, id="a pool over many nodes is made once for each"),
        pytest.param(own_pools(100), 100, id="the pools of a node are made once for all changes"),
    ],
)
def test_pools_are_made_before_a_decision_and_not_with_each_slice(
    slices: list[ResourceSlice], most: int, made: list[str]
) -> None:
    store = store_of(slices)
    assert not made
    assert store.outdated == len({each.spec.node_name for each in slices})
    store.read_pools(lambda row: {}, 1_000_000)
    assert (store.outdated, len(made)) == (0, most)


def test_a_pool_over_many_nodes_is_read_in_portions() -> None:
    store = store_of(spread(200, 200))
    store.read_pools(lambda row: {}, 100)
    assert 180 < store.outdated < 200  # 1,600 units of work: each node costs 16, and one for each slice of the pool


def test_a_slice_of_a_pool_that_has_too_many_concerns_its_own_node_alone() -> None:
    store = store_of(spread(BEYOND + 1, 1))
    store.read_pools(lambda row: {}, 1_000_000)
    store.set_slice(a_slice("more", "n7", *gpus(1), pool="all"))
    assert store.outdated == 1


def test_the_devices_of_a_node_are_read_from_a_bounded_number_of_slices() -> None:
    sources = DeviceSources()
    for each in own_pools(MAX_NODE_SLICES + 1):
        sources.set_slice(each.metadata.name, each)
    found = sources.read("n0")
    assert not found.devices
    assert found.warnings == (f"{MAX_NODE_SLICES + 1} ResourceSlices for one node; of more than 512 none is read",)
