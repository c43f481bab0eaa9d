"""Whatever frees something wakes those it may help: no pod stays parked that a decision would place now.

Stories of a few events on a few nodes, drawn from a seed. The flush after five minutes would hide what is missing, so a
story is shorter than that.
"""

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kubenexus.api.codec import Unreadable
from kubenexus.api.core import Pod, TopologySpreadConstraint
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector
from kubenexus.api.workloads import Namespace
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod, a_pod_term
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

NODES = ("n1", "n2", "n3")
MOST_WAITING = 12
SEEDS = (0, 1, 2, 22, 30, 32, 62, 63)  # the last five each found an event that was missing


class Story:
    """What may happen, each with what is drawn for it."""

    def __init__(self, fixture: SchedulerFixture, rng: random.Random) -> None:
        self.fixture, self.rng, self.number = fixture, rng, 0
        self.strange: dict[str, Unreadable] = {}
        self.steps: list[Callable[[], None]] = [
            self.a_node_comes,
            self.a_node_goes,
            *[self.a_pod_waits] * 6,
            *[self.a_pod_runs] * 2,
            self.a_pod_ends,
            self.a_pod_changes,
            self.a_pod_leaves,
            self.a_pod_cannot_be_read,
            self.a_pod_can_be_read_again,
            self.a_strange_pod_ends,
            self.a_nomination_moves,
            self.a_pod_is_bound_elsewhere,
            self.a_namespace_changes,
        ]

    # --- nodes ----------------------------------------------------------------------------------------------------

    def a_node_comes(self) -> None:
        """Or changes."""
        draw = self.rng
        self.fixture.nodes(
            a_node(
                draw.choice(NODES),
                cpu=draw.choice([1, 2, 4]),
                zone=draw.choice(["a", "b"]),
                labels={"pool": draw.choice(["x", "y"])},
                taints=draw.choice([[], [], ["key=v:NoSchedule"]]),
                cordoned=draw.random() < 0.2,
            )
        )

    def a_node_goes(self) -> None:
        if self.rng.random() < 0.3:
            self.fixture.handlers.on_node_delete(self.rng.choice(NODES))

    # --- pods -----------------------------------------------------------------------------------------------------

    def a_pod_waits(self) -> None:
        if len(self._waiting()) < MOST_WAITING:
            nominated = self.rng.choice([*NODES, "", "", ""])
            self._come(self._drawn(), nominated=nominated)

    def a_pod_runs(self) -> None:
        self._come(self._drawn(), node=self.rng.choice(NODES), scheduler_name="another")

    def a_pod_ends(self) -> None:
        if found := list(self.fixture.server.pods):
            self.fixture.delete(self.rng.choice(found))

    def a_pod_changes(self) -> None:
        """Its labels, or (of one that runs) what it asks for."""
        if pod := self._any(lambda pod: bool(pod.spec.node_name)):
            labels = {"app": self.rng.choice(["web", "db"])}
            meta = msgspec.structs.replace(pod.metadata, labels=labels)
            smaller = a_pod("any", cpu=1).spec.containers if self.rng.random() < 0.5 else pod.spec.containers
            spec = msgspec.structs.replace(pod.spec, containers=smaller)
            self.fixture.pods(msgspec.structs.replace(pod, metadata=meta, spec=spec))

    def a_pod_leaves(self) -> None:
        """It is being deleted, which takes its time."""
        if pod := self._any(lambda pod: not pod.metadata.deletion_timestamp):
            meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            self.fixture.pods(msgspec.structs.replace(pod, metadata=meta))

    def a_pod_is_bound_elsewhere(self) -> None:
        """Another scheduler is faster."""
        if pod := self._any(lambda pod: not pod.spec.node_name):
            spec = msgspec.structs.replace(pod.spec, node_name=self.rng.choice(NODES))
            self.fixture.pods(msgspec.structs.replace(pod, spec=spec))

    def a_nomination_moves(self) -> None:
        if pod := self._any(lambda pod: not pod.spec.node_name):
            nominated = self.rng.choice([*NODES, ""])
            status = msgspec.structs.replace(pod.status, nominated_node_name=nominated)
            self.fixture.pods(msgspec.structs.replace(pod, status=status))

    # --- pods that cannot be read ---------------------------------------------------------------------------------

    def a_pod_cannot_be_read(self) -> None:
        if pod := self._any(lambda pod: True):
            node = pod.spec.node_name
            bad = Unreadable("Pod", "default", pod.metadata.name, pod.metadata.uid, node=node, problem="bad")
            self.strange[pod.key] = bad
            self.fixture.handlers.on_unreadable_pod(bad)

    def a_pod_can_be_read_again(self) -> None:
        if self.strange:
            key, _ = self.strange.popitem()
            if key in self.fixture.server.pods:
                self.fixture.pods(self.fixture.server.pods[key])

    def a_strange_pod_ends(self) -> None:
        if self.strange:
            key, _ = self.strange.popitem()
            self.fixture.delete(key)

    def a_namespace_changes(self) -> None:
        labels = {"team": self.rng.choice(["red", "blue"])}
        self.fixture.handlers.objects.on_update(
            "Namespace", Namespace(metadata=ObjectMeta(name="default", labels=labels))
        )

    # --- how they are drawn ---------------------------------------------------------------------------------------

    def _drawn(self) -> dict[str, Any]:
        """What a pod asks for besides its node."""
        draw, more = self.rng, dict[str, Any]()
        term = a_pod_term(draw.choice([f"app=web per {ZONE}", f"app=db per {HOSTNAME}"]))
        if draw.random() < 0.5:
            teams = LabelSelector(match_labels={"team": "red"})
            term = msgspec.structs.replace(term, namespace_selector=teams)
        match draw.randrange(6):
            case 0:
                more["apart"] = [term]
            case 1:
                more["near"] = [term]
            case 2:
                more["selects"] = {"pool": draw.choice(["x", "y"])}
            case 3:
                more["ports"] = [80]
            case 4:
                mine = LabelSelector(match_labels={"app": "web"})
                key = draw.choice([ZONE, HOSTNAME])
                spread = TopologySpreadConstraint(max_skew=1, topology_key=key, label_selector=mine)
                more["topology_spread_constraints"] = [spread]
        labels = {"app": draw.choice(["web", "db"])}
        return {"cpu": draw.choice([1, 1, 2, 3]), "priority": draw.choice([0, 5]), "labels": labels, **more}

    def _come(self, asks: dict[str, Any], **more: Any) -> None:
        self.number += 1
        self.fixture.pods(a_pod(f"p{self.number}", **(asks | more)))

    def _any(self, wanted: Callable[[Pod], bool]) -> Pod | None:
        found = [pod for key, pod in self.fixture.server.pods.items() if key not in self.strange and wanted(pod)]
        return self.rng.choice(found) if found else None

    def _waiting(self) -> list[Pod]:
        return [pod for pod in self.fixture.server.pods.values() if not pod.spec.node_name]

    # --- what holds -----------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Time for every backoff (10 s at most), none for a flush."""
        for seconds in (0, 11):
            self.fixture.clock.advance(seconds)
            await self.fixture.work()
            for pod in list(self.fixture.server.pods.values()):
                if pod.key not in self.strange:
                    self.fixture.handlers.on_pod_update(pod)

    def parked_for_nothing(self) -> list[str]:
        """Jobs that wait for an event, and that a decision would place."""
        fixture, found = self.fixture, []
        for key in [pod.key for pod in self._waiting()]:
            job = fixture.queue.job(key)
            if job is None or fixture.queue.state(key) is not QueueState.UNSCHEDULABLE:
                continue
            planner = fixture.scheduler.planners[job.pods[0].spec.scheduler_name]
            decision = planner.decide(job, fixture.ledger.snapshot(), fixture.clock.now())
            if decision.placed:
                found.append(f"{key} to {decision.placements[0].node}")
        return found


def no_pod_stays_parked(kind: type[Story], seed: int) -> None:
    """Plays a random story. After each step no pod waits for an event that could be placed."""

    async def life(fixture: SchedulerFixture) -> None:
        story, rng = kind(fixture, random.Random(f"{seed}/story")), random.Random(f"{seed}/steps")
        for _ in range(3):
            story.a_node_comes()
        for _ in range(24):
            step = rng.choice(story.steps)
            step()
            await story.settle()
            assert story.parked_for_nothing() == [], step.__name__

    scheduler_test(life)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_pod_stays_parked_that_would_be_placed(seed: int) -> None:
    no_pod_stays_parked(Story, seed)


# --- one by one ----------------------------------------------------------------------------------------------------

LARGE, SMALL = (
    a_node("n1", cpu=4, zone="a", labels={"pool": "x", "good": "1"}),
    a_node("n2", cpu=1, zone="a", labels={"pool": "y"}),
)
STRANGE = Unreadable("Pod", "default", "strange", "u", node="n1", phase="Running", problem="bad")
WANTS = a_pod("wants", cpu=2)
CLAIMS = a_pod("claims", cpu=4, nominated="n1", priority=5)  # no node has as much room
SHY = a_pod("shy", apart=[f"app=web per {ZONE}"])
WEB = a_pod("web", node="n2", labels={"app": "web"})


def strange(fixture: SchedulerFixture) -> None:
    fixture.handlers.on_unreadable_pod(STRANGE)


def claimed(fixture: SchedulerFixture) -> None:
    """n1 has room for one who wants, but it is spoken for."""
    fixture.pods(a_pod("busy", cpu=1, node="n1", priority=5), CLAIMS)  # as important: not preempted


def claimed_by_one_who_may_move(fixture: SchedulerFixture) -> None:
    """As soon as n3 is good."""
    fixture.nodes(a_node("n3", cpu=4))
    fixture.pods(
        a_pod("busy", cpu=1, node="n1"), a_pod("claims", cpu=4, nominated="n1", priority=5, selects={"good": "1"})
    )


def nominated(node: str) -> Pod:
    return msgspec.structs.replace(CLAIMS, status=msgspec.structs.replace(CLAIMS.status, nominated_node_name=node))


def unreadable(pod: Pod) -> Unreadable:
    return Unreadable("Pod", "default", pod.metadata.name, pod.metadata.uid, node=pod.spec.node_name, problem="bad")


@pytest.mark.parametrize(
    ("before", "waits", "then"),
    [
        pytest.param(
            strange,
            WANTS,
            lambda town: town.handlers.on_pod_delete("default/strange"),
            id="a pod that cannot be read ends",
        ),
        pytest.param(
            strange,
            WANTS,
            lambda town: town.handlers.on_pod_update(a_pod("strange", uid="u", node="n1", cpu=1)),
            id="a pod that could not be read can be",
        ),
        pytest.param(
            claimed, WANTS, lambda town: town.pods(a_pod("claims", cpu=4, node="n2")), id="a nominee is bound elsewhere"
        ),
        pytest.param(
            claimed_by_one_who_may_move,
            a_pod("wants", cpu=2, selects={"pool": "x"}),
            lambda town: town.nodes(a_node("n3", cpu=4, labels={"good": "1"})),
            id="a nominee is placed elsewhere",
        ),
        pytest.param(claimed, WANTS, lambda town: town.pods(nominated("n2")), id="a nominee is nominated elsewhere"),
        pytest.param(claimed, WANTS, lambda town: town.pods(nominated("")), id="a nominee is nominated no longer"),
        pytest.param(claimed, WANTS, lambda town: town.delete("default/claims"), id="a nominee is deleted"),
        pytest.param(
            claimed,
            WANTS,
            lambda town: town.handlers.on_unreadable_pod(unreadable(CLAIMS)),
            id="a nominee cannot be read",
        ),
        pytest.param(
            claimed,
            WANTS,
            lambda town: town.pods(a_pod("claims", cpu=1, nominated="n1", priority=5)),
            id="a nominee asks for less",
        ),
        pytest.param(
            lambda town: town.pods(WEB),
            SHY,
            lambda town: town.handlers.on_unreadable_pod(unreadable(WEB)),
            id="a pod that others stay away from cannot be read",
        ),
        pytest.param(
            lambda town: town.pods(a_pod("web", namespace="late", node="n2", labels={"app": "web"})),
            a_pod(
                "joins",
                near=[
                    msgspec.structs.replace(
                        a_pod_term(f"app=web per {ZONE}"), namespace_selector=LabelSelector(match_labels={"t": "red"})
                    )
                ],
            ),
            lambda town: town.handlers.objects.on_update(
                "Namespace", Namespace(metadata=ObjectMeta(name="late", labels={"t": "red"}))
            ),
            id="a namespace is seen after its pods",
        ),
    ],
)
def test_what_becomes_free_wakes_who_waits_for_it(
    before: Callable[[SchedulerFixture], None], waits: Pod, then: Callable[[SchedulerFixture], None]
) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(LARGE, SMALL)
        before(fixture)
        await fixture.work()
        fixture.pods(waits)
        await fixture.work()
        fixture.clock.advance(20)
        await fixture.work()
        assert fixture.queue.state(waits.key) is QueueState.UNSCHEDULABLE
        then(fixture)
        for _ in range(2):
            fixture.clock.advance(11)
            await fixture.work()
        assert waits.metadata.name in fixture.where()

    scheduler_test(life)
