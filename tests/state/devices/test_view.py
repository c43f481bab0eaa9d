"""A single row says of its devices what all rows say, for each method, as plain integers."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.state.devices.layout import LEVELS
from kubenexus.state.devices.one_node import OneNodeDevices
from kubenexus.state.devices.view import NodeDeviceSets, part_of
from kubenexus.state.view import Nodes, OneNode
from kubenexus.testing.builders import GPU
from kubenexus.testing.harness import CheckedCluster
from tests.plugins.devices.device_cluster import GIB, MIG, device_clusters

RESOURCES = (GPU, MIG, "nobody/offers-this")
PROPERTIES = ("healthy", "free", "untouched", "shared", "sliced", "quality")
QUESTIONS: dict[str, list[tuple[Any, ...]]] = {
    "offered": [(name,) for name in ("", *RESOURCES)],
    "units": [(name,) for name in RESOURCES],
    "free_units": [(name,) for name in RESOURCES],
    "unnamed_devices": [(name,) for name in RESOURCES],
    "unnamed": [(name,) for name in RESOURCES],
    "with_card_memory": [(least,) for least in (0, 1, 24 * GIB, 80 * GIB, 1 << 50)],
    "with_usable": [(least,) for least in (0, 1, 24 * GIB, 79 * GIB)],
    "with_bandwidth": [(least,) for least in (0, 10**9, 10**15)],
    "of_type": [(frozenset(words.split()),) for words in ("nvidia", "a100", "nvidia h100", "mig", "tpu")],
    "with_share": [(500, 0), (1000, 0), (0, GIB), (0, 1 << 50), (250, 10 * GIB), (1, 1)],
}


@given(cluster=device_clusters())
def test_one_row_says_what_all_rows_and_some_rows_say(cluster: CheckedCluster) -> None:
    columns = cluster.ledger.nodes
    rows = list(range(columns.size))
    backwards = np.array(rows[::-1])
    views = [(Nodes(columns).devices, rows), (Nodes(columns, backwards).devices, rows[::-1])]
    for sets, places in views:
        for at, row in enumerate(places):
            one = OneNode(columns, row).devices
            assert one.resources == sets.resources
            for name, asked in QUESTIONS.items():
                for args in asked:
                    assert number(getattr(sets, name)(*args), at) == getattr(one, name)(*args), (name, args, row)
            for name in PROPERTIES:
                assert number(getattr(sets, name), at) == getattr(one, name), (name, row)


@given(cluster=device_clusters(), mask=st.integers(0, 2**64 - 1))
def test_one_row_counts_its_groups_as_all_rows_do(cluster: CheckedCluster, mask: int) -> None:
    columns = cluster.ledger.nodes
    sets, words = Nodes(columns).devices, np.full(columns.size, mask, np.uint64)
    for row in range(columns.size):
        one = OneNode(columns, row).devices
        assert sets.count(words)[row] == one.count(mask)
        assert sets.smallest_card(words)[row] == one.smallest_card(mask)
        for level in LEVELS:
            for name in ("in_groups", "group_sizes"):
                table = getattr(sets, name)(words, level)[:, row].tolist()
                own = getattr(one, name)(mask, level)
                assert table == own + [0] * (len(table) - len(own)), (name, level, row)


OF_ONE_ROW = {"free", "healthy"}  # read when the view is made
ONLY_OF_ONE_ROW = {"units_to_take", "islands", "shares", "memory", "usable"}


def test_both_views_have_the_same_methods() -> None:
    of_all, of_one = (
        {name for name in vars(view) if not name.startswith("_")} for view in (NodeDeviceSets, OneNodeDevices)
    )
    tested = {*QUESTIONS, *PROPERTIES, "resources", "count", "smallest_card", "in_groups", "group_sizes"}
    assert of_all - {"shared_by_plugins"} == tested
    assert of_one - {"shared_by_plugins"} | OF_ONE_ROW == tested | ONLY_OF_ONE_ROW


@given(share=st.integers(0, 1000), memory=st.integers(0, 1 << 50), usable=st.integers(0, 1 << 50))
def test_a_part_covers_what_was_asked_for(share: int, memory: int, usable: int) -> None:
    """Both numbers are at least what the pod states, and what follows from the memory of the card."""
    takes, bytes_ = part_of(share, memory, usable)
    assert takes >= share
    assert bytes_ >= memory
    if share and not memory:
        assert 0 <= bytes_ <= usable
    if memory and not share and usable:
        assert takes * usable >= memory * 1000 > (takes - 1) * usable


def number(column: Any, at: int) -> Any:
    return column if np.ndim(column) == 0 else column[at].item()
