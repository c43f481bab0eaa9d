"""The naive twin: a rule written a second time, for one pod and one node in plain Python, must give the same answers.

A plugin looks at all nodes at once and its answers are cached; that is fast, and easy to get subtly wrong. Its twin
looks at one node (`NodeInfo`) and is meant to be obviously right:

    class NoBigPods:                                            # a user's rule ...
        name, reads, depends = "NoBigPods", ("spec.containers",), Depends.USAGE
        def filter(self, pod, nodes, verdict): ...

    class NoBigPodsTwin:                                        # ... and its twin
        def filter_one(self, pod: Pod, node: NodeInfo) -> list[tuple[str, Code]]: ...     # [] lets the pod in
        def score_one(self, pod: Pod, node: NodeInfo) -> int | None: ...                  # None: not concerned

    @given(clusters(), pods())                                  # testing.strategies
    def test_no_big_pods(cluster, pod):
        assert_agrees(NoBigPods({}), NoBigPodsTwin(), pod, cluster)

Either method may be missing. `World` is the twin of the ledger: just the objects, told by the same events.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from kubenexus.api.core import DeviceClass, Node, Pod
from kubenexus.api.resources import footprint
from kubenexus.base.errors import Malformed
from kubenexus.base.numbers import IntColumn
from kubenexus.framework.job import ALONE
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.signature import Signer
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, ReasonTable, Skip, Verdict, code_of
from kubenexus.state.devices import Device, Take
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes, OneNode

Refusal = tuple[Code, tuple[str, ...]]
ACCEPTED: Refusal = (Code.SUCCESS, ())
PLENTY = 1 << 40  # more room than any test gives

# --- the cluster as plain objects -------------------------------------------------------------------------------------


class NodeInfo(NamedTuple):
    """A node, the pods that run there or will (each with `spec.nodeName` set), and the rest of the cluster."""

    node: Node
    pods: tuple[Pod, ...]
    world: "World"


class Promise(NamedTuple):
    """A pod that was assumed on a node, as it was then."""

    pod: Pod
    node: str
    takes: tuple[Take, ...] = ()


class ImageState(NamedTuple):
    """An image in the cluster: the size that the first node reported, and the nodes that have it."""

    size: int
    nodes: set[str]


class World:
    """The naive twin of the ledger: what the API server would list, and what was promised and is not bound yet.

    Its methods are called as the ledger's are. `ledger()` builds a fresh one from scratch."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.promises: dict[str, Promise] = {}
        self.unreadable: dict[str, str] = {}
        self.images: dict[str, ImageState] = {}
        self.device_classes: dict[str, DeviceClass] = {}
        self.devices: dict[str, tuple[Device, ...]] = {}

    def node_seen(self, node: Node) -> None:
        self._drop_images(node.metadata.name)
        self.nodes[node.metadata.name] = node
        for image in node.status.images:
            for name in image.names:
                self.images.setdefault(name, ImageState(image.size_bytes, set())).nodes.add(node.metadata.name)

    def node_gone(self, name: str) -> None:
        self._drop_images(name)
        self.nodes.pop(name, None)

    def devices_seen(self, node: str, devices: tuple[Device, ...]) -> None:
        self.devices[node] = devices

    def device_class_seen(self, device_class: DeviceClass) -> None:
        self.device_classes[device_class.metadata.name] = device_class

    def device_class_gone(self, name: str) -> None:
        self.device_classes.pop(name, None)

    def pod_seen(self, pod: Pod) -> None:
        key, node = pod.key, pod.spec.node_name
        if pod.status.phase in ("Succeeded", "Failed") or self.uid_of(key) not in (None, pod.metadata.uid):
            self.pod_gone(key)
        if pod.status.phase in ("Succeeded", "Failed"):
            return
        self.unreadable.pop(key, None)
        if (node or pod.status.nominated_node_name) and not readable(pod):
            self.pods.pop(key, None)
            if node:
                self.unreadable[key] = node
            return
        self.pods[key] = pod
        if node and key in self.promises and self.promises[key].node != node:
            del self.promises[key]

    def pod_gone(self, key: str) -> None:
        for known in (self.pods, self.promises, self.unreadable):
            known.pop(key, None)

    def pod_unreadable(self, key: str, node: str) -> None:
        self.pods.pop(key, None)
        self.unreadable.pop(key, None)
        if node:
            self.unreadable[key] = node

    def sync(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
        listed, seen = list(nodes), list(pods)
        for node in listed:
            self.node_seen(node)
        for pod in seen:
            self.pod_seen(pod)
        for name in self.nodes.keys() - {node.metadata.name for node in listed}:
            self.node_gone(name)
        for key in {*self.pods, *self.promises, *self.unreadable} - {pod.key for pod in seen}:
            self.pod_gone(key)

    def assume(self, pod: Pod, node: str, now: float = 0.0, takes: tuple[Take, ...] = ()) -> None:
        self.promises[pod.key] = Promise(pod, node, takes)

    def forget(self, key: str) -> None:
        if not self.is_bound(key):
            self.promises.pop(key, None)

    # --- reading --------------------------------------------------------------------------------------------------

    def uid_of(self, key: str) -> str | None:
        """The UID of a pod that is assumed or bound."""
        if self.is_bound(key):
            return self.pods[key].metadata.uid
        return self.promises[key].pod.metadata.uid if key in self.promises else None

    def is_bound(self, key: str) -> bool:
        return key in self.pods and self.pods[key].spec.node_name != ""

    def placed(self) -> dict[str, Pod]:
        """Pods that count on a node, each with its `spec.nodeName`."""
        found = {key: pod for key, pod in self.pods.items() if pod.spec.node_name}
        promised = {key: on_node(each.pod, each.node) for key, each in self.promises.items() if key not in found}
        return found | promised

    def infos(self) -> dict[str, NodeInfo]:
        on: dict[str, list[Pod]] = {}
        for pod in self.placed().values():
            on.setdefault(pod.spec.node_name, []).append(pod)
        return {name: NodeInfo(node, tuple(on.get(name, ())), self) for name, node in self.nodes.items()}

    def nominees(self, node: str) -> list[Pod]:
        """Pods that wait for a node and are not placed yet."""
        placed = self.placed()
        return [p for key, p in self.pods.items() if key not in placed and p.status.nominated_node_name == node]

    def ledger(self) -> Ledger:
        """A ledger built from scratch out of these objects."""
        ledger = Ledger()
        for device_class in self.device_classes.values():
            ledger.device_class_seen(device_class)
        for name, devices in self.devices.items():
            ledger.devices_seen(name, devices)
        for node in self.nodes.values():
            ledger.node_seen(node)
        for pod, name, takes in self.promises.values():
            if name not in self.nodes:  # its node went away under it
                ledger.node_seen(Node(metadata=msgspec.structs.replace(pod.metadata, name=name)))
            ledger.assume(pod, name, 0.0, takes=takes)
            if name not in self.nodes:
                ledger.node_gone(name)
        for pod in self.pods.values():
            ledger.pod_seen(pod)
        for key, name in self.unreadable.items():
            ledger.pod_unreadable(key, name)
        return ledger

    def _drop_images(self, node: str) -> None:
        for name, state in list(self.images.items()):
            state.nodes.discard(node)
            if not state.nodes:
                del self.images[name]


class Cluster(NamedTuple):
    """A ledger and its twin, told the same."""

    world: World
    ledger: Ledger

    @staticmethod
    def of(nodes: Iterable[Node] = (), pods: Iterable[Pod] = ()) -> "Cluster":
        cluster = Cluster(World(), Ledger())
        for node in nodes:
            cluster.tell("node_seen", node)
        for pod in pods:
            cluster.tell("pod_seen", pod)
        return cluster

    def tell(self, event: str, *args: Any, **options: Any) -> set[int]:
        """An event, by the name of the ledger's method, to both of them. Returns the rows that the ledger touched."""
        getattr(self.world, event)(*args, **options)
        try:
            touched = getattr(self.ledger, event)(*args, **options)
        except Malformed:
            touched = None
        return touched if isinstance(touched, set) else set()


def readable(pod: Pod) -> bool:
    """Whether what the pod takes can be counted at all."""
    try:
        footprint(pod)
    except Malformed:
        return False
    return True


def on_node(pod: Pod, node: str) -> Pod:
    """The pod as it will be when it is bound."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


# --- comparing --------------------------------------------------------------------------------------------------------


class Answers(NamedTuple):
    """What a rule says about each node, by name. `scores` is None when it is not concerned or the attempt fails."""

    refusals: dict[str, Refusal]
    scores: dict[str, int] | None = None
    failed: bool = False


def assert_agrees(plugin: Any, twin: Any, pod: Pod, cluster: Cluster) -> None:
    """Raise AssertionError unless plugin and twin say the same about every node, however the nodes are shown: all at
    once, some of them, or one."""
    expected = naive_answers(twin, pod, cluster.world)
    for shown, view in _views(plugin, cluster.ledger):
        found = vector_answers(plugin, pod, cluster.ledger, view)
        _compare(plugin.name, "refusals", shown, found.refusals, expected.refusals, hasattr(twin, "filter_one"))
        if hasattr(twin, "score_one"):
            told, wanted = ((a.failed, a.scores or {}, a.scores is None) for a in (found, expected))
            _compare(plugin.name, "scores", shown, told[1], wanted[1], True)
            if (told[0], told[2]) != (wanted[0], wanted[2]):
                raise AssertionError(
                    f"{plugin.name} on {shown}: (fails, skips) is {told[::2]}, its twin's {wanted[::2]}"
                )


def naive_answers(twin: Any, pod: Pod, world: World) -> Answers:
    """The twin's answers, node by node."""
    refusals, scores, failed = {}, {}, False
    for name, info in world.infos().items():
        if hasattr(twin, "filter_one"):
            reasons = tuple(Reason(text, code) for text, code in twin.filter_one(pod, info))
            refusals[name] = _refusal(reasons)
        if hasattr(twin, "score_one"):
            try:
                scores[name] = twin.score_one(pod, info)
            except Malformed:
                failed = True
    concerned = not failed and None not in scores.values()
    return Answers(refusals, scores if concerned else None, failed)


def vector_answers(plugin: Any, pod: Pod, ledger: Ledger, view: Nodes | None = None) -> Answers:
    """The plugin's answers over a view, asked without any cache."""
    view = view or Nodes(ledger.nodes)
    columns, pod_class = ledger.nodes, class_of(pod, plugin)
    rows = _rows(view, columns.size)
    bits, raw, table = _filtered(plugin, pod_class, view), _scored(plugin, pod_class, view), ReasonTable()
    if isinstance(bits, NodeVerdict):
        table = bits.table
    refusals, scores = {}, {}
    for i, row in enumerate(rows):
        if columns.alive[row]:
            refusals[columns.names[row]] = _refusal(table.read(_at(bits.bits, i) if bits else 0))
            scores[columns.names[row]] = _at(raw, i)
    return Answers(refusals, None if raw is None or isinstance(raw, Verdict) else scores, isinstance(raw, Verdict))


def assert_room(plugin: Any, pod: Pod, ledger: Ledger, most: int = 12) -> None:
    """Raise unless `room` says how often the pod can be placed on each accepted row before the filter refuses it."""
    columns, pod_class = ledger.nodes, class_of(pod, plugin)
    room: IntColumn = np.full(columns.size, PLENTY, np.int64)
    plugin.room(pod_class, Nodes(columns), room)
    accepted = [name for name, said in vector_answers(plugin, pod, ledger).refusals.items() if said == ACCEPTED]
    for name in accepted:
        row = columns.row_of[name]
        placed = 0
        with ledger.attempt() as attempt:
            while placed < most:
                attempt.lay(row, pod_class.footprint)
                placed += 1
                if vector_answers(plugin, pod, ledger, Nodes(columns, np.array([row]))).refusals[name] != ACCEPTED:
                    break
        if min(int(room[row]), most) != placed:
            raise AssertionError(f"{plugin.name}: room on {name} is {room[row]}, but {placed} pods go there")


def class_of(pod: Pod, plugin: Any) -> PodClass:
    """The pod's class as this plugin alone would have it, with its pins left in."""
    signer = Signer(plugin.reads)
    signature = signer.sign(pod)
    return PodClass(signature, signer.specimen(signature)[0])


def _views(plugin: Any, ledger: Ledger) -> Iterator[tuple[str, Nodes]]:
    columns = ledger.nodes
    yield "all rows", Nodes(columns)
    yield "every other row, backwards", Nodes(columns, np.arange(columns.size)[::-2].copy())
    for row in range(columns.size):
        yield f"row {row}", Nodes(columns, np.array([row]))
        if getattr(plugin, "scalar", False) and columns.alive[row]:
            yield f"row {row} as plain numbers", OneNode(columns, row)


def _rows(view: Nodes, size: int) -> list[int]:
    if isinstance(view, OneNode):
        return [view.row]
    return list(range(size)) if view.rows is None else [int(row) for row in view.rows]


def _filtered(plugin: Any, pod: PodClass, view: Nodes) -> NodeVerdict | None:
    """None when the plugin filters nothing here."""
    if not hasattr(plugin, "filter"):
        return None
    if hasattr(plugin, "prepare") and isinstance(plugin.prepare(pod, view), Skip):
        return None
    verdict = NodeVerdict(ReasonTable())
    plugin.filter(pod, view, verdict)
    return verdict


def _scored(plugin: Any, pod: PodClass, view: Nodes) -> Any:
    raw = plugin.score(pod, view, ALONE) if hasattr(plugin, "score") else None
    return None if isinstance(raw, Skip) else raw


def _at(column: Any, i: int) -> int:
    """One value of a column, or of what stands for a column of equal ones. Floats are truncated, as the runtime does."""
    if column is None or isinstance(column, Verdict):
        return 0
    return int(column) if np.ndim(column) == 0 else int(column[i])


def _refusal(reasons: tuple[Reason, ...]) -> Refusal:
    return (code_of(reasons), tuple(sorted(reason.text for reason in reasons))) if reasons else ACCEPTED


def _compare(plugin: str, aspect: str, shown: str, found: dict[str, Any], twin: dict[str, Any], asked: bool) -> None:
    wrong = [f"  {n}: {found[n]}, its twin says {twin.get(n)}" for n in found if asked and found[n] != twin.get(n)]
    if wrong:
        raise AssertionError("\n".join([f"{plugin}'s {aspect} on {shown}:", *wrong]))
