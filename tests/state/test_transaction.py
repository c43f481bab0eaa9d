"""Attempts: kept as a whole, or taken back to the last byte."""

import pytest

from kubenexus.api.core import Pod
from kubenexus.api.devices.device import Device, NodeDevices
from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.base.errors import KubeNexusError
from kubenexus.state.footprint import footprint_of
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodStage
from kubenexus.state.snapshot import StaleSnapshot
from kubenexus.state.transaction import Transaction
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.properties.table_content import bytes_of

HELD = a_pod("held", node="n1", cpu=1, memory="1Gi", ports=[80], requests={"example.com/gpu": 1})
WANTED = [
    a_pod("a", cpu="500m", ports=[80, 80, "10.0.0.1:443/UDP"]),
    a_pod("b", memory=str(2**62), requests={"example.com/gpu": 2, "nobody/offers-this": 1}),
    a_pod("c"),
]
DEVICES = NodeDevices((Device(name="gpu-0", memory=1 << 34), Device(name="gpu-1")))


@pytest.fixture
def ledger() -> Ledger:
    ledger = a_ledger([a_node("n1", resources={"example.com/gpu": 4}), a_node("n2")], [HELD])
    ledger.set_devices("n1", DEVICES)
    return ledger


def place(transaction: Transaction, pods: list[Pod], *nodes: str) -> None:
    """The pods on these nodes in turn, or all on `n1`."""
    for i, pod in enumerate(pods):
        transaction.place(
            pod,
            nodes[i % len(nodes)] if nodes else "n1",
            footprint_of(pod),
            (DeviceShare("gpu-0", share=100, memory=4),),
        )


def keep(ledger: Ledger, pods: list[Pod], node: str) -> None:
    with ledger.transaction() as transaction:
        place(transaction, pods, node)
        transaction.commit(0.0)


def test_an_attempt_that_is_not_kept_leaves_the_same_bytes(ledger: Ledger) -> None:
    before = (bytes_of(ledger), ledger.generation)
    with ledger.transaction() as transaction:
        place(transaction, WANTED)
        assert bytes_of(ledger) != before[0]
    assert (bytes_of(ledger), ledger.generation) == before


def test_an_attempt_that_fails_leaves_the_same_bytes(ledger: Ledger) -> None:
    before = bytes_of(ledger)
    with pytest.raises(KeyError, match="nowhere"), ledger.transaction() as transaction:
        place(transaction, WANTED, "n1", "n2", "nowhere")
    assert bytes_of(ledger) == before


def test_an_attempt_within_an_attempt_is_taken_back_alone(ledger: Ledger) -> None:
    before = bytes_of(ledger)
    with ledger.transaction() as outer:
        place(outer, WANTED[:1])
        between = bytes_of(ledger)
        with ledger.transaction() as inner:
            place(inner, WANTED[1:])
        assert bytes_of(ledger) == between
    assert bytes_of(ledger) == before


def test_a_kept_attempt_is_what_assuming_the_pods_one_by_one_is(ledger: Ledger) -> None:
    with ledger.transaction() as transaction:
        place(transaction, WANTED)
        kept = transaction.commit(7.0)
    assert {(record.key, record.stage, record.assumed_at) for record in kept} == {
        (f"default/{name}", PodStage.ASSUMED, 7.0) for name in "abc"
    }
    other = a_ledger([a_node("n1", resources={"example.com/gpu": 4}), a_node("n2")], [HELD])
    other.set_devices("n1", DEVICES)
    for pod in WANTED:
        other.assume(pod, "n1", 7.0, takes=(DeviceShare("gpu-0", share=100, memory=4),))
    assert bytes_of(ledger) == bytes_of(other)


@pytest.mark.parametrize("tried", [[HELD], [WANTED[0], WANTED[0]]], ids=["a pod that is there", "the same pod twice"])
def test_an_attempt_with_a_pod_that_counts_already_is_refused_as_a_whole(ledger: Ledger, tried: list[Pod]) -> None:
    before = bytes_of(ledger)
    with pytest.raises(KubeNexusError, match="already assumed or bound"):
        keep(ledger, [WANTED[2], *tried], "n2")
    assert bytes_of(ledger) == before
    assert ledger.pods.keys() == {"default/held"}


def test_what_a_later_member_sees_includes_the_earlier_ones(ledger: Ledger) -> None:
    row = ledger.nodes.row_of["n1"]
    with ledger.transaction() as transaction:
        place(transaction, [a_pod("a", cpu=2)])
        assert ledger.nodes.resources.used[0, row] == 3000


def test_a_snapshot_is_refused_once_the_ledger_has_moved_on(ledger: Ledger) -> None:
    snapshot = ledger.snapshot()
    assert snapshot.nodes.count == 2
    ledger.remove_pod("default/held")
    with pytest.raises(StaleSnapshot):
        assert snapshot.nodes


def test_reading_and_trying_leave_a_snapshot_valid(ledger: Ledger) -> None:
    snapshot = ledger.snapshot()
    with ledger.transaction() as transaction:
        place(transaction, WANTED)
    assert snapshot.nodes.count == 2


def test_pods_that_are_removed_on_trial_are_back_to_the_last_byte(ledger: Ledger) -> None:
    ledger.upsert_pod(a_pod("other", node="n1", cpu="250m", ports=[443], labels={"app": "web"}))
    keep(ledger, WANTED[:2], "n1")
    before, row = bytes_of(ledger), ledger.nodes.row_of["n1"]
    there = ledger.on_node("n1")
    slots = [record.slot for record in there]
    with ledger.transaction() as transaction:
        for record in there:
            transaction.remove_pod(row, record)
        assert ledger.nodes.resources.used[:, row].tolist() == [0] * len(ledger.nodes.resources.used)
        assert ledger.nodes.ports.on(row) == {}
        transaction.restore_pod(row, there[1])
        between = bytes_of(ledger)
        with ledger.transaction() as inner:
            inner.remove_pod(row, there[1])
            inner.add_pod(row, there[0])
        assert bytes_of(ledger) == between
    assert bytes_of(ledger) == before
    assert sorted(record.slot for record in there) == sorted(slots)


def test_a_carrier_that_is_removed_on_trial_leaves_the_marks_of_its_terms(ledger: Ledger) -> None:
    """Else each dry run would make jobs look changed, and the queue would try them again at once."""
    ledger.upsert_pod(a_pod("alone", node="n1", apart=["app=web per zone"], labels={"app": "web"}))
    row, terms = ledger.nodes.row_of["n1"], ledger.nodes.pods.terms
    before = terms.scope("default")
    for _ in range(2):
        with ledger.transaction() as transaction:
            for record in ledger.on_node("n1"):
                transaction.remove_pod(row, record)
            assert terms.scope("default") == ()
        assert terms.scope("default") == before
