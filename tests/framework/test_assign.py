"""What a pod takes besides room: named by a rule, applied by journal and ledger, taken back to the last byte."""

from collections.abc import Mapping
from typing import Any

import pytest

from kubenexus.api.devices.device import Device, NodeDevices
from kubenexus.api.devices.device_share import WHOLE, DeviceShare
from kubenexus.framework.job import Assignment, Job
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.place_pod import MAX_ASSIGN_TRIES
from kubenexus.state.devices.columns import DRIVER_MEMORY
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.framework.rules import Rule, lineup_with, scoring

BUSY = "no device was whole"


class WholeDevice(Rule):
    """Takes the first device of a node of which nothing is taken."""

    name = "WholeDevice"

    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        devices = nodes.columns.devices
        for slot, device in enumerate(devices.of_row(row).node.devices):
            if devices.share[slot, row] == WHOLE:
                note = ("example.com/device", device.name)
                return Assignment(device_shares=(DeviceShare(device.name, WHOLE, memory=5),), annotations=(note,))
        return Verdict(Code.UNSCHEDULABLE, (BUSY,))


class Notes(Rule):
    """A second one, which takes nothing and only writes."""

    name = "Notes"

    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        return Assignment(annotations=(("example.com/note", "hello"),))


# The fuller a node, the better: so the first choice runs out of devices before the second is looked at.
Packing = scoring(lambda nodes: nodes.used("pods"))


def a_cluster(devices: Mapping[str, int]) -> tuple[Ledger, Planner]:
    ledger = a_ledger([a_node(name) for name in devices])
    for name, count in devices.items():
        cards = tuple(Device(name=f"{name}-gpu{i}", memory=DRIVER_MEMORY + 80) for i in range(count))
        ledger.set_devices(name, NodeDevices(cards))
    return ledger, Planner(lineup_with(Packing, WholeDevice, Notes))


def place(ledger: Ledger, planner: Planner, *names: str, minimum: int = 1) -> Any:
    job = Job(f"default/{names[0]}", tuple(a_pod(name, cpu=1) for name in names), minimum)
    decision = planner.decide(job, ledger.snapshot(), 0.0)
    if decision.placed:
        commit(decision, job, ledger, 0.0)
    return decision


def shares(ledger: Ledger, node: str) -> list[int]:
    row = ledger.nodes.row_of[node]
    return ledger.nodes.devices.share[: len(ledger.nodes.devices.of_row(row).node.devices), row].tolist()


def test_a_rule_names_the_devices_and_the_ledger_takes_them() -> None:
    ledger, planner = a_cluster({"n1": 2})
    decision = place(ledger, planner, "a")
    assert decision.placements[0].assignment == Assignment(
        device_shares=(DeviceShare("n1-gpu0", WHOLE, 5),),
        annotations=(("example.com/device", "n1-gpu0"), ("example.com/note", "hello")),
    )
    assert ledger.pods["default/a"].device_shares == (DeviceShare("n1-gpu0", WHOLE, 5),)
    assert shares(ledger, "n1") == [0, WHOLE]
    assert ledger.nodes.devices.memory[0, 0] == 75


def test_the_next_pod_gets_the_next_device() -> None:
    ledger, planner = a_cluster({"n1": 2})
    taken = [place(ledger, planner, name).placements[0].assignment.device_shares[0].device for name in "ab"]
    assert taken == ["n1-gpu0", "n1-gpu1"]
    assert shares(ledger, "n1") == [0, 0]


def test_a_verdict_sends_the_pod_to_the_next_best_node() -> None:
    ledger, planner = a_cluster({"n1": 1, "n2": 1})
    first = place(ledger, planner, "a").placements[0].node
    second = place(ledger, planner, "b").placements[0].node
    assert {first, second} == {"n1", "n2"}, "the fuller node scores higher, but has no device left"


def test_when_no_node_has_one_left_the_reasons_are_counted_as_those_of_filters_are() -> None:
    ledger, planner = a_cluster({"n1": 1, "n2": 0})
    assert place(ledger, planner, "a").placements[0].node == "n1"
    refused = place(ledger, planner, "b")
    assert refused.code is Code.UNSCHEDULABLE
    assert refused.sentence() == f"0/2 nodes are available: 2 {BUSY}."
    assert "WholeDevice" in refused.diagnosis.refused_by


def test_deciding_takes_nothing() -> None:
    ledger, planner = a_cluster({"n1": 2})
    before = digest(ledger)
    planner.decide(Job.of(a_pod("a")), ledger.snapshot(), 0.0)
    assert digest(ledger) == before


def test_members_of_a_gang_see_what_the_ones_before_them_took() -> None:
    ledger, planner = a_cluster({"n1": 2, "n2": 1})
    decision = place(ledger, planner, "a", "b", "c", minimum=3)
    taken = {(p.node, p.assignment.device_shares[0].device) for p in decision.placements}
    assert taken == {("n1", "n1-gpu0"), ("n1", "n1-gpu1"), ("n2", "n2-gpu0")}
    assert (shares(ledger, "n1"), shares(ledger, "n2")) == ([0, 0], [0])


def test_a_gang_that_does_not_fit_gives_every_byte_back() -> None:
    ledger, planner = a_cluster({"n1": 2, "n2": 1})
    columns = ledger.nodes
    before = digest(ledger), columns.devices.share.tobytes(), columns.devices.memory.tobytes()
    assert not place(ledger, planner, "a", "b", "c", "d", minimum=4).placed
    assert (digest(ledger), columns.devices.share.tobytes(), columns.devices.memory.tobytes()) == before


def test_a_failed_bind_gives_the_device_back() -> None:
    ledger, planner = a_cluster({"n1": 1})
    empty = digest(ledger)
    place(ledger, planner, "a")
    ledger.forget("default/a")
    assert shares(ledger, "n1") == [WHOLE]
    assert digest(ledger) == empty


def test_a_confirmed_bind_keeps_it_and_a_deleted_pod_gives_it_back() -> None:
    ledger, planner = a_cluster({"n1": 1})
    place(ledger, planner, "a")
    ledger.upsert_pod(a_pod("a", cpu=1, node="n1"))
    assert shares(ledger, "n1") == [0]
    ledger.remove_pod("default/a")
    assert shares(ledger, "n1") == [WHOLE]


def test_devices_described_again_are_still_taken() -> None:
    ledger, planner = a_cluster({"n1": 1})
    place(ledger, planner, "a")
    ledger.set_devices("n1", NodeDevices((Device(name="n1-gpu0", healthy=False), Device(name="n1-gpu1"))))
    assert shares(ledger, "n1") == [0, WHOLE]
    ledger.remove_node("n1")
    ledger.upsert_node(a_node("n1"))
    assert shares(ledger, "n1") == [0, WHOLE]


@pytest.mark.parametrize("nodes", [MAX_ASSIGN_TRIES + 30])
def test_the_planner_does_not_try_for_ever(nodes: int) -> None:
    asked: list[int] = []

    class Never(Rule):
        name = "Never"

        def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
            asked.append(row)
            return Verdict(Code.UNSCHEDULABLE, ("never",))

    ledger = a_ledger([a_node(f"n{i}") for i in range(nodes)])
    decision = Planner(lineup_with(Never)).decide(Job.of(a_pod("a")), ledger.snapshot(), 0.0)
    assert decision.code is Code.UNSCHEDULABLE
    assert len(asked) == len(set(asked)) == MAX_ASSIGN_TRIES
    assert f"{MAX_ASSIGN_TRIES} never" in decision.sentence()
