"""`room`: how many more pods of a class a node takes, each with claims of its own, before the filter refuses it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.storage import StorageObject
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.job import NO_ASSIGNMENT, Assignment
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node
from tests.volumes.builders import DRIVER, a_claim, a_class, a_csi_node, a_mounting_pod, a_volume, only
from tests.volumes.plugin_fixture import allowed, cluster

PLENTY = 50
MOST = 6
LOCAL = a_class("local", by="kubernetes.io/no-provisioner")
NODES = ["n0", "n1", "n2"]


def room(rule: str, pod: Pod, ledger: Ledger) -> dict[str, int]:
    columns, rules = ledger.nodes, only(rule)
    column = np.full(columns.size, PLENTY, np.int64)
    rules.capacity[0].capacity(ClassCache(rules).make_class(pod, columns), Nodes(columns), column)
    return {name: int(column[row]) for name, row in columns.row_of.items()}


def fits(rule: str, pods: list[Pod], node: str, ledger: Ledger) -> int:
    """How many go to a node, one after the other, with what is assigned to them."""
    columns, rules, placed = ledger.nodes, only(rule), 0
    with ledger.transaction() as transaction:
        for pod in pods:
            if node not in allowed(rule, pod, ledger):
                break
            taken: Any = NO_ASSIGNMENT
            if rules.assigns:
                klass = ClassCache(rules).make_class(pod, columns)
                taken = rules.assigns[0].assign(klass, columns.row_of[node], Nodes(columns))
            assert isinstance(taken, Assignment)
            transaction.place(pod, node, ClassCache(rules).make_class(pod, columns).footprint, (), taken.volumes)
            placed += 1
    return placed


def claims(number: int, each: int, **of: Any) -> tuple[list[Pod], list[StorageObject]]:
    """Pods of one template, each with so many claims of its own."""
    names = [[f"c{i}-{j}" for j in range(each)] for i in range(number)]
    pods = [a_mounting_pod(f"p{i}", *mine) for i, mine in enumerate(names)]
    return pods, [a_claim(name, **of) for mine in names for name in mine]


@given(
    limits=st.lists(st.sampled_from([None, 0, 1, 3, 5]), min_size=3, max_size=3),
    each=st.integers(1, 2),
    there=st.integers(0, 3),
)
def test_limits_leave_room_for_what_can_still_be_attached(limits: list[Any], each: int, there: int) -> None:
    pods, mine = claims(MOST, each)
    others = [a_mounting_pod(f"o{i}", f"o{i}", node=NODES[i % 3]) for i in range(there)]
    storage: list[StorageObject] = [a_class(), *mine, *(a_claim(f"o{i}") for i in range(there))]
    storage += [a_csi_node(name, {DRIVER: limit}) for name, limit in zip(NODES, limits, strict=True)]
    ledger = cluster([a_node(name) for name in NODES], *storage, pods=others)
    said = room("NodeVolumeLimits", pods[0], ledger)
    for name in NODES:
        assert min(said[name], MOST) == fits("NodeVolumeLimits", pods, name, ledger)


def test_a_volume_that_is_shared_takes_room_once() -> None:
    shared = [a_claim("shared", volume="pv"), a_volume("pv"), a_claim("theirs", volume="pw"), a_volume("pw")]
    there = [a_mounting_pod("there", "shared", node="n0"), a_mounting_pod("other", "theirs", node="n1")]
    limits = [a_csi_node(name, {DRIVER: 1}) for name in NODES]
    ledger = cluster([a_node(name) for name in NODES], *shared, *limits, pods=there)
    said = room("NodeVolumeLimits", a_mounting_pod("new", "shared"), ledger)
    assert said == {"n0": PLENTY, "n1": 0, "n2": PLENTY}


@given(
    where=st.lists(st.sampled_from([*NODES, "zone", "anywhere"]), max_size=8),
    sizes=st.lists(st.sampled_from(["1Gi", "2Gi"]), min_size=8, max_size=8),
    each=st.integers(1, 2),
)
def test_binding_leaves_room_for_pods_that_find_volumes(where: list[str], sizes: list[str], each: int) -> None:
    pods, mine = claims(MOST, each, of="local", size="1Gi")
    reach: dict[str, Any] = {"zone": {ZONE: "a"}, "anywhere": None} | {name: {HOSTNAME: name} for name in NODES}
    volumes = [a_volume(f"v{i}", of="local", on=reach[at], size=sizes[i]) for i, at in enumerate(where)]
    nodes = [a_node("n0", zone="a"), a_node("n1", zone="a"), a_node("n2", zone="b")]
    ledger = cluster(nodes, LOCAL, *mine, *volumes)
    said = room("VolumeBinding", pods[0], ledger)
    for name in NODES:
        assert min(said[name], MOST) == fits("VolumeBinding", pods, name, ledger)


def test_new_volumes_take_no_room() -> None:
    pods, mine = claims(1, 1)
    assert room("VolumeBinding", pods[0], cluster([a_node("n")], a_class(), *mine)) == {"n": PLENTY}


@pytest.mark.parametrize(
    ("disk", "most"),
    [
        pytest.param({"gcePersistentDisk": {"pdName": "d"}}, 1, id="a writer is alone"),
        pytest.param({"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, PLENTY, id="readers are not"),
        pytest.param({"awsElasticBlockStore": {"volumeID": "v"}}, 1, id="an AWS disk has one user"),
    ],
)
def test_disks_of_the_pod_itself(disk: Any, most: int) -> None:
    pods = [a_mounting_pod(f"p{i}", disk) for i in range(MOST)]
    ledger = cluster([a_node("n")])
    assert room("VolumeRestrictions", pods[0], ledger) == {"n": most}
    assert fits("VolumeRestrictions", pods, "n", ledger) == min(most, MOST)
