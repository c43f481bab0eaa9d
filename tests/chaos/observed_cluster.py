"""The cluster as the checker sees it: pods, nodes and the lease, change by change, each with its resourceVersion."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.amounts import Amounts, amounts, asked_by, left

Object = Mapping[str, Any]
ENDED = ("Succeeded", "Failed")
NAME = "pod-group.scheduling.kubenexus.io/name"
LEAST = "pod-group.scheduling.kubenexus.io/min-available"
MONSTER = "chaos/monster"  # a label
STUBBORN = "chaos/stubborn"  # a label


@dataclass(frozen=True)
class PodSeen:
    """`bound_at` is the resourceVersion at which it was first seen on its node."""

    key: str
    uid: str
    scheduler: str
    node: str
    asks: Amounts
    bound_at: int = 0
    reason: str = ""  # of PodScheduled=False
    gated: bool = False
    leaving: bool = False
    started: bool = False
    monster: bool = False  # so large that the scheduler may refuse it for its size alone
    gang: str = ""  # namespace/name, if it is a member of one
    needs: int = 0  # members that its gang needs, if the pod says so itself
    priority: int = 0
    nominated: str = ""  # a node that is being freed for it
    preempted: bool = False  # a scheduler evicted it for another
    stubborn: bool = False  # its kubelet does not end it

    @property
    def waits(self) -> bool:
        return not self.node and not self.gated and not self.leaving


@dataclass(frozen=True)
class NodeSeen:
    name: str
    has: Amounts
    usable: bool


@dataclass
class ObservedCluster:
    """Pods by uid: one that is made again under its old name is another."""

    pods: dict[str, PodSeen] = field(default_factory=dict)
    nodes: dict[str, NodeSeen] = field(default_factory=dict)
    on_node: dict[str, dict[str, PodSeen]] = field(default_factory=dict)
    holders: dict[int, str] = field(default_factory=dict)  # who held the lease, from which resourceVersion
    history: list[PodSeen] = field(default_factory=list)  # every pod as it was when it got its node
    now: float = 0.0  # seconds, when the last change was seen
    minimums: dict[str, int] = field(default_factory=dict)  # members that gangs need, by the word of their PodGroups
    gangs: dict[str, dict[str, PodSeen]] = field(default_factory=dict)  # the members of each gang
    nominees: dict[str, tuple[int, float]] = field(default_factory=dict)  # priority, and until when it was nominated
    begun: dict[str, float] = field(default_factory=dict)  # gangs that have too few on nodes, and since when
    whole: set[str] = field(default_factory=set)  # gangs that have had enough since their first bind

    def on(self, node: str) -> list[PodSeen]:
        """The pods on a node, in the order in which they came."""
        return sorted(self.on_node.get(node, {}).values(), key=lambda pod: pod.bound_at)

    def free(self, node: str) -> Amounts:
        return left(self.nodes[node].has, (pod.asks for pod in self.on_node.get(node, {}).values()))

    def put(self, uid: str, pod: PodSeen | None) -> PodSeen | None:
        """The pod as it is now, None if it is gone. Returns what it was."""
        old = self.pods.pop(uid, None)
        if old is not None and old.node:
            del self.on_node[old.node][uid]
        if old is not None and old.gang:
            del self.gangs[old.gang][uid]
        if pod is not None:
            self.pods[uid] = pod
            if pod.gang:
                self.gangs.setdefault(pod.gang, {})[uid] = pod
            if pod.node:
                self.on_node.setdefault(pod.node, {})[uid] = pod
                if old is None or not old.node:
                    self.history.append(pod)
        return old

    def waiting(self, scheduler: str) -> Iterator[PodSeen]:
        return (pod for pod in self.pods.values() if pod.waits and pod.scheduler == scheduler)

    def needed(self, gang: str) -> int:
        """0 if nobody has said so yet."""
        said = [pod.needs for pod in self.gangs.get(gang, {}).values()]
        return max([self.minimums.get(gang, 0), *said])

    @property
    def bound(self) -> int:
        return sum(map(len, self.on_node.values()))

    def free_amounts(self) -> dict[str, Amounts]:
        """What is left on each node that takes pods."""
        return {node.name: self.free(node.name) for node in self.nodes.values() if node.usable}


def pod_seen(item: Object, old: PodSeen | None) -> PodSeen | None:
    """None once it has ended: it takes no room any more."""
    meta, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    if status.get("phase") in ENDED:
        return None
    node = spec.get("nodeName") or ""
    known = old is not None and old.node == node
    why: Object = next((c for c in status.get("conditions") or () if c["type"] == "PodScheduled"), {})
    return PodSeen(
        key=f"{meta['namespace']}/{meta['name']}",
        uid=meta["uid"],
        scheduler=spec["schedulerName"],
        node=node,
        asks=old.asks if old is not None else asked_by(item),
        bound_at=old.bound_at if known and old is not None else int(meta["resourceVersion"]),
        reason=why.get("reason", "") if why.get("status") == "False" else "",
        gated=bool(spec.get("schedulingGates")),
        leaving=bool(meta.get("deletionTimestamp")),
        started=status.get("phase") == "Running",
        monster=MONSTER in (meta.get("labels") or {}),
        gang=_gang(item),
        needs=int((meta.get("labels") or {}).get(LEAST, 0)),
        priority=spec.get("priority") or 0,
        nominated=status.get("nominatedNodeName") or "",
        preempted=any(c.get("reason") == "PreemptionByScheduler" for c in status.get("conditions") or ()),
        stubborn=STUBBORN in (meta.get("labels") or {}),
    )


def _gang(item: Object) -> str:
    meta, group = item["metadata"], item["spec"].get("schedulingGroup") or {}
    name = group.get("podGroupName") or (meta.get("labels") or {}).get(NAME)
    return f"{meta['namespace']}/{name}" if name else ""


def node_seen(item: Object) -> NodeSeen:
    spec = item.get("spec") or {}
    usable = not spec.get("unschedulable") and not spec.get("taints")
    return NodeSeen(item["metadata"]["name"], amounts(item["status"].get("allocatable")), usable)
