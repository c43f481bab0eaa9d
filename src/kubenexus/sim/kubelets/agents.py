"""Simulated kubelets: they keep nodes ready and run the pods that are bound to them.

    watch of nodes ─▶ node_seen ─▶ ┐                          ┌─▶ taint of a fresh node off, ready, lease renewed
                                   ├─ work_queue ─▶ due ─▶ call
    watch of pods  ─▶ pod_seen  ─▶ ┘                          └─▶ run or refuse, succeed, delete

All actions follow from the state of the server, never from memory: agents can be killed and restarted. There is no I/O
and no clock here. `agent_runner` sends the calls to a server; a simulation calls `due` in its own time.
"""

from collections.abc import Callable, Iterable

import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.client import kinds, verbs
from kubenexus.client.calls import ApiError, Call
from kubenexus.sim.delaying_queue import DelayingQueue, WorkItem
from kubenexus.sim.kubelets import node_calls, pod_status
from kubenexus.sim.kubelets.annotations import AGENT, REFUSE, RUN_SECONDS
from kubenexus.sim.kubelets.node_topologies import NodeTopologies
from kubenexus.sim.kubelets.pod_status import KubeletRejection
from kubenexus.sim.kubelets.types import Node, Pod

Refuse = Callable[[Pod, Node], KubeletRejection | None]

UNTAINT, READY, OFFER, HEARTBEAT, RENEW, LEASE = "untaint", "ready", "offer", "heartbeat", "renew", "lease"
PUBLISH = "publish"
RUN, SUCCEED, DELETE = "run", "succeed", "delete"
OF_NODES = (UNTAINT, READY, OFFER, HEARTBEAT, RENEW, LEASE, PUBLISH)
OF_PODS = (RUN, SUCCEED, DELETE)


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The behaviour of agents. All times are in seconds."""

    renew: float = 20.0  # interval of lease renewals; kubelets renew twice as often. 0: no leases
    lease: int = 40
    heartbeat: float = 300.0  # interval of status updates without a change, as kubelets do
    start: float = 0.0  # from bound to running
    run: float | None = None  # from running to succeeded, for pods without the annotation; None: they run until deleted
    stop: float | None = None  # from deleted to gone, if less than the grace period; None: the whole of it
    retry: float = 1.0  # after a call that may not have arrived
    all_nodes: bool = False  # all nodes, not only those with the label


def as_annotated(pod: Pod, node: Node) -> KubeletRejection | None:
    """Rejects the pod if an annotation of the pod or of the node requires it."""
    reason = pod.metadata.annotations.get(REFUSE) or node.metadata.annotations.get(REFUSE)
    return KubeletRejection(reason) if reason else None


class Agents:
    """The agents of all nodes. `refuse` is called for each pod before it runs. With `topologies`, nodes have NUMA
    nodes: pods are admitted by these, too, and what is left is published."""

    def __init__(
        self,
        settings: AgentSettings | None = None,
        refuse: Refuse = as_annotated,
        topologies: NodeTopologies | None = None,
    ) -> None:
        self.settings = settings or AgentSettings()
        self._topologies = topologies
        self.work_queue = DelayingQueue()
        self._refuse = refuse
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self._stranded: dict[str, set[str]] = {}  # pods by the name of a node that is not ours
        self._addresses = 0

    # ---- changes on the server ---------------------------------------------------------------------------------------

    def node_seen(self, node: Node, now: float) -> None:
        """A node was added or changed."""
        name = node.metadata.name
        if not self.settings.all_nodes and AGENT not in node.metadata.labels:
            return
        fresh = name not in self._nodes
        self._nodes[name] = node
        if not node.ready:
            self.work_queue.plan(READY, name, now)
        elif node_calls.untainted(node) is not None:
            self.work_queue.plan(UNTAINT, name, now)
        if node_calls.offered(node) is not None:
            self.work_queue.plan(OFFER, name, now)
        if fresh:
            self._adopt(name, now)

    def node_gone(self, name: str) -> None:
        """A node was deleted: its heartbeats end. Its pods are left to the cluster, as when a machine is lost."""
        if self._nodes.pop(name, None) is None:
            return
        for what in OF_NODES:
            self.work_queue.drop(what, name)
        if self._topologies is not None:
            self._topologies.forget(name)
        for uid, pod in self._pods.items():
            if pod.spec.node_name == name:
                self._strand(uid, name)

    def pod_seen(self, pod: Pod, now: float) -> None:
        """A bound pod was added or changed."""
        uid, name = pod.metadata.uid, pod.spec.node_name
        self._pods[uid] = pod
        if name not in self._nodes:
            self._strand(uid, name)
            return
        if self._topologies is not None and pod.status.phase == "Running":
            self._topologies.adopt(pod, self._nodes[name])
        what, when = self._next_of(pod, now)
        for other in OF_PODS:
            if other != what:
                self.work_queue.drop(other, uid)
        if what:
            self.work_queue.plan_by(what, uid, when)

    def pod_gone(self, uid: str) -> None:
        """A bound pod ended or was deleted."""
        pod = self._pods.pop(uid, None)
        if pod is not None and pod.spec.node_name in self._stranded:
            self._stranded[pod.spec.node_name].discard(uid)
        for what in OF_PODS:
            self.work_queue.drop(what, uid)
        if self._topologies is not None:
            self._topologies.release(uid)

    @property
    def node_names(self) -> Iterable[str]:
        return self._nodes.keys()

    @property
    def pod_uids(self) -> Iterable[str]:
        """The UIDs of bound pods that have not ended."""
        return self._pods.keys()

    # ---- work items --------------------------------------------------------------------------------------------------

    def call(self, item: WorkItem, now: float) -> Call | None:
        """Returns the call for the item, or None if nothing is left to do."""
        if item.what in OF_NODES:
            node = self._nodes.get(item.whom)
            return None if node is None else self._node_call(item.what, node, now)
        pod = self._pods.get(item.whom)
        return None if pod is None or pod.spec.node_name not in self._nodes else self._pod_call(item.what, pod, now)

    def finished(self, item: WorkItem, now: float, error: KubeNexusError | None = None) -> None:
        """Reschedules the item after a call. A final error needs no retry: the watch reports the new state."""
        self.work_queue.finish(item)
        if item.what == PUBLISH:
            self._plan_report(item, now, error)
        elif item.what == RENEW and isinstance(error, ApiError) and error.code == 404:
            self.work_queue.plan(LEASE, item.whom, now)
        elif error is not None and not is_final_error(error):
            self.work_queue.plan_by(item.what, item.whom, now + self._patience(error))
            return
        if item.whom in self._nodes and item.what in (RENEW, HEARTBEAT):
            every = self.settings.renew if item.what == RENEW else self.settings.heartbeat
            # From when it was due, not from when it was done: otherwise the heartbeats of all nodes drift together.
            self.work_queue.plan_by(item.what, item.whom, max(item.when + every, now))

    # ---- internals ---------------------------------------------------------------------------------------------------

    def _patience(self, error: KubeNexusError) -> float:
        """Returns the delay before a retry: 30 times longer without permission, which is not granted within a
        second."""
        denied = isinstance(error, ApiError) and error.code in (401, 403)
        return self.settings.retry * (30.0 if denied else 1.0)

    def _plan_report(self, item: WorkItem, now: float, error: KubeNexusError | None) -> None:
        node, topologies = self._nodes.get(item.whom), self._topologies
        if node is not None and topologies is not None:
            at_once = topologies.published(node, error)
            when = now if at_once else max(item.when + topologies.settings.publish, now)
            self.work_queue.plan_by(PUBLISH, item.whom, when)

    def _adopt(self, name: str, now: float) -> None:
        """Schedules the first heartbeats over a whole period, so that thousands of nodes cause a steady load."""
        share = (len(self._nodes) * 0.618034) % 1.0
        if self.settings.renew:
            self.work_queue.plan(RENEW, name, now + share * self.settings.renew)
        self.work_queue.plan(HEARTBEAT, name, now + (0.5 + share / 2) * self.settings.heartbeat)
        if self._topologies is not None:
            self.work_queue.plan(PUBLISH, name, now)
        for uid in self._stranded.pop(name, ()):
            if uid in self._pods:
                self.pod_seen(self._pods[uid], now)

    def _strand(self, uid: str, name: str) -> None:
        """Stores a pod whose node is not ours, or not yet; it does not run."""
        self._stranded.setdefault(name, set()).add(uid)
        for what in OF_PODS:
            self.work_queue.drop(what, uid)

    def _next_of(self, pod: Pod, now: float) -> tuple[str, float]:
        """Returns what a kubelet would do next with this pod, and when; "" for nothing."""
        if pod.metadata.deletion_timestamp:
            end = parse_timestamp(pod.metadata.deletion_timestamp, 0.0)
            return DELETE, end if self.settings.stop is None else min(end, now + self.settings.stop)
        if pod.status.phase in ("", "Pending"):
            return RUN, now + self.settings.start
        seconds = self._seconds_of(pod)
        if pod.status.phase == "Running" and seconds is not None:
            return SUCCEED, parse_timestamp(pod.status.start_time, 0.0) + seconds
        return "", now

    def _seconds_of(self, pod: Pod) -> float | None:
        said = pod.metadata.annotations.get(RUN_SECONDS)
        if said is None:
            return self.settings.run
        try:
            return max(float(said), 0.0)
        except ValueError:
            return self.settings.run

    def _node_call(self, what: str, node: Node, now: float) -> Call | None:
        name = node.metadata.name
        if what in (UNTAINT, OFFER):
            return node_calls.untainted(node) if what == UNTAINT else node_calls.offered(node)
        if what == PUBLISH:
            return None if self._topologies is None else self._topologies.call(node)
        if what == LEASE:
            return node_calls.lease(node, now, self.settings.lease)
        return {READY: node_calls.ready, HEARTBEAT: node_calls.still_ready, RENEW: node_calls.renewed}[what](name, now)

    def _pod_call(self, what: str, pod: Pod, now: float) -> Call:
        meta = pod.metadata
        if what == DELETE:
            return verbs.delete(kinds.PODS, meta.namespace, meta.name, meta.uid, grace_seconds=0)
        status = pod_status.succeeded(pod, now) if what == SUCCEED else self._start(pod, now)
        return verbs.patch_pod_status(meta.namespace, meta.name, meta.uid, status)

    def _start(self, pod: Pod, now: float) -> pod_status.Status:
        node = self._nodes[pod.spec.node_name]
        refusal = self._refuse(pod, node)
        if refusal is None and self._topologies is not None:
            refusal = self._topologies.admit(pod, node)
        if refusal is not None:
            return pod_status.refused(refusal, now)
        self._addresses += 1
        return pod_status.running(pod, now, _pod_address(self._addresses), node.address)


def is_final_error(error: KubeNexusError) -> bool:
    """Whether a retry is useless: another client was faster, or the object is gone. The watch reports the new state."""
    return isinstance(error, ApiError) and error.code in (400, 404, 409, 410, 422)


def _pod_address(number: int) -> str:
    """Returns 10.128.0.1 and following; addresses repeat after eight million pods."""
    number %= 2**23
    return f"10.{128 + number // 65536}.{number // 256 % 256}.{number % 256}"
