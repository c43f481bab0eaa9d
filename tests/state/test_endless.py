"""Pods that never end by themselves, and how much of each node they hold."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.api.meta import OwnerReference
from kubenexus.base.arrays import AMOUNT_CAP
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import endless
from kubenexus.state.resources import CPU, MEMORY, PODS
from kubenexus.testing.builders import a_node, a_pod

LEAVING = "2026-11-16T08:00:00Z"


def owned(kind: str = "", deleted: str = "", **fields: Any) -> Pod:
    pod = a_pod("p", **fields)
    owners = [OwnerReference(kind=kind, name="owner", uid="owner", controller=True)] if kind else []
    meta = msgspec.structs.replace(pod.metadata, owner_references=owners, deletion_timestamp=deleted)
    return msgspec.structs.replace(pod, metadata=meta)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(owned("ReplicaSet", restart_policy="Always"), True, id="of a Deployment"),
        pytest.param(owned("StatefulSet", restart_policy="Always"), True, id="of a StatefulSet"),
        pytest.param(owned("DaemonSet", restart_policy="Always"), True, id="of a DaemonSet"),
        pytest.param(owned("Node", restart_policy="Always"), True, id="a static pod"),
        pytest.param(owned(restart_policy="Always"), True, id="of no controller"),
        pytest.param(owned("PyTorchJob", restart_policy="Always"), False, id="of a controller whose work ends"),
        pytest.param(owned("Job", restart_policy="OnFailure"), False, id="of a Job"),
        pytest.param(owned(restart_policy="Never"), False, id="never restarted"),
        pytest.param(owned("ReplicaSet", restart_policy="Always", active_deadline_seconds=60), False, id="a deadline"),
        pytest.param(owned("ReplicaSet", LEAVING, restart_policy="Always"), False, id="being deleted"),
        pytest.param(owned(), False, id="from no API server: it names no restart policy"),
    ],
)
def test_which_pods_have_no_end(pod: Pod, expected: bool) -> None:
    assert endless(pod) is expected


def held(ledger: Ledger) -> list[int]:
    row = ledger.nodes.row_of["n"]
    return [ledger.nodes.resources.endless.item(r, row) for r in (CPU, MEMORY, PODS)]


def test_what_they_hold_is_counted_until_they_go_or_are_to_go() -> None:
    ledger = Ledger()
    ledger.upsert_node(a_node("n", cpu=8, memory="8Gi"))
    ledger.upsert_pod(a_pod("task", cpu=1, node="n", restart_policy="Never"))
    web = owned("ReplicaSet", cpu=2, memory="1Gi", node="n", restart_policy="Always")
    empty = digest(ledger)
    ledger.upsert_pod(web)
    assert held(ledger) == [2000, 1 << 30, 1]
    ledger.upsert_pod(owned("ReplicaSet", LEAVING, cpu=2, memory="1Gi", node="n", restart_policy="Always"))
    assert held(ledger) == [0, 0, 0]
    ledger.remove_pod(web.key)
    assert digest(ledger) == empty


def test_an_attempt_that_is_taken_back_leaves_nothing() -> None:
    ledger = Ledger()
    ledger.upsert_node(a_node("n", cpu=8))
    web = a_pod("web", cpu=2, restart_policy="Always")
    ledger.assume(web, "n", 0.0)
    assert held(ledger) == [2000, 0, 1]
    ledger.forget(web.key)
    assert held(ledger) == [0, 0, 0]
    with ledger.transaction() as transaction:
        transaction.place(a_pod("try", restart_policy="Always"), "n", ledger.assume(a_pod("x"), "n", 0.0).footprint)
        assert held(ledger)[2] == 1
    assert held(ledger) == [0, 0, 0]


def test_a_sum_at_its_cap_is_counted_again_and_many_nodes_and_resources_are_no_matter() -> None:
    ledger = Ledger()
    ledger.upsert_node(a_node("n", cpu=8))
    for i in range(3):
        ledger.upsert_pod(a_pod(f"huge{i}", memory=str(AMOUNT_CAP), node="n", restart_policy="Always"))
    ledger.remove_pod("default/huge0")
    ledger.remove_pod("default/huge1")
    assert held(ledger) == [0, AMOUNT_CAP, 1]
    for i in range(100):
        ledger.upsert_node(a_node(f"more{i}", cpu=1, resources={f"example.com/r{i}": 1}))
    assert held(ledger) == [0, AMOUNT_CAP, 1]
