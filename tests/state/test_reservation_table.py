"""The table of reserved capacity: what counts equals a naive sum after any steps, and no pod takes what is not its own.

The reference knows pods, entries and claims as plain dicts, and counts every node from zero.
"""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.reservations.request import ReservationOwner
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger
from kubenexus.state.reservations.table import ReservationRecord, ReservedCapacity
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger

NODES, CPU, GPU = ("n0", "n1", "n2"), 8, 4
PLANNER = Planner(profile_plugins())

amounts = st.tuples(st.integers(0, 5), st.integers(0, 4)).filter(any)
entries = st.lists(st.tuples(st.sampled_from(NODES), amounts), min_size=1, max_size=3)
steps = st.one_of(
    st.tuples(st.just("reserve"), st.sampled_from("xy"), st.sampled_from(("a", "b")), entries),
    st.tuples(st.just("release"), st.sampled_from("xy")),
    st.tuples(st.just("pod"), st.sampled_from(("a", "b", "c")), amounts),
    st.tuples(st.just("forget"), st.integers(0, 9)),
    st.tuples(st.just("bind"), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("node"), st.sampled_from(NODES)),
)


def _node(name: str) -> Any:
    return a_node(name, cpu=CPU, gpu=GPU)


def _free(ledger: Ledger, node: str, name: str) -> int:
    resources, row = ledger.nodes.resources, ledger.nodes.row_of[node]
    r = resources.index[name]
    return int(resources.alloc[r, row] - resources.used[r, row])


class Machine:
    """The ledger, the pods on it, and what every step must leave true."""

    def __init__(self) -> None:
        self.ledger, self.pods, self.made = a_ledger([_node(name) for name in NODES]), dict[str, Any](), 0

    def step(self, what: str, *said: Any) -> None:
        getattr(self, f"_{what}")(*said)
        self.check()

    def _reserve(self, key: str, owner: str, wanted: list[tuple[str, tuple[int, int]]]) -> None:
        if key in self.ledger.reservations.by_key:
            return
        found: dict[str, ReservedCapacity] = {}
        for i, (node, (cpu, gpu)) in enumerate(wanted):
            taken = [each for each in found.values() if each.node == node]
            if node not in self.ledger.nodes.row_of:
                return
            for name, amount in (("cpu", 1000 * cpu), ("nvidia.com/gpu", gpu)):
                if amount + sum(dict(each.amounts).get(name, 0) for each in taken) > _free(self.ledger, node, name):
                    return
            sums = (("cpu", 1000 * cpu), ("nvidia.com/gpu", gpu))
            found[f"e{i}"] = ReservedCapacity(f"e{i}", key, node, tuple([each for each in sums if each[1]]))
        self.ledger.reserve(ReservationRecord(key, ReservationOwner(frozenset({owner})), found))

    def _release(self, key: str) -> None:
        self.ledger.release_reservation(key)

    def _pod(self, namespace: str, wanted: tuple[int, int]) -> None:
        self.made += 1
        pod = a_pod(f"p{self.made}", namespace=namespace, cpu=wanted[0], gpu=wanted[1])
        before = self.left_for_others(namespace)
        job = Job.of(pod)
        decision = PLANNER.decide(job, self.ledger.snapshot(), 0.0)
        if decision.placed:
            commit(decision, job, self.ledger, 0.0)
            self.pods[pod.key] = pod
        assert self.left_for_others(namespace) == before

    def _forget(self, number: int) -> None:
        self.ledger.forget(self._some(number))

    def _bind(self, number: int) -> None:
        key = self._some(number)
        record = self.ledger.pods.get(key)
        if record is not None:
            pod = self.pods[key]
            labels = {"bound": "yes"}  # so that the record is not merely updated
            amounts = dict(record.footprint.amounts)
            cpu, gpu = amounts.get("cpu", 0) // 1000, amounts.get("nvidia.com/gpu", 0)
            meta = pod.metadata
            self.ledger.upsert_pod(
                a_pod(
                    meta.name, namespace=meta.namespace, cpu=cpu, gpu=gpu, node=record.node, labels=labels, priority=1
                )
            )

    def _delete(self, number: int) -> None:
        self.ledger.remove_pod(self._some(number))

    def _node(self, name: str) -> None:
        if name in self.ledger.nodes.row_of:
            self.ledger.remove_node(name)
        else:
            self.ledger.upsert_node(_node(name))

    def _some(self, number: int) -> str:
        keys = sorted(self.pods)
        return keys[number % len(keys)] if keys else ""

    # --- laws -------------------------------------------------------------------------------------------------------

    def left_for_others(self, namespace: str) -> dict[tuple[str, str], dict[str, int]]:
        """What is kept for owners of other namespaces."""
        records = self.ledger.reservations.by_key.items()
        return {
            (key, name): entry.left()
            for key, record in records
            if namespace not in record.owner.namespaces
            for name, entry in record.entries.items()
        }

    def check(self) -> None:
        resources, ledger = self.ledger.nodes.resources, self.ledger
        for node, row in ledger.nodes.row_of.items():
            here = [record.footprint.amounts for record in ledger.pods.values() if record.node == node]
            kept = [
                entry.left()
                for record in ledger.reservations.by_key.values()
                for entry in record.entries.values()
                if entry.node == node
            ]
            for name in ("cpu", "nvidia.com/gpu"):
                used = sum(dict(each).get(name, 0) for each in here) + sum(each.get(name, 0) for each in kept)
                assert resources.used[resources.index[name], row] == used
                assert used <= resources.alloc[resources.index[name], row]  # never over-booked
            assert resources.used[resources.index["pods"], row] == len(here) + sum(1 for each in kept if each)
            assert ledger.audit(_node(node)) == []
        for record in ledger.reservations.by_key.values():
            for entry in record.entries.values():
                assert set(entry.claims) <= set(ledger.pods)
                assert all(pod.partition("/")[0] in record.owner.namespaces for pod in entry.claims)
                assert all(amount > 0 for amount in entry.left().values())


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(steps, max_size=25))
def test_reserved_capacity_is_never_over_booked_and_never_taken_by_others(story: list[tuple[Any, ...]]) -> None:
    machine = Machine()
    for what, *said in story:
        machine.step(what, *said)
    bare = a_ledger([_node(name) for name in machine.ledger.nodes.row_of])
    for key in list(machine.ledger.pods):
        machine.ledger.remove_pod(key)
    assert digest(machine.ledger) == digest(bare)
    for key in list(machine.ledger.reservations.by_key):
        machine.ledger.release_reservation(key)
    assert not np.any(machine.ledger.nodes.resources.used)
