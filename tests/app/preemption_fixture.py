"""A scheduler whose preemptions are said by the test: who goes, and which node each member gets."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.framework.decision import Decision, Nomination, Preemption, Victim
from kubenexus.framework.job import Job
from kubenexus.sim.virtual.loop import run
from kubenexus.state.snapshot import Snapshot
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture
from tests.async_helpers import yield_to_loop

OURS = "packing"  # a profile with our own rules


def terminating(pod: Pod) -> Pod:
    """Told to end, and taking its time."""
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-11-16T00:00:00Z")
    return msgspec.structs.replace(pod, metadata=meta)


def nominated(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=node))


def gang(name: str, size: int, **fields: Any) -> list[Pod]:
    return [a_member(f"{name}-{i}", name, size, scheduler_name=OURS, **fields) for i in range(size)]


class PreemptionFixture(SchedulerFixture):
    """`plans`: by the key of a job, the victims by name and the nodes of its members, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: dict[str, tuple[Iterable[str], Iterable[str]]] = {}
        self.evicts, self.violations = True, 0
        self.preemption = self.scheduler.preemption
        planner = self.scheduler.planners[OURS]
        decide = planner.decide

        def with_preemption(job: Job, snapshot: Snapshot, *args: Any, **more: Any) -> Decision:
            decision = decide(job, snapshot, *args, **more)
            decision = msgspec.structs.replace(decision, preemption=None, clears_nomination=False)
            waits = any(snapshot.is_preempting(pod.metadata.uid) for pod in job.pods)
            if decision.placed:
                return decision
            plan = None if waits or job.key not in self.plans else self.planned(job)
            alone = waits or job.key in self.plans
            return msgspec.structs.replace(decision, preemption=plan, alone=alone, clears_nomination=False)

        planner.decide = with_preemption  # type: ignore[method-assign]

    def planned(self, job: Job) -> Preemption | None:
        """The plan of the test, as far as its victims still run."""
        names, nodes = self.plans[job.key]
        spared = self.preemption.spared(job)
        records = [self.ledger.pods.get(f"default/{name}") for name in names]
        victims = [each for each in records if each is not None and not each.terminating and each.uid not in spared]
        if not victims:
            return None
        places = tuple(Nomination(pod.key, node) for pod, node in zip(job.pods, nodes, strict=True))
        gone = tuple(Victim(each.key, each.uid) for each in victims)
        return Preemption(places, gone, self.violations, evicts=self.evicts)

    async def turn(self, seconds: float = 0.0) -> None:
        """Works until there is nothing to do, `seconds` later."""
        self.clock.advance(seconds)
        await self.work()
        await yield_to_loop()
        await self.work()

    def end_slowly(self, *names: str) -> None:
        """The API server has accepted their eviction; their kubelets have not ended them."""
        for name in names:
            self.pods(terminating(self.server.pods[f"default/{name}"]))

    def gone(self, *names: str) -> None:
        for name in names:
            self.delete(f"default/{name}")

    def nominate(self, name: str, node: str) -> None:
        """The watch shows what was written."""
        self.pods(nominated(self.server.pods[f"default/{name}"], node))

    @property
    def evicted(self) -> list[str]:
        """Whom the API server was asked to end, in order."""
        paths = [call.path for call in self.server.calls if call.method == "DELETE" or call.path.endswith("/eviction")]
        return [path.removesuffix("/eviction").rpartition("/")[2] for path in paths]

    @property
    def nominations(self) -> list[tuple[str, str]]:
        """What was written as the nominated node of which pod, in order."""
        found = []
        for call in self.server.calls:
            status = msgspec.json.decode(call.body)["status"] if call.path.endswith("/status") else {}
            if "nominatedNodeName" in status:
                found.append((call.path.split("/")[-2], status["nominatedNodeName"] or ""))
        return found


def preemption_test(life: Callable[[PreemptionFixture], Coroutine[Any, Any, None]]) -> None:
    """In virtual time."""

    async def lived() -> None:
        await life(PreemptionFixture())

    run(lived())
