"""Sums beyond the cap are kept exactly, so no removal counts a row again; ports are found by row."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubenexus.state.audit as audit_module
from kubenexus.base.arrays import AMOUNT_CAP
from kubenexus.state.audit import Miscount
from kubenexus.state.digest import digest
from kubenexus.state.footprint import footprint_of
from kubenexus.state.ledger import Ledger
from kubenexus.state.resources import CPU, ENDLESS, MEMORY, NONZERO, USED, ResourceColumns
from kubenexus.testing.builders import a_node, a_pod
from tests.properties.table_content import bytes_of

NODES = (a_node("n0", cpu=8, resources={"example.com/a": 4}), a_node("n1", cpu=8))
AMOUNTS = [0, 1, 7, AMOUNT_CAP // 2, AMOUNT_CAP - 1, AMOUNT_CAP, 2 * AMOUNT_CAP]
Event = tuple[str, int, int, int]
events = st.lists(
    st.tuples(
        st.sampled_from(["bound", "bound", "gone", "tried", "node"]),
        st.integers(0, 5),
        st.integers(0, 1),
        st.sampled_from(AMOUNTS),
    ),
    max_size=30,
)


class NeverRecounting(Ledger):
    """A ledger that counts a row again only when its node comes back."""

    def _remove(self, record: Any, *, leaves: bool = True) -> set[int]:
        self._recount = pytest.fail  # type: ignore[method-assign, assignment]
        try:
            return super()._remove(record, leaves=leaves)
        finally:
            del self._recount


def a_cluster() -> Ledger:
    ledger = NeverRecounting()
    for node in NODES:
        ledger.upsert_node(node)
    return ledger


def a_large_pod(number: int, node: int, amount: int) -> Any:
    return a_pod(
        f"p{number}",
        memory=str(amount),
        ports=[80, 81 + number],
        node=f"n{node}",
        restart_policy="Always" if number % 2 else "Never",
        requests={"example.com/a": str(amount)},
    )


def assert_sums(ledger: Ledger) -> None:
    resources = ledger.nodes.resources
    for name, row in ledger.nodes.row_of.items():
        pods = ledger.on_node(name)
        for table, column in ((USED, resources.used), (NONZERO, resources.nonzero), (ENDLESS, resources.endless)):
            counted = [pod for pod in pods if pod.endless or table != ENDLESS]
            amounts = [dict(pod.footprint.amounts).get("memory", 0) for pod in counted]
            exact = sum(pod.footprint.nonzero_memory for pod in counted) if table == NONZERO else sum(amounts)
            assert resources.exact_sums(table, row)[MEMORY] == exact
            assert column.item(MEMORY, row) == min(exact, AMOUNT_CAP)
    assert [found for node in NODES for found in ledger.audit(node)] == []


@given(happened=events)
def test_no_removal_counts_a_row_again_and_no_sum_is_lost(happened: list[Event]) -> None:
    ledger = a_cluster()
    for kind, number, node, amount in happened:
        pod = a_large_pod(number, node, amount)
        if kind == "bound":
            ledger.upsert_pod(pod)
        elif kind == "gone":
            ledger.remove_pod(pod.key)
        elif kind == "node":
            ledger.remove_node(f"n{node}")
            ledger.upsert_node(NODES[node])
        else:
            before = bytes_of(ledger)
            with ledger.transaction() as transaction:
                for i in range(3):
                    transaction.place(pod, f"n{(node + i) % 2}", footprint_of(pod))
            assert bytes_of(ledger) == before
        assert_sums(ledger)
    for number in range(6):
        ledger.remove_pod(f"default/p{number}")
    empty = a_cluster()
    assert digest(ledger) == digest(empty)
    assert bytes_of(ledger)["sums beyond the cap"] == {}
    assert bytes_of(ledger)["port tables"] == ({}, {})


def test_a_resource_that_gets_the_column_of_another_begins_at_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    resources = ResourceColumns(4)
    monkeypatch.setattr("kubenexus.state.resources.MAX_RESOURCES", len(resources.index) + 1)
    resources.set_allocatable(0, (("example.com/a", 4),))
    footprint = footprint_of(a_pod("p", requests={"example.com/a": str(AMOUNT_CAP)}))
    resources.add_footprint(0, footprint, +1)
    resources.add_footprint(0, footprint, +1)
    r = resources.index["example.com/a"]
    assert resources.exact_sums(USED, 0)[r] == 2 * AMOUNT_CAP
    resources.set_allocatable(0, ())
    resources.set_allocatable(0, (("example.com/b", 4),))
    assert (resources.index["example.com/b"], resources.exact_sums(USED, 0)[r]) == (r, 0)
    assert resources._exact_sums == {}


def test_the_audit_finds_a_wrong_sum_beyond_the_cap() -> None:
    ledger = a_cluster()
    for i in range(3):
        ledger.upsert_pod(a_large_pod(i, 0, AMOUNT_CAP))
    resources = ledger.nodes.resources
    resources._exact_sums[USED, MEMORY, 0] += 1
    held = 3 * AMOUNT_CAP
    assert ledger.audit(NODES[0]) == [Miscount("n0", "memory used", held + 1, held)]
    assert_sums(ledger)
    assert resources.used.item(CPU, 0) == 0


def test_ports_of_a_row_are_found_without_those_of_others() -> None:
    ledger = a_cluster()
    for i in range(4):
        ledger.upsert_pod(a_large_pod(i, i % 2, 0))
    ports = ledger.nodes.ports
    on = {row: {port.number: count for port, count in ports.on(row).items()} for row in range(2)}
    assert on == {0: {80: 2, 81: 1, 83: 1}, 1: {80: 2, 82: 1, 84: 1}}
    ports._rows = {key: held for key, held in ports._rows.items() if key[1] != 80}
    assert 80 not in {port.number for port, count in ports.on(0).items() if count}, "what conflicts() reads is audited"
    ledger.remove_pod("default/p0")
    ledger.remove_node("n0")
    assert ports.on(0) == {}


def test_a_row_with_any_number_of_ports_is_not_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = a_cluster()
    ledger.upsert_pod(a_pod("many", ports=range(1, audit_module.MAX_AUDITED + 2), node="n0"))
    ledger.upsert_pod(a_pod("few", ports=[80], node="n1"))
    recount, audited = audit_module.recount_row, list[int]()

    def recorded(nodes: Any, row: int, *rest: Any) -> Any:
        audited.append(row)
        return recount(nodes, row, *rest)

    monkeypatch.setattr(audit_module, "recount_row", recorded)
    assert [ledger.audit(node) for node in NODES] == [[], []]
    assert audited == [1]
