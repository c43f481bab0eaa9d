"""Whatever is told of pods and groups, in whatever order: the jobs that wait are those that a count of all live pods
gives, and what is on its way is left alone."""

from typing import Any, NamedTuple

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubenexus.api.core import Pod, SchedulingGroup
from kubenexus.api.gangs.declaration import POD_GROUP, TopologyRequest
from kubenexus.framework.job import Job
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.gangs.job_assembler import PORTION
from kubenexus.queue.queued_job import QueueState, SchedulingAttempt
from kubenexus.state.footprint import Footprint
from kubenexus.state.pods import PodStage, pod_record
from kubenexus.testing.builders import a_pod
from tests.api.gangs.builders import LEAST, NAME, pod_group
from tests.queue.assembler_fixture import AssemblerFixture

NAMES = st.sampled_from([f"p{i}" for i in range(6)])
RACK = "topology.kubernetes.io/rack"


class Said(NamedTuple):
    """What a pod says of its gang: a family and a number, or (of a group) a name alone."""

    family: str = ""
    least: int = 0


SAID = st.sampled_from(
    [Said(), Said("gang", 1), Said("gang", 2), Said("gang", 2), Said("gang", 3), Said("gang", 0), Said("podgroup")]
)


class Known(NamedTuple):
    pod: Pod
    said: Said
    since: float


class Machine(RuleBasedStateMachine):
    portion = PORTION

    def __init__(self) -> None:
        super().__init__()
        self.fixture = AssemblerFixture(BackoffPolicy(flush_after=60.0), portion=self.portion)
        self.live: dict[str, Known] = {}
        self.group: tuple[int, str] | None = None
        self.flying: list[tuple[SchedulingAttempt, list[Pod]]] = []
        self.uids = 0

    # --- what may happen ------------------------------------------------------------------------------------------

    @rule(name=NAMES, said=SAID, gated=st.booleans(), priority=st.integers(0, 1), since=st.integers(0, 3))
    def seen(self, name: str, said: Said, gated: bool, priority: int, since: int) -> None:
        """New, or changed: its labels, its gates."""
        known = self.live.get(name)
        if known is not None and (known.pod.spec.node_name or f"default/{name}" in self.fixture.records):
            return  # on its way, or there: the next rule
        if known is None:
            self.uids += 1
        uid = f"uid {self.uids}" if known is None else known.pod.metadata.uid
        born = float(since) if known is None else known.since
        if known is not None and known.said.family == "podgroup":
            said = known.said  # that cannot be changed
        labels = {NAME: "g", LEAST: str(said.least)} if said.family == "gang" else {}
        group = SchedulingGroup(pod_group_name="g") if said.family == "podgroup" else None
        fields: dict[str, Any] = {"priority": priority, "gates": ["x"] if gated else []}
        pod = a_pod(name, uid=uid, labels=labels, scheduling_group=group, image=f"i{priority}", **fields)
        self.live[name] = Known(pod, said, born)
        self.fixture.assembler.add_waiting(pod, born)

    @rule(name=NAMES)
    def bound(self, name: str) -> None:
        """The watch says that it has a node: ours, or somebody else's."""
        known = self.live.get(name)
        if known is None:
            return
        record = self.fixture.records.get(f"default/{name}")
        node = "elsewhere" if record is None else record.node
        pod = msgspec.structs.replace(known.pod, spec=msgspec.structs.replace(known.pod.spec, node_name=node))
        self.fixture.records[pod.key] = pod_record(pod, node, PodStage.BOUND, Footprint())
        self.live[name] = known._replace(pod=pod)
        self.fixture.assembler.add_bound(pod, pod, known.since)

    @rule(name=NAMES)
    def gone(self, name: str) -> None:
        """Deleted, ended, or on its way out."""
        self.live.pop(name, None)
        self.fixture.gone(name)

    @rule(least=st.integers(1, 3), level=st.sampled_from(["", RACK]))
    def group_seen(self, least: int, level: str) -> None:
        self.group = (least, level)
        self.fixture.group(pod_group("g", least, level))

    @rule()
    def group_gone(self) -> None:
        self.group = None
        self.fixture.groups.gone(POD_GROUP, "default/g")
        self.fixture.assembler.group_changed(POD_GROUP, "default/g")

    @rule(most=st.integers(1, 6))
    def pop(self, most: int) -> None:
        attempt = self.fixture.pop()
        if attempt is None:
            return
        expected = self._jobs()
        assert attempt.job == expected.pop(attempt.job.key, None)
        if most < attempt.job.minimum:
            self.fixture.fixture.refuse("Room", attempt=attempt)
        else:
            self.flying.append((attempt, self.fixture.assume(attempt, most=most)))

    @precondition(lambda self: self.flying)
    @rule(failed=st.sets(NAMES))
    def land(self, failed: set[str]) -> None:
        attempt, seated = self.flying.pop()
        uids = {known.pod.metadata.uid for known in self.live.values()}
        for pod in seated:  # bound by somebody else meanwhile, made again, or gone: not ours to undo
            record = self.fixture.records.get(pod.key)
            assumed = record is not None and record.uid == pod.metadata.uid and record.stage is PodStage.ASSUMED
            if pod.metadata.uid not in uids or not assumed:
                failed = failed - {pod.metadata.name}
        self.fixture.land(attempt, seated, tuple(failed))

    @rule(seconds=st.sampled_from([1.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self.fixture.clock.advance(seconds)

    # --- what always holds ----------------------------------------------------------------------------------------

    @invariant()
    def the_jobs_that_wait_are_those_of_the_live_pods(self) -> None:
        self.fixture.assembler.build_changed()
        flying = {
            attempt.job.key
            for attempt, _ in self.flying
            if self.fixture.queue.state(attempt.job.key) is QueueState.IN_FLIGHT
        }
        found = {key: queued.job for key, queued in self.fixture.queue._queued_jobs.items() if key not in flying}
        expected = {key: job for key, job in self._jobs().items() if key not in flying}
        gated_apart = {f"{key}+gated" for key in flying}
        assert {k: j for k, j in found.items() if k not in gated_apart} == {
            k: j for k, j in expected.items() if k not in gated_apart
        }

    @invariant()
    def nobody_is_tried_who_is_not_complete(self) -> None:
        self.fixture.assembler.build_changed()
        short = self._short()
        for key, queued in self.fixture.queue._queued_jobs.items():
            if queued.state is not QueueState.IN_FLIGHT:
                held = queued.gate_verdict is not None and queued.gate_verdict.plugin == "Coscheduling"
                assert held is (key in short)

    # --- the same, counted anew ----------------------------------------------------------------------------------

    def _node(self, known: Known) -> str:
        record = self.fixture.records.get(known.pod.key)
        ours = record is not None and record.uid == known.pod.metadata.uid
        return known.pod.spec.node_name or (record.node if ours and record is not None else "")

    def _gangs(self) -> dict[str, tuple[int, str, list[Known]]]:
        """By key: how many, within what, and who; 0 for a number that nobody knows."""
        gangs: dict[str, tuple[int, str, list[Known]]] = {}
        own = [known for known in self.live.values() if known.said.family == "gang" and known.said.least]
        if max((known.said.least for known in own), default=0) > 1:
            gangs["default/gang/g"] = (max(known.said.least for known in own), "", own)
        grouped = [known for known in self.live.values() if known.said.family == "podgroup"]
        least, level = self.group or (0, "")
        if grouped and (self.group is None or least > 1 or level):
            gangs["default/podgroup/g"] = (least, level, grouped)
        return gangs

    def _jobs(self) -> dict[str, Job]:
        jobs, in_gangs = {}, set()
        for key, (least, level, members) in self._gangs().items():
            in_gangs |= {known.pod.key for known in members}
            ordered = sorted(members, key=lambda k: (-k.pod.spec.priority, k.since, k.pod.metadata.name))
            nodes = tuple(self._node(known) for known in ordered if self._node(known))
            waiting = [known.pod for known in ordered if not self._node(known)]
            ready = tuple(pod for pod in waiting if not pod.spec.scheduling_gates)
            gated = tuple(pod for pod in waiting if pod.spec.scheduling_gates)
            if ready:
                jobs[key] = Job(key, ready, max(1, (least or 1) - len(nodes)), TopologyRequest(level), nodes)
            if gated:
                jobs[f"{key}+gated"] = Job(f"{key}+gated", gated)
        alone = [k for k in self.live.values() if k.pod.key not in in_gangs and not self._node(k)]
        return jobs | {known.pod.key: Job.of(known.pod) for known in alone}

    def _short(self) -> set[str]:
        """Whose members, or number, are missing; and pods that cannot be read."""
        short = {k.pod.key for k in self.live.values() if k.said == Said("gang", 0)}
        for key, (least, _, members) in self._gangs().items():
            here = [k for k in members if self._node(k) or not k.pod.spec.scheduling_gates]
            if not least or len(here) < least:
                short.add(key)
        return short

    def teardown(self) -> None:
        for attempt, seated in self.flying:
            self.fixture.land(attempt, seated)
        for name in list(self.live):
            self.gone(name)
        for _ in range(10):
            self.fixture.assembler.build_changed()
        registry = self.fixture.assembler.registry
        assert len(self.fixture.queue) == 0
        assert (registry.members, registry.gangs, registry.changed._named) == ({}, {}, {})


class LateMachine(Machine):
    """One gang is built before each pop, and none after an event: most jobs in the queue are outdated. Those that are
    popped must be as if all had been built (`Machine.pop`)."""

    portion = 1

    def the_jobs_that_wait_are_those_of_the_live_pods(self) -> None:  # they are not, until they are popped
        pass

    def nobody_is_tried_who_is_not_complete(self) -> None:
        pass


TestMachine = Machine.TestCase
TestMachine.settings = settings(stateful_step_count=60)
TestLateMachine = LateMachine.TestCase
TestLateMachine.settings = settings(stateful_step_count=60)
