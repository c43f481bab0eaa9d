"""A whole scheduler in one line: a ledger and a planner that decides and commits every job in the given order.

    assert run(nodes=[a_node("n1")], pods=[a_pod("web-0", cpu=1)]).placements == {"web-0": "n1"}

Pods with a node run there already; the others are scheduled. Pods of the namespace `default` are named by their name,
others by `namespace/name`.

`ReferenceCluster` is a cluster as plain objects, for comparisons. `CheckedCluster` is a ledger and a reference that
receive the same events.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from kubenexus.api.codec import encode
from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.device import NodeDevices
from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.api.devices.resource_claim import DeviceClass
from kubenexus.api.resources import footprint
from kubenexus.base.errors import Malformed
from kubenexus.framework.decision import Decision, Diagnosis
from kubenexus.framework.job import Job
from kubenexus.framework.profile import Profile, ProfilePlugins
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger


class Run(msgspec.Struct, frozen=True):
    """The outcome of all jobs by name: `placements` maps pods to nodes, `refusals` maps jobs to the sentence."""

    ledger: Ledger
    planner: Planner
    decisions: dict[str, Decision]

    @property
    def placements(self) -> dict[str, str]:
        return {short_name(p.pod): p.node for decision in self.decisions.values() for p in decision.placements}

    @property
    def refusals(self) -> dict[str, str]:
        return {name: decision.sentence() for name, decision in self.decisions.items() if not decision.placed}

    def then(self, pods: Iterable[Pod | Job]) -> "Run":
        """Schedules more pods on the present state."""
        return _schedule(pods, self.ledger, self.planner)


def run(
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod | Job] = (),
    *,
    device_classes: Iterable[DeviceClass] = (),
    profile: Profile | ProfilePlugins | None = None,
) -> Run:
    """Schedules the pods and jobs that have no node yet, in order."""
    told = list(pods)
    ledger = a_ledger(nodes, [pod for pod in told if isinstance(pod, Pod)], device_classes)
    planner = Planner(profile if isinstance(profile, ProfilePlugins) else profile_plugins(profile))
    return _schedule([each for each in told if isinstance(each, Job) or not each.spec.node_name], ledger, planner)


def a_ledger(
    nodes: Iterable[Node] = (), pods: Iterable[Pod] = (), device_classes: Iterable[DeviceClass] = ()
) -> Ledger:
    """Returns a ledger with these objects, added in this order."""
    ledger = Ledger()
    for device_class in device_classes:
        ledger.upsert_device_class(device_class)
    for node in nodes:
        ledger.upsert_node(node)
    for pod in pods:
        ledger.upsert_pod(pod)
    ledger.read_devices()
    return ledger


def relist(ledger: Ledger, nodes: Iterable[Node], pods: Iterable[Pod]) -> list[Malformed]:
    """Applies a full list after a gap in the watch, as `app.watch.informers` does: unlisted objects are removed.

    Returns the errors of objects that could not be read; they do not affect the others.
    """
    listed, seen, problems = list(nodes), list(pods), list[Malformed]()
    told = [*(partial(ledger.upsert_node, node) for node in listed), *(partial(ledger.upsert_pod, pod) for pod in seen)]
    for tell in told:
        try:
            tell()
        except Malformed as problem:
            problems.append(problem)
    for name in ledger.nodes.row_of.keys() - {node.metadata.name for node in listed}:
        ledger.remove_node(name)
    for key in {*ledger.pods, *ledger._nominations, *ledger._blocked_nodes.pods} - {pod.key for pod in seen}:
        ledger.remove_pod(key)
    return problems


def short_name(key: str) -> str:
    """Returns the name of a pod or a job in a `Run`."""
    return key.removeprefix("default/")


def _schedule(jobs: Iterable[Pod | Job], ledger: Ledger, planner: Planner) -> Run:
    decisions: dict[str, Decision] = {}
    for each in jobs:
        job = Job.of(each) if isinstance(each, Pod) else each
        decision = _gated(job, planner.profile_plugins, ledger) or planner.decide(job, ledger.snapshot(), now=0.0)
        if decision.placed:
            commit(decision, job, ledger, now=0.0)
        decisions[short_name(job.key)] = decision
    return Run(ledger, planner, decisions)


def _gated(job: Job, rules: ProfilePlugins, ledger: Ledger) -> Decision | None:
    """Refuses a job with a gated member, as the queue does; such a job never reaches the planner."""
    verdicts = [gate.pre_enqueue(pod) for gate in rules.pre_enqueue for pod in job.pods]
    said: Sequence[str] = [reason for verdict in verdicts if verdict is not None for reason in verdict.reasons]
    if not said:
        return None
    diagnosis = Diagnosis(nodes=ledger.nodes.count, message=", ".join(said))
    return Decision(job.key, Code.UNRESOLVABLE, ledger.generation, 0.0, diagnosis=diagnosis, error=", ".join(said))


# --- the cluster as plain objects -------------------------------------------------------------------------------------


class NodeInfo(NamedTuple):
    """A node, its pods, running or assumed (each with `spec.nodeName` set), and the rest of the cluster."""

    node: Node
    pods: tuple[Pod, ...]
    cluster: "ReferenceCluster"


class AssumedPod(NamedTuple):
    """A pod that was assumed on a node, as it was then."""

    pod: Pod
    node: str
    takes: tuple[DeviceShare, ...] = ()


class ImageState(NamedTuple):
    """An image in the cluster: the size that the first node reported, and the nodes that have it.

    If only one node is left and it changes, its own size counts from then on.
    """

    size: int
    nodes: set[str]


class ReferenceCluster:
    """The reference for the ledger: what the API server would list, and pods that are assumed but not bound yet.

    It has the ledger's methods. `ledger()` builds a fresh ledger from the objects.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.promises: dict[str, AssumedPod] = {}
        self.unreadable: dict[str, str] = {}
        self.images: dict[str, ImageState] = {}
        self.device_classes: dict[str, DeviceClass] = {}
        self.devices: dict[str, NodeDevices] = {}

    def __repr__(self) -> str:
        """Returns the objects as JSON, suited to `kubectl`."""
        told = [*self.nodes.values(), *self.pods.values(), *self.placed().values(), *self.device_classes.values()]
        distinct = {encode(each).decode(): None for each in told}
        return "\n".join(["Cluster:", *distinct, f"unreadable: {self.unreadable}", f"devices: {self.devices}"])

    def upsert_node(self, node: Node) -> None:
        known = self.nodes.get(node.metadata.name)
        self.nodes[node.metadata.name] = node
        if known is not None and _read_of(known) == _read_of(node):
            return  # a heartbeat
        self._drop_images(node.metadata.name)
        for image in node.status.images:
            for name in image.names:
                self.images.setdefault(name, ImageState(image.size_bytes, set())).nodes.add(node.metadata.name)

    def remove_node(self, name: str) -> None:
        self._drop_images(name)
        self.nodes.pop(name, None)

    def set_devices(self, node: str, devices: NodeDevices) -> None:
        self.devices[node] = devices

    def upsert_device_class(self, device_class: DeviceClass) -> None:
        self.device_classes[device_class.metadata.name] = device_class

    def remove_device_class(self, name: str) -> None:
        self.device_classes.pop(name, None)

    def upsert_pod(self, pod: Pod) -> None:
        key, node = pod.key, pod.spec.node_name
        if pod.status.phase in ("Succeeded", "Failed") or self.uid_of(key) not in (None, pod.metadata.uid):
            self.remove_pod(key)
        if pod.status.phase in ("Succeeded", "Failed"):
            return None
        if (node or pod.status.nominated_node_name) and not readable(pod):
            return self.block_unreadable_pod(key, node)
        self.unreadable.pop(key, None)
        self.pods[key] = pod
        if node and key in self.promises and self.promises[key].node != node:
            del self.promises[key]
        return None

    def remove_pod(self, key: str) -> None:
        for known in (self.pods, self.promises, self.unreadable):
            known.pop(key, None)

    def block_unreadable_pod(self, key: str, node: str) -> None:
        self.remove_pod(key)
        if node:
            self.unreadable[key] = node

    def assume(self, pod: Pod, node: str, now: float = 0.0, takes: tuple[DeviceShare, ...] = ()) -> None:
        self.promises[pod.key] = AssumedPod(pod, node, takes)

    def forget(self, key: str) -> None:
        if not self.is_bound(key):
            self.promises.pop(key, None)

    # --- reading --------------------------------------------------------------------------------------------------

    def uid_of(self, key: str) -> str | None:
        """Returns the UID of a pod that is assumed or bound."""
        if self.is_bound(key):
            return self.pods[key].metadata.uid
        return self.promises[key].pod.metadata.uid if key in self.promises else None

    def is_bound(self, key: str) -> bool:
        return key in self.pods and self.pods[key].spec.node_name != ""

    def placed(self) -> dict[str, Pod]:
        """Returns the pods that count on a node, each with its `spec.nodeName`."""
        found = {key: pod for key, pod in self.pods.items() if pod.spec.node_name}
        promised = {key: on_node(each.pod, each.node) for key, each in self.promises.items() if key not in found}
        return found | promised

    def infos(self) -> dict[str, NodeInfo]:
        on: dict[str, list[Pod]] = {}
        for pod in self.placed().values():
            on.setdefault(pod.spec.node_name, []).append(pod)
        return {name: NodeInfo(node, tuple(on.get(name, ())), self) for name, node in self.nodes.items()}

    def nominees(self, node: str) -> list[Pod]:
        """Returns the pods that are nominated for a node and not placed yet."""
        placed = self.placed()
        return [p for key, p in self.pods.items() if key not in placed and p.status.nominated_node_name == node]

    def ledger(self) -> Ledger:
        """Returns a ledger built from scratch with these objects."""
        ledger = Ledger()
        for device_class in self.device_classes.values():
            ledger.upsert_device_class(device_class)
        for name, devices in self.devices.items():
            ledger.set_devices(name, devices)
        for node in self.nodes.values():
            ledger.upsert_node(node)
        for pod, name, takes in self.promises.values():
            if name not in self.nodes:  # its node was removed meanwhile
                ledger.upsert_node(Node(metadata=msgspec.structs.replace(pod.metadata, name=name)))
            ledger.assume(pod, name, 0.0, takes=takes)
            if name not in self.nodes:
                ledger.remove_node(name)
        for pod in self.pods.values():
            ledger.upsert_pod(pod)
        for key, name in self.unreadable.items():
            ledger.block_unreadable_pod(key, name)
        return ledger

    def _drop_images(self, node: str) -> None:
        for name, state in list(self.images.items()):
            state.nodes.discard(node)
            if not state.nodes:
                del self.images[name]


class CheckedCluster(NamedTuple):
    """A ledger and its reference, which receive the same events."""

    reference: ReferenceCluster
    ledger: Ledger

    @staticmethod
    def of(nodes: Iterable[Node] = (), pods: Iterable[Pod] = ()) -> "CheckedCluster":
        cluster = CheckedCluster(ReferenceCluster(), Ledger())
        for node in nodes:
            cluster.tell("upsert_node", node)
        for pod in pods:
            cluster.tell("upsert_pod", pod)
        return cluster

    def tell(self, event: str, *args: Any, **options: Any) -> set[int]:
        """Sends an event, named by the ledger's method, to both. Returns the rows that the ledger touched."""
        getattr(self.reference, event)(*args, **options)
        try:
            touched = getattr(self.ledger, event)(*args, **options)
        except Malformed:
            touched = None
        return touched if isinstance(touched, set) else set()


def _read_of(node: Node) -> Any:
    """Returns all that plugins may read of a node. An update that leaves it equal changes nothing."""
    status = node.status
    return (
        node.metadata.uid,
        node.metadata.labels,
        node.spec,
        status.allocatable,
        status.images,
        status.declared_features,
    )


def readable(pod: Pod) -> bool:
    """Whether the pod's requests can be counted."""
    try:
        footprint(pod)
    except Malformed:
        return False
    return True


def on_node(pod: Pod, node: str) -> Pod:
    """Returns the pod as it will be when it is bound."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
