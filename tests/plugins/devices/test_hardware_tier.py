"""The column of hardware tiers: equal to the tier of each node by itself, over all rows, some, and one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Node
from kubenexus.api.devices.hardware_tier import HardwareTier, hardware_tier
from kubenexus.state.devices.hardware_tiers import hardware_tiers
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes, OneNode
from kubenexus.testing.builders import a_node

WORDS = st.sampled_from(["premium", "Gold", "standard", "bronze", "platinum", ""])
LABELS = st.fixed_dictionaries(
    {},
    optional={
        "hardware.kubenexus.io/tier": WORDS,
        "hardware.kubenexus.io/gpu-tier": WORDS,
        "gpu.kubenexus.io/model": st.sampled_from(["H100", "A100", "NVIDIA-A100-SXM4-80GB", "T4", "no such"]),
    },
)
MACHINES = st.tuples(LABELS, st.sampled_from([0, 0, 1, 8]))


def ledger_of(nodes: list[Node]) -> Ledger:
    ledger = Ledger()
    for node in nodes:
        ledger.upsert_node(node)
    ledger.read_devices()
    return ledger


@given(st.lists(MACHINES, min_size=1, max_size=8), st.data())
def test_the_column_is_the_tier_of_each_node(machines: list[tuple[dict[str, str], int]], data: st.DataObject) -> None:
    nodes = [a_node(f"n{i}", gpu=gpus, labels=labels) for i, (labels, gpus) in enumerate(machines)]
    ledger = ledger_of(nodes)
    columns = ledger.nodes
    wanted = [hardware_tier(node.metadata.labels, ledger.devices_of(node.metadata.name).devices) for node in nodes]
    assert hardware_tiers(Nodes(columns)).tolist() == wanted
    rows = data.draw(st.lists(st.integers(0, len(nodes) - 1), unique=True))
    assert hardware_tiers(Nodes(columns, np.array(rows, np.int64))).tolist() == [wanted[row] for row in rows]
    assert [hardware_tiers(OneNode(columns, row)).tolist() for row in range(len(nodes))] == [[each] for each in wanted]


def test_the_column_follows_labels_devices_and_nodes() -> None:
    ledger = ledger_of([a_node("a", gpu=8, labels={"gpu.kubenexus.io/model": "H100"}), a_node("b", gpu=1)])

    def tiers() -> list[int]:
        ledger.read_devices()
        column = hardware_tiers(Nodes(ledger.nodes))
        assert column.dtype == np.uint8
        return column.tolist()

    assert tiers() == [HardwareTier.PREMIUM, HardwareTier.UNKNOWN]
    ledger.upsert_node(a_node("b", gpu=1, labels={"gpu.kubenexus.io/model": "T4"}))
    assert tiers() == [HardwareTier.PREMIUM, HardwareTier.ECONOMY]
    ledger.upsert_node(a_node("b", gpu=1, labels={"hardware.kubenexus.io/gpu-tier": "silver"}))
    assert tiers() == [HardwareTier.PREMIUM, HardwareTier.STANDARD]
    ledger.remove_node("a")
    assert tiers() == [HardwareTier.NONE, HardwareTier.STANDARD]


def test_the_column_is_computed_once_until_a_node_changes() -> None:
    ledger = ledger_of([a_node("a", gpu=8)])
    first = hardware_tiers(Nodes(ledger.nodes))
    assert hardware_tiers(Nodes(ledger.nodes)) is first
