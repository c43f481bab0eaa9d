"""Who may keep room from whom, for how long, and what is said of it: several gangs at once, of several tenants."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache, ClassifiedPod
from kubenexus.framework.job import SINGLE_POD_VIEW, Job, JobView
from kubenexus.plan.gang.reservation import MAX_CLASSES
from kubenexus.queue.queued_job import QueueState
from kubenexus.state.nodes import NodeColumns
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import on_node
from tests.api.gangs.builders import a_member
from tests.app.decision_fixture import PROFILE, DecisionFixture
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

SECRET = "codename-falcon"
RACK = "network.kubenexus.io/rack-id"


def gang(name: str, size: int, **fields: Any) -> list[Pod]:
    return [a_member(f"{name}-{i}", name, size, **fields) for i in range(size)]


def full(fixture: DecisionFixture, *, busy: int = 1, nodes: int = 2, **fields: Any) -> None:
    """Nodes of four CPUs, some of them taken."""
    fixture.nodes(*(a_node(f"n{i}", cpu=4) for i in range(nodes)))
    fixture.come(*(a_pod(f"busy{i}", cpu=4, **fields) for i in range(busy)))
    fixture.work()


def holder(fixture: DecisionFixture) -> str:
    held = fixture.reservations.held(PROFILE)
    return "" if held is None else held.display_name


# --- priority -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("minutes", [0, 1, 20, 600])
def test_no_room_is_kept_from_more_priority_however_long_a_gang_has_waited(minutes: int) -> None:
    fixture = DecisionFixture()
    full(fixture)
    fixture.come(*gang("one", 2, cpu=4), *gang("two", 3, cpu=3))
    fixture.work()
    fixture.clock.advance(60.0 * minutes)
    fixture.work()
    for i in range(4):
        fixture.come(a_pod(f"urgent{i}", cpu=1, priority=1))
        fixture.work()
    assert len(fixture.where("urgent")) == 4


def test_the_gang_of_the_highest_priority_keeps_room_however_long_others_have_waited() -> None:
    fixture = DecisionFixture()
    full(fixture)
    fixture.come(*gang("old", 2, cpu=4))
    fixture.work()
    assert holder(fixture) == "default/old"
    fixture.clock.advance(240.0)
    fixture.work()
    fixture.come(*gang("important", 2, cpu=4, priority=50))
    fixture.work()
    fixture.come(a_pod("late", cpu=1))
    fixture.work()
    assert holder(fixture) == "default/important"
    assert not fixture.where("late")


# --- for how long -------------------------------------------------------------------------------------------------


class Tenants:
    """Six GPUs, of which two stay taken, and a stream of small jobs. Tells for which part of the time they waited."""

    def __init__(self) -> None:
        self.fixture, self.number = DecisionFixture(), 0
        self.fixture.nodes(a_node("n", cpu=6))
        self.fixture.come(a_pod("stays", cpu=2, restart_policy="Never"))
        self.fixture.work()

    def gang(self, size: int, namespace: str = "default") -> list[Pod]:
        self.number += 1
        pods = gang(f"g{self.number}", size, cpu=1, namespace=namespace, restart_policy="Never")
        self.fixture.come(*pods)
        return pods

    def hours(self, count: float, step: float, act: Any = lambda: None) -> float:
        """The share of four CPUs that was idle while small jobs waited."""
        idle = looks = 0
        end = self.fixture.clock.now() + 3600.0 * count
        while self.fixture.clock.now() < end:
            act()
            running = self.fixture.where("small")
            self.fixture.end(*running)
            self.number += 1
            self.fixture.come(*(a_pod(f"small{self.number}-{i}", cpu=1, restart_policy="Never") for i in range(4)))
            self.fixture.work()
            placed, waiting = len(self.fixture.where("small")), self.small_waiting()
            idle += min(4 - placed, waiting)
            looks += 4
            self.fixture.end(*(name for name in self.names("small") if name not in self.fixture.where("small")))
            self.fixture.clock.advance(step)
        return idle / looks

    def names(self, prefix: str) -> list[str]:
        return [pod.metadata.name for pod in self.fixture.pods.values() if pod.metadata.name.startswith(prefix)]

    def small_waiting(self) -> int:
        return len(self.names("small")) - len(self.fixture.where("small"))


def test_several_gangs_that_come_no_closer_share_one_account() -> None:
    tenants = Tenants()
    for size in (5, 6, 5):
        tenants.gang(size)
    assert 0.0 < tenants.hours(2, 30.0) <= 0.25


@pytest.mark.parametrize(
    ("every", "namespaces"),
    [
        pytest.param(100.0, 1, id="a new name every hundred seconds"),
        pytest.param(290.0, 1, id="a new name just before its turn is over"),
        pytest.param(290.0, 50, id="each of another namespace"),
    ],
)
def test_a_stream_of_new_gangs_gets_no_more_than_one_gang(every: float, namespaces: int) -> None:
    tenants, mine, made = Tenants(), list[Pod](), [0.0, 0]

    def renew() -> None:
        nonlocal mine
        now = tenants.fixture.clock.now()
        if now >= made[0]:
            tenants.fixture.end(*(pod.key for pod in mine))
            made[0], made[1] = now + every, made[1] + 1
            mine = tenants.gang(5 + int(made[1]) % 2, f"tenant-{int(made[1]) % namespaces}")

    assert tenants.hours(2, 30.0, renew) <= 0.25


@pytest.mark.parametrize(
    ("minimum", "cpu", "driver"),
    [
        pytest.param(2, 1, 1, id="it needs fewer members"),
        pytest.param(4, 1, 1, id="it needs one member less"),
        pytest.param(5, 0.5, 1, id="its members ask for less"),
        pytest.param(4, 1, 2, id="it loses the one that asks for most"),
    ],
)
def test_a_gang_that_shrinks_until_it_is_placed_had_its_turn_in_vain(minimum: int, cpu: float, driver: int) -> None:
    """The tenant has a dozen of them: without a rest the next one would hold at once, for the whole of each hour."""
    tenants = Tenants()
    fixture, began, shrunk = tenants.fixture, [("", 0.0)], [0]
    for _ in range(12):
        name = tenants.gang(5, "mallory")[0].metadata.name.partition("-")[0]
        fixture.come(a_member(f"{name}-0", name, 5, cpu=driver, namespace="mallory", restart_policy="Never"))

    def shrink() -> None:
        held, now = fixture.reservations.held(PROFILE), fixture.clock.now()
        if held is None or held.gang != began[0][0]:
            began[0] = (held.gang if held else "", now)
        elif now >= began[0][1] + 280.0:
            shrunk[0] += 1
            name = held.display_name.partition("/")[2]
            for i in range(5):
                fixture.end(f"mallory/{name}-{i}")
            less = [a_member(f"{name}-{i}", name, minimum, cpu=cpu, namespace="mallory") for i in range(minimum)]
            fixture.come(*less)
            fixture.work()
            assert len(fixture.where(f"{name}-")) == minimum
            fixture.end(*(pod.key for pod in less))

    assert 0.0 < tenants.hours(2, 20.0, shrink) <= 0.25
    assert shrunk[0] > 2


def test_a_gang_that_is_placed_as_it_was_costs_no_rest_whoever_else_it_has() -> None:
    """More members than it needs do not count, whether they are placed or not."""
    fixture = DecisionFixture()
    full(fixture)
    fixture.come(*(a_member(f"llama-{i}", "llama", 2, cpu=4) for i in range(3)))
    fixture.work()
    fixture.come(a_pod("late", cpu=1))
    fixture.work()
    fixture.clock.advance(200.0)
    fixture.end("busy0")
    fixture.work()
    assert len(fixture.where("llama")) == 2
    fixture.come(*gang("next", 2, cpu=4, priority=1))
    fixture.work()
    assert holder(fixture) == "default/next"


def test_after_a_turn_in_vain_another_tenants_gang_has_the_next() -> None:
    fixture = DecisionFixture(patience=300.0)
    full(fixture)
    fixture.come(*gang("hopeless", 2, cpu=4, namespace="one"))
    fixture.work()
    fixture.clock.advance(1.0)
    fixture.come(*gang("second", 2, cpu=4, namespace="one"), *gang("other", 2, cpu=3, namespace="two"))
    fixture.come(a_pod("late", cpu=1, namespace="three"))
    fixture.work()
    assert holder(fixture) == "one/hopeless"
    fixture.clock.advance(300.0)
    fixture.work()
    assert holder(fixture) == ""
    fixture.clock.advance(1350.0)
    fixture.end("three/late")
    fixture.come(a_pod("tiny", cpu=1, priority=-1))
    fixture.nodes(a_node("n0", cpu=4, labels={"changed": "yes"}))  # all are tried again
    fixture.work()
    assert holder(fixture) == "two/other"


def test_a_gang_starts_soon_whose_room_becomes_free_bit_by_bit_though_that_takes_longer_than_one_patience() -> None:
    fixture = DecisionFixture(patience=300.0)
    fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(12)))
    fixture.come(*(a_pod(f"busy{i}", cpu=1) for i in range(12)))
    fixture.work()
    fixture.come(*gang("llama", 12, cpu=1))
    fixture.work()
    for i in range(12):
        fixture.clock.advance(280.0)
        fixture.come(a_pod(f"late{i}", cpu=1))
        fixture.end(f"busy{i}")
        fixture.work()
    fixture.clock.advance(30.0)  # the backoff of its last refusal
    fixture.work()
    assert len(fixture.where("llama")) == 12
    assert not fixture.where("late")


# --- pods without an end ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        pytest.param("Always", False, id="a service has no end"),
        pytest.param("OnFailure", True, id="a task has one"),
    ],
)
def test_room_that_services_hold_is_not_waited_for(policy: str, kept: bool) -> None:
    fixture = DecisionFixture()
    full(fixture, restart_policy=policy)
    fixture.come(*gang("llama", 2, cpu=4))
    fixture.work()
    fixture.come(a_pod("late", cpu=1))
    fixture.work()
    assert (holder(fixture) != "") == kept
    assert bool(fixture.where("late")) != kept
    assert ("pods that do not end by themselves hold that room" in fixture.why("gang/llama")) != kept


def test_a_reservation_ends_when_a_service_takes_the_room() -> None:
    fixture = DecisionFixture()
    full(fixture)
    fixture.come(*gang("llama", 2, cpu=4))
    fixture.work()
    fixture.come(a_pod("web", cpu=1, priority=1, restart_policy="Always"), a_pod("late", cpu=1))
    fixture.work()
    fixture.end("busy0")  # so that the gang is tried again
    fixture.clock.advance(30.0)
    fixture.work()
    assert holder(fixture) == ""
    assert fixture.where("late")


# --- who is woken -------------------------------------------------------------------------------------------------


def test_who_was_held_back_is_tried_again_when_others_have_taken_the_room() -> None:
    """A gang needs both nodes, and keeps the one that is free. A pod of another scheduler takes half of it: no member
    fits there any more, and the other half is of no use to the gang."""
    fixture = DecisionFixture()
    fixture.nodes(a_node("n0", cpu=2), a_node("n1", cpu=2))
    fixture.come(a_pod("busy", cpu=2, node="n1"), *gang("llama", 2, cpu=2))
    fixture.work()
    fixture.come(a_pod("late", cpu=1))
    fixture.work()
    assert fixture.queue.state("default/late") is QueueState.UNSCHEDULABLE
    fixture.handlers.on_pod_update(on_node(a_pod("foreign", cpu=1, scheduler_name="other"), "n0"))
    fixture.clock.advance(1.0)  # its backoff
    fixture.work()
    assert fixture.where("late") == {"late": "n0"}


def test_an_older_pod_that_comes_out_from_behind_its_gate_does_not_share_the_refusal_of_younger_ones() -> None:
    fixture = DecisionFixture()
    full(fixture)
    old = a_pod("old", cpu=1, gates=["wait"])
    fixture.come(old)
    fixture.clock.advance(10.0)
    fixture.come(*gang("llama", 8, cpu=1))
    fixture.work()
    fixture.clock.advance(10.0)
    fixture.come(a_pod("young", cpu=1))
    fixture.work()
    assert not fixture.where("young")
    free = msgspec.structs.replace(old, spec=msgspec.structs.replace(old.spec, scheduling_gates=[]))
    fixture.come(free)
    fixture.work()
    assert fixture.where("old")
    assert not fixture.where("young"), "it still comes after the gang"


# --- what is said -------------------------------------------------------------------------------------------------


def test_the_reason_names_a_gang_of_the_same_namespace_only() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        labels = [{RACK: f"secret-{i}"} for i in range(2)]
        fixture.nodes(*(a_node(f"n{i}", cpu=4, labels=labels[i]) for i in range(2)))
        ours: dict[str, Any] = {"scheduler_name": "packing"}
        fixture.pods(on_node(a_pod("busy", cpu=4), "n0"))
        notes = {"kueue.x-k8s.io/podset-preferred-topology": "rack"}
        fixture.pods(*gang(SECRET, 2, cpu=4, namespace="merger", annotations=notes, **ours))
        await fixture.work()
        fixture.clock.advance(1.0)
        fixture.pods(*(a_pod("late", cpu=1, namespace=namespace, **ours) for namespace in ("merger", "else")))
        await fixture.work()
        told = fixture.told()
        own, foreign = (
            [each for each in told if "is kept for" in each and word in each] for word in (SECRET, "a gang")
        )
        assert len(own) == len(foreign) == 1, told
        notes_of_others = [each for each in told if "late" in each and each not in own]
        assert not any("merger" in each or "secret-" in each or SECRET in each for each in notes_of_others)

    scheduler_test(life)


# --- what it costs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sorts", [2, 8, 60])
def test_a_decision_looks_at_a_few_sorts_of_the_gangs_members_however_many_there_are(
    sorts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = DecisionFixture()
    full(fixture, busy=3, nodes=4)
    fixture.come(*(a_member(f"m{i}", "many", sorts, cpu=f"{3000 + i}m") for i in range(sorts)))
    fixture.work()
    assert holder(fixture) == "default/many"
    looked, look = list[str](), ClassCache.lookup

    def counted(
        class_cache: ClassCache, pod: Pod, columns: NodeColumns, job: JobView = SINGLE_POD_VIEW
    ) -> ClassifiedPod:
        looked.append(pod.key)
        return look(class_cache, pod, columns, job)

    monkeypatch.setattr(ClassCache, "lookup", counted)
    snapshot, reserved = fixture.ledger.snapshot(), fixture.reservations.held(PROFILE)
    counts = []
    for i in range(3):
        looked.clear()
        assert not fixture.planner.decide(Job.of(a_pod(f"late{i}", cpu=2)), snapshot, 0.0, reserved).placed
        counts.append(sum("/m" in key for key in looked))
    assert counts[0] <= 4 * MAX_CLASSES
    assert counts[1] == counts[2] <= 3 * MAX_CLASSES, "what was counted before anything is placed is counted once"
