"""The room with the real planner, ledger and rules: nobody sleeps through what would let him in, and nobody is tried
for nothing."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Node, Pod
from kubenexus.api.features import SCHEDULING_FEATURES
from kubenexus.base.clock import VirtualClock
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.object_events import (
    node_added,
    node_changed,
    node_gone,
    pod_bound,
    pod_changed,
    pod_forgotten,
    pod_gone,
)
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import HOSTNAME, a_node, a_pod
from kubenexus.testing.harness import on_node

NO_FLUSH = BackoffPolicy(flush_after=1e9)


class Loop:
    """The smallest scheduler: what the watches say goes to ledger and room, and whoever is ready is placed."""

    def __init__(self) -> None:
        self.ledger, self.planner, self.clock = Ledger(), Planner(profile_plugins()), VirtualClock(0.0)
        profile = QueueProfile.of(self.planner.profile_plugins, self._sign, scope=self._scope)
        self.queue = SchedulingQueue({"": profile}, self.clock, NO_FLUSH)
        self.nodes: dict[str, Node] = {}
        self.bound: dict[str, Pod] = {}
        self.decisions = 0

    def _sign(self, pod: Pod) -> bytes:
        class_cache, columns = self.planner.class_cache, self.ledger.nodes
        signature = class_cache.signer.sign(pod, None, class_cache.signed_by_plugins(pod, columns))
        return b"%b %b" % (signature, repr(self._scope(pod)).encode())

    def _scope(self, pod: Pod) -> tuple[int, ...]:
        return self.ledger.nodes.pods.terms.scope(pod.metadata.namespace)

    def node(self, node: Node) -> None:
        name = node.metadata.name
        old, self.nodes[name] = self.nodes.get(name), node
        self.ledger.upsert_node(node)
        for event in [node_added(node)] if old is None else node_changed(old, node):
            self.queue.on_event(event)

    def drop_node(self, name: str) -> None:
        if name in self.nodes:
            self.ledger.remove_node(name)
            self.queue.on_event(node_gone(self.nodes.pop(name)))

    def wait(self, pod: Pod) -> QueueState:
        return self.queue.add(Job.of(pod))

    def change(self, key: str, like: Pod) -> None:
        """What the API server allows while a pod waits: more tolerations, other labels, other amounts."""
        job = self.queue.job(key)
        assert job is not None
        pod, wanted = job.pods[0], like.spec.containers[0].resources
        container = msgspec.structs.replace(pod.spec.containers[0], resources=wanted)
        tolerations = pod.spec.tolerations + like.spec.tolerations
        spec = msgspec.structs.replace(pod.spec, containers=[container], tolerations=tolerations)
        metadata = msgspec.structs.replace(pod.metadata, labels=like.metadata.labels)
        self.wait(msgspec.structs.replace(pod, spec=spec, metadata=metadata))

    def delete(self, key: str) -> None:
        self.queue.delete(key)
        pod = self.bound.pop(key, None)
        if pod is not None:
            self.ledger.remove_pod(key)
            self.queue.on_event(pod_gone(pod))

    def shrink(self, key: str, pod: Pod) -> None:
        old = self.bound.get(key)
        if old is not None:
            new = self.bound[key] = on_node(msgspec.structs.replace(pod, metadata=old.metadata), old.spec.node_name)
            self.ledger.upsert_pod(new)
            for event in pod_changed(old, new):
                self.queue.on_event(event)

    def run(self) -> list[str]:
        """Until nobody is ready. Returns who was placed."""
        placed = []
        while (attempt := self.queue.pop()) is not None:
            decision = self.planner.decide(attempt.job, self.ledger.snapshot(), self.clock.now())
            self.decisions += 1
            if decision.placed:
                commit(decision, attempt.job, self.ledger, self.clock.now())
                self._bind(attempt.job.pods[0], decision.placements[0].node)
                placed.append(attempt.job.key)
            self.queue.done(attempt, decision)
        return placed

    def _bind(self, pod: Pod, node: str) -> None:
        self.bound[pod.key] = on_node(pod, node)
        self.ledger.upsert_pod(self.bound[pod.key])
        self.queue.on_event(pod_bound(self.bound[pod.key]))


def test_pods_wait_for_room_and_take_it_in_order() -> None:
    loop = Loop()
    loop.node(a_node("n", cpu=2))
    for i in range(6):
        loop.wait(a_pod(f"p{i}", cpu=1))
    assert loop.run() == ["default/p0", "default/p1"]
    assert loop.decisions == 3, "one refusal speaks for all"
    loop.delete("default/p0")
    loop.clock.advance(60)
    assert loop.run() == ["default/p2"]
    loop.node(a_node("m", cpu=2))
    loop.clock.advance(60)
    assert loop.run() == ["default/p3", "default/p4"]


def test_a_pod_of_another_kind_is_placed_past_those_that_wait() -> None:
    loop = Loop()
    loop.node(a_node("n", cpu=2))
    for i in range(3):
        loop.wait(a_pod(f"big{i}", cpu=3))
    loop.wait(a_pod("small", cpu=1))
    assert loop.run() == ["default/small"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(a_node(cordoned=True), a_node(), id="uncordoned"),
        pytest.param(a_node(taints=["a:NoSchedule"]), a_node(), id="untainted"),
        pytest.param(a_node(cpu="100m"), a_node(), id="grown"),
        pytest.param(a_node(), a_node(labels={"disk": "ssd"}), id="labelled"),
    ],
)
def test_a_node_that_comes_to_fit_is_used(before: Node, after: Node) -> None:
    loop = Loop()
    loop.node(before)
    loop.wait(a_pod(cpu=1, requires=["disk In ssd"] if after.metadata.labels.get("disk") else None))
    assert loop.run() == []
    loop.clock.advance(60)
    loop.node(after)
    assert loop.run() == ["default/pod"]


def test_no_nodes_at_all_are_waited_out() -> None:
    loop = Loop()
    loop.wait(a_pod())
    assert loop.run() == []
    assert loop.queue.state("default/pod") is QueueState.BACKOFF
    loop.node(a_node())
    loop.clock.advance(1.0)
    assert loop.run() == ["default/pod"]


def test_a_bind_that_fails_frees_its_room_for_others_and_is_tried_again() -> None:
    loop = Loop()
    loop.node(a_node("n", cpu=1))
    loop.wait(a_pod("a", cpu=1))
    attempt = loop.queue.pop()
    assert attempt is not None
    loop.wait(a_pod("b", cpu=1, priority=1))
    commit(loop.planner.decide(attempt.job, loop.ledger.snapshot(), 0.0), attempt.job, loop.ledger, 0.0)
    assert loop.run() == []
    loop.ledger.forget("default/a")
    loop.queue.on_event(pod_forgotten(attempt.job.pods[0], "n"))
    loop.queue.bind_failed(attempt)
    loop.clock.advance(60)
    assert loop.run() == ["default/b"]
    loop.delete("default/b")
    loop.clock.advance(60)
    assert loop.run() == ["default/a"]


# Few values, so that one thing is often all that keeps a pod out.
FIT_NODES = st.builds(
    a_node,
    st.sampled_from(["n0", "n1"]),
    cpu=st.sampled_from([1, 2, 4]),
    pods=st.sampled_from([1, 2, 110]),
    gpu=st.sampled_from([0, 0, 2]),
    labels=st.sampled_from([{}, {"disk": "ssd"}]),
    taints=st.sampled_from([(), (), ("spot:NoSchedule",)]),
    cordoned=st.sampled_from([False, False, True]),
    features=st.sampled_from([(), sorted(SCHEDULING_FEATURES)]),
)
FIT_PODS = st.builds(
    a_pod,
    st.sampled_from([f"p{i}" for i in range(5)]),
    cpu=st.sampled_from([None, 1, 2]),
    gpu=st.sampled_from([None, None, 2]),
    ports=st.sampled_from([(), (), (80,), ("10.0.0.1:80",)]),
    tolerates=st.sampled_from([(), (), ("spot",)]),
    requires=st.sampled_from([None, None, ["disk In ssd"], ["metadata.name In n1"]]),
    near=st.sampled_from([(), (), (f"app=web per {HOSTNAME}",)]),
    apart=st.sampled_from([(), (), (f"app=web per {HOSTNAME}",)]),
    labels=st.sampled_from([{}, {"app": "web"}]),
    host_users=st.sampled_from([True, True, False]),
    host_network=st.booleans(),
)
STEPS = st.sampled_from(["node", "node", "pod", "pod", "pod", "change", "gone", "shrink", "drop"])


@given(st.data())
def test_whoever_waits_would_be_refused_if_he_were_tried(data: st.DataObject) -> None:
    """Without any flush: hints and kinds miss nothing."""
    loop = Loop()
    for _ in range(data.draw(st.integers(3, 14))):
        step(loop, data)
        loop.clock.advance(60)
        loop.run()
    for key in list(loop.queue._queued_jobs):
        job, told = loop.queue.job(key), loop.queue.last_decision(key)
        assert job is not None
        assert told is not None
        decision = loop.planner.decide(job, loop.ledger.snapshot(), 0.0)
        assert not decision.placed, f"{key} sleeps, and would fit on {decision.placements[0].node}"


def step(loop: Loop, data: st.DataObject) -> None:
    """Something happens, if it can."""
    match data.draw(STEPS):
        case "node":
            loop.node(data.draw(FIT_NODES))
        case "pod":
            pod = data.draw(FIT_PODS)
            if pod.key not in loop.bound and pod.key not in loop.queue:
                loop.wait(pod)
        case "change" if len(loop.queue):
            loop.change(data.draw(st.sampled_from(sorted(loop.queue._queued_jobs))), data.draw(FIT_PODS))
        case "gone" if loop.bound:
            loop.delete(data.draw(st.sampled_from(sorted(loop.bound))))
        case "shrink" if loop.bound:
            loop.shrink(data.draw(st.sampled_from(sorted(loop.bound))), data.draw(FIT_PODS))
        case "drop":
            loop.drop_node(data.draw(st.sampled_from(["n0", "n1"])))
