"""The tree of queues, and what each queue and namespace uses: the sum over the assumed and bound pods of the ledger.

The ledger calls `count` where it enters and removes records, so each way on which a pod comes or goes is counted once.
A change costs O(depth). Without queues nothing is counted.

A change of a queue, or of a namespace's queue, only marks the tree. It is built again when it is next read: then the
sums of queues are made from those of namespaces, and no pod is counted again.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kubenexus.api.core import Pod
from kubenexus.api.keys.gang import KUEUE_WORKLOAD
from kubenexus.api.queues.queue import Queue
from kubenexus.api.queues.settings import DEFAULT_QUEUE, QueueSettings, queue_settings
from kubenexus.api.resource_names import PODS, Amounts
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord
from kubenexus.state.queues.limits import ReachedLimit, reached, reached_with_held
from kubenexus.state.queues.linked_queues import ROOT, link_queues
from kubenexus.state.queues.namespace_queues import NamespaceQueues
from kubenexus.state.queues.queue_node import QueueNode
from kubenexus.state.queues.tier_usage import TierUsage

MAX_QUEUES: Final = 10_000
_ONE_POD: Final = (PODS, 1)


class QueueTree:
    """All queues. `is_active`: there are some. `version` grows when the tree is built again, `totals_version` when the
    cluster has other amounts. `changed` are the queues whose own namespaces use more or less than at the last look,
    `freed` the namespaces that use less, and `freed_workloads` the Workloads of Kueue whose pods do, by namespace and
    name; the queue empties these. `kueue_admits` returns how much the pods of the Workload that a pod names may use."""

    def __init__(
        self,
        columns: NodeColumns,
        pods: Mapping[str, PodRecord],
        kueue_admits: Callable[[Pod], Mapping[str, int]] = lambda pod: {},
    ) -> None:
        self._columns, self._pods, self._kueue_admits = columns, pods, kueue_admits
        self._settings: dict[str, QueueSettings] = {}
        self._queues: dict[str, QueueNode] = {}
        self._namespaces: dict[str, QueueNode] = {}
        self._map = NamespaceQueues()
        self._tiers = TierUsage(columns)
        self._outdated = self._keeps = False
        self._nodes_read = -1
        self._warnings: dict[str, str] = {}
        self._warned: dict[str, str] = {}
        self._object_warnings: dict[str, str] = {}
        self._fixed: set[str] = set()
        self.root = QueueNode(ROOT)
        self.totals: dict[str, float] = {}
        self._capacity: dict[str, float] = {}  # the totals, and those of hardware tiers
        self.is_active = False
        self.version = self.totals_version = 0
        self.changed: dict[QueueNode, None] = {}
        self.freed: dict[QueueNode, None] = {}
        self.freed_workloads: dict[tuple[str, str], None] = {}
        self._of_workloads: dict[tuple[str, str], dict[str, int]] = {}  # what the pods of each use on nodes

    # --- queues and namespaces ------------------------------------------------------------------------------------

    def fix(self, queues: Iterable[Queue]) -> None:
        """Adds the queues of the configuration. Objects of the same names do not count. Raises Malformed."""
        for queue in queues:
            self.set_object(queue)
            self._fixed.add(queue.metadata.name)

    def set_object(self, queue: Queue) -> None:
        """Adds or changes a queue by its object. Raises Malformed and then changes nothing."""
        name = queue.metadata.name
        if name in self._fixed:
            self._object_warnings[f"Queue {name}"] = (
                "the configuration has a queue of this name: the object has no effect"
            )
            return
        self.set_queue(queue_settings(name, queue.spec))

    def remove_object(self, name: str) -> None:
        self._object_warnings.pop(f"Queue {name}", None)
        if name not in self._fixed:
            self.remove_queue(name)

    def set_queue(self, settings: QueueSettings) -> None:
        """Adds or changes a queue. The first one makes all pods be counted."""
        if self._settings.get(settings.name) == settings:
            return
        if settings.name not in self._settings and len(self._settings) >= MAX_QUEUES:
            self._object_warnings[f"Queue {settings.name}"] = f"there are {MAX_QUEUES} queues already"
            return
        self._settings[settings.name] = settings
        self._outdated = True
        if not self.is_active:
            self.is_active = True
            for record in self._pods.values():
                self.count(record, +1)

    def remove_queue(self, name: str) -> None:
        if self._settings.pop(name, None) is None:
            return
        self._outdated = True
        if not self._settings:
            self.is_active = self._outdated = False
            self._queues, self._namespaces, self.root = {}, {}, QueueNode(ROOT)
            self._map.set_queues(())
            self._tiers.reset(())
            self.changed.clear()
            self.freed.clear()
            self.freed_workloads.clear()
            self._of_workloads.clear()
            self.version += 1

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Sets the labels of a namespace (None: it is gone)."""
        if self._map.set_namespace(name, labels) and name in self._namespaces:
            self._outdated = True
        if labels is None and name in self._namespaces and not self._namespaces[name].used:
            self._drop(name)

    def take_warnings(self) -> dict[str, str]:
        """Returns what is wrong with queues as the tree was last built, by queue: each once, and again when it
        changes."""
        if not (self._warnings or self._object_warnings or self._warned):
            return {}
        warnings = self._warnings | self._object_warnings
        fresh = {name: problem for name, problem in warnings.items() if self._warned.get(name) != problem}
        self._warned = warnings
        return fresh

    @property
    def has_tiers(self) -> bool:
        """Whether some queue has an amount of a hardware tier."""
        self.settle()
        return bool(self._tiers.names)

    def on_node(self, node: str, amounts: Amounts) -> Amounts:
        """Returns what a pod with these requests uses on a node: with the pod itself, and with what counts in the
        hardware tier of the node."""
        whole = (*amounts, _ONE_POD)
        return (*whole, *self._tiers.of_node(node, whole)) if self._tiers.names else whole

    def by_tier(self, amounts: Amounts) -> list[Amounts]:
        """Returns amounts by the names that they have in each hardware tier that counts."""
        return [self._tiers.of_tier(tier, amounts) for tier in self._tiers.tiers]

    @property
    def is_outdated(self) -> bool:
        """Whether queues or namespaces changed since the tree was last read."""
        return self._outdated

    # --- usage ----------------------------------------------------------------------------------------------------

    def count(self, record: PodRecord, sign: int) -> None:
        """Counts a pod that was assumed or bound (+1), or is gone (-1). Called only while the tree is active."""
        amounts, name = (*record.footprint.amounts, _ONE_POD), record.namespace
        if record.kueue_workload:
            self._count_workload((name, record.kueue_workload), amounts, sign)
        if self._tiers.names:
            amounts = (*amounts, *self._tiers.count(record.node, name, amounts, sign))
        self._add(name, amounts, sign)

    def _add(self, name: str, amounts: Amounts, sign: int) -> None:
        """Adds what a namespace uses more or less, to all queues above it as well. O(depth)."""
        namespace = self._namespaces.get(name)
        if namespace is None:
            namespace = self._open(name)
        if self._outdated:
            namespace.add(amounts, sign)
            return
        node: QueueNode | None = namespace
        while node is not None:
            node.add(amounts, sign)
            if self._keeps:
                node.hold()
            node = node.parent
        if namespace.parent is not None:
            self.changed[namespace.parent] = None
        if sign < 0:
            self.freed[namespace] = None
            if not namespace.used and name not in self._map.labels:
                self._drop(name)

    def _count_workload(self, workload: tuple[str, str], amounts: Amounts, sign: int) -> None:
        used = self._of_workloads.setdefault(workload, {})
        for name, amount in amounts:
            used[name] = used.get(name, 0) + sign * amount
        if not used[PODS]:
            del self._of_workloads[workload]
        if sign < 0:
            self.freed_workloads[workload] = None

    def reached_limit(self, namespace: str, asked: Amounts, pods: int) -> ReachedLimit | None:
        """Returns the limit that so much more for a namespace would exceed, the lowest in the tree; or None. A resource
        of which the job asks nothing is not looked at. Limits of hardware tiers count if all tiers are closed."""
        wanted = (*asked, (PODS, pods)) if pods else asked
        found = self._reached(self.namespace(namespace), wanted)
        return found if found is not None or not self._tiers.names else self._all_closed(namespace, asked, pods)

    def closed_tiers(self, namespace: str, asked: Amounts, pods: int) -> dict[str, ReachedLimit]:
        """Returns the hardware tiers on whose nodes a job would exceed a limit, if it was there as a whole."""
        found: dict[str, ReachedLimit] = {}
        node, wanted = self.namespace(namespace), (*asked, (PODS, pods)) if pods else asked
        for tier in self._tiers.tiers:
            here = self._tiers.of_tier(tier, wanted)
            limit = self._reached(node, here) if here else None
            if limit is not None:
                found[tier] = limit
        return found

    def _all_closed(self, namespace: str, asked: Amounts, pods: int) -> ReachedLimit | None:
        """Returns the limit of a tier, if those of all tiers are reached that have what the job asks for."""
        closed = self.closed_tiers(namespace, asked, pods)
        if not closed:
            return None
        if any([tier not in closed for tier in self._tiers.offering((*asked, (PODS, pods)), self._capacity)]):  # noqa: C419
            return None
        limits = tuple(closed.values())
        return limits[0]._replace(tiers=limits)

    def _reached(self, namespace: QueueNode, wanted: Amounts) -> ReachedLimit | None:
        return reached_with_held(namespace, wanted, self._capacity) if self._keeps else reached(namespace, wanted)

    def beyond_admitted(self, pod: Pod, asked: Amounts, pods: int) -> tuple[Amounts, int]:
        """Returns what of a job with this pod limits here count for: the resources of which Kueue admitted less for the
        Workload that the pod names than its pods on nodes and the job use in sum. So any number of jobs may name a
        Workload, and what it was admitted for goes past a limit once."""
        admitted = self._kueue_admits(pod)
        if not admitted:
            return asked, pods
        workload = pod.metadata.namespace, pod.metadata.annotations[KUEUE_WORKLOAD.key]
        used = self._of_workloads.get(workload, {})
        left = tuple([each for each in asked if used.get(each[0], 0) + each[1] > admitted.get(each[0], 0)])
        return left, pods if used.get(PODS, 0) + pods > admitted[PODS] else 0

    # --- reading --------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Brings the tree and the amounts of the cluster up to date. Called before it is read; mostly two
        comparisons."""
        if self._outdated:
            self._outdated = False
            self._build()
        if self._nodes_read != self._columns.node_changes.mark:
            self._nodes_read = self._columns.node_changes.mark
            for change in self._tiers.moved() if self._tiers.names else ():
                self._add(*change)
            self._read_totals()

    def namespace(self, name: str) -> QueueNode:
        """Returns the node of a namespace, below its queue."""
        self.settle()
        return self._namespaces.get(name) or self._open(name)

    def queue_of(self, namespace: str) -> QueueNode:
        """Returns the queue that takes the jobs of a namespace."""
        found = self.namespace(namespace).parent
        return self.root if found is None else found

    def refresh_shares(self, nodes: Iterable[QueueNode]) -> None:
        """Computes the shares of these queues and of all above them; the root has no siblings."""
        for each in nodes:
            node = each
            while node.parent is not None:
                node.current = node.share(self.totals)
                node = node.parent

    def refresh_all_shares(self) -> None:
        for node in self._queues.values():
            node.current = node.share(self.totals)
            if node.own is not None:
                node.own.current = node.own.share(self.totals)

    def queues(self) -> Iterable[QueueNode]:
        """Returns all queues, those without settings too, in order of their names."""
        self.settle()
        return [self._queues[name] for name in sorted(self._queues)]

    def namespaces(self) -> Iterable[QueueNode]:
        """Returns the namespaces with pods or jobs."""
        self.settle()
        return self._namespaces.values()

    def is_mapped(self, namespace: str) -> bool:
        """Whether a queue takes the jobs of the namespace, and not the one for all others."""
        return self._map.queue_of(namespace) != DEFAULT_QUEUE

    # --- building -------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        """Builds the tree from the settings, and the sums of queues from those of namespaces."""
        left_out = self._map.set_queues(self._settings.values())
        self._warnings = {f"Queue {name}": "its namespaceSelector does not count: too many queues" for name in left_out}
        linked = link_queues(self._settings, self._queues)
        self.root, self._queues = linked.root, linked.queues
        self._warnings |= linked.warnings
        self._keeps = any(settings.kept for settings in self._settings.values())
        self._count_tiers({name for settings in self._settings.values() for name in settings.tier_resources})
        for namespace in self._namespaces.values():
            self._place(namespace)
            for above in () if namespace.parent is None else namespace.parent.path():
                above.add(tuple(namespace.used.items()), +1)
        if self._keeps:
            for node in reversed(linked.ordered):
                node.hold()
        self.version += 1
        self.changed.clear()
        self.freed.clear()

    def _count_tiers(self, names: set[str]) -> None:
        """Counts what namespaces use of these resources of hardware tiers, if others were counted before. O(pods)."""
        if names == self._tiers.names:
            return
        for namespace in self._namespaces.values():
            namespace.used = {name: amount for name, amount in namespace.used.items() if name not in self._tiers.names}
        self._tiers.reset(names)
        self._nodes_read = -1
        for record in self._pods.values() if names else ():
            amounts = self._tiers.count(record.node, record.namespace, (*record.footprint.amounts, _ONE_POD), +1)
            self._namespaces[record.namespace].add(amounts, +1)

    def _open(self, name: str) -> QueueNode:
        namespace = self._namespaces[name] = QueueNode(name, is_namespace=True)
        if not self._outdated:
            self._place(namespace)
        return namespace

    def _place(self, namespace: QueueNode) -> None:
        queue = self._queues[self._map.queue_of(namespace.name)]
        if queue.children:
            if queue.own is None:
                queue.own = QueueNode(queue.name, queue)
            queue = queue.own
        namespace.parent = queue
        settings = self._settings.get(queue.name)
        namespace.most = {} if settings is None else settings.namespace_limit

    def _drop(self, name: str) -> None:
        self._namespaces.pop(name).most = {}
        self._map.forget(name)

    def _read_totals(self) -> None:
        resources = self._columns.resources
        sums = resources.alloc.sum(axis=1, dtype=float).tolist()
        totals = {name: sums[r] for name, r in resources.index.items() if name and sums[r] > 0}
        capacity = totals | self._tiers.totals()
        if capacity != self._capacity:
            self.totals, self._capacity = totals, capacity
            self.totals_version += 1
