"""Who a pod belongs to: the name and the tier of its tenant, from watched namespaces and Kueue queues.

The tier is the first of these that is set:

    1. the key `tenant.kubenexus.io/tier` of the LocalQueue that the pod names, at most that of its ClusterQueue, or of
       the namespace if the ClusterQueue has none
    2. that key of the ClusterQueue
    3. that label of the namespace
    4. for a pod that names a LocalQueue: a word in the label `tenant.kubenexus.io/name` of the namespace
    5. the pod's priority class, and 6. the pod's own key, if the configuration allows it
    7. bronze

A pod's priority class and its own key can always lower the tier of the first four steps, and never raise it. A queue
that does not exist is ignored, and so is the tier of a LocalQueue whose ClusterQueue does not exist or does not select
its namespace (`spec.namespaceSelector`): anyone who may create LocalQueues can name any ClusterQueue. A namespace that
is not known, or no longer, has no tier.
"""

import re
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.keys import tenant
from kubenexus.api.keys.reading import read_key
from kubenexus.api.keys.values import quoted
from kubenexus.api.kueue import ClusterQueue, LocalQueue
from kubenexus.api.selectors import NOTHING, Selector, compile_selector
from kubenexus.base.errors import Malformed

# By rank: a node that is reserved for a tier takes pods of that rank and above.
RANKS: Final = {"none": 0, "bronze": 1, "silver": 2, "gold": 3}
GOLD, SILVER, BRONZE = tenant.TIERS

_WORDS: Final = {"prod": GOLD, "production": GOLD, "staging": SILVER, "dev": BRONZE}
_BETWEEN_WORDS: Final = re.compile(r"[^a-z0-9]+")
_CLASSES: Final = {
    "high-priority": GOLD,
    "system-cluster-critical": GOLD,
    "system-node-critical": GOLD,
    "medium-priority": SILVER,
    "default-priority": SILVER,
    "low-priority": BRONZE,
    "best-effort": BRONZE,
}
_QUEUE: Final = tenant.QUEUE.key
_POD_KEYS: Final = tenant.POD_TIER.keys
_DOMAIN: Final = tenant.TIER.key.partition("/")[0] + "/"
_MAX_LABELS: Final = 1_000  # that are searched for a mistyped key
_TENANT_KEYS: Final = tenant.TIER.keys | tenant.NAME.keys


class Tenant(NamedTuple):
    """The owner of a pod, in events, metrics and shares. Several namespaces may be one tenant."""

    name: str
    tier: str


class TenantFields(NamedTuple):
    """What the tenant of a pod depends on, besides watched objects.

    queue       the LocalQueue that the pod names, None for none
    class_tier  that of its priority class, None if the class means none
    pod_tier    that of its own key, None for none that is valid
    may_choose  its scheduler lets pods choose a tier
    """

    namespace: str
    queue: str | None
    class_tier: str | None
    pod_tier: str | None
    may_choose: bool


class _Queue(NamedTuple):
    """What is read of a LocalQueue: its ClusterQueue, and its own tier or ""."""

    cluster_queue: str
    tier: str


class _Quota(NamedTuple):
    """What is read of a ClusterQueue: its tier or "", and which namespaces may use it."""

    tier: str
    namespaces: Selector


class _Namespace(NamedTuple):
    """What is read of a namespace: the tenant's name or "", and the tier or ""."""

    name: str
    tier: str


class _Given(NamedTuple):
    """The tenant of a pod before its own fields are read, and what its tier comes from; "": it is the default."""

    tenant: Tenant
    source: str


_UNKNOWN: Final = _Namespace("", "")
_MAX_REMEMBERED: Final = 10_000


class Tenants:
    """The tenants of all pods. Only the ledger and the handlers of watched kinds write here; each change takes the same
    time however many queues a namespace has.

    `own_tier` are the scheduler names whose pods may choose a tier where neither queue nor namespace has one.
    """

    def __init__(self, own_tier: Collection[str] = ()) -> None:
        self._own_tier = frozenset(own_tier)
        self._namespaces: dict[str, _Namespace] = {}
        self._labels: dict[str, Mapping[str, str]] = {}  # of namespaces
        self._local_queues: dict[str, dict[str, _Queue]] = {}
        self._cluster_queues: dict[str, _Quota] = {}
        self._users: dict[str, dict[tuple[str, str], None]] = {}  # by ClusterQueue: its LocalQueues
        # What was worked out, by namespace and by LocalQueue.
        self._alone: dict[str, _Given] = {}
        self._queued: dict[str, dict[str, _Given]] = {}
        self._changed: dict[str, None] = {}
        self._unread: dict[str, str] = {}  # objects whose tier cannot be read (`Namespace ml`), and why
        self._warnings: dict[str, str] = {}  # those that `take_warnings` has not returned yet
        self.version = 0  # grows when pods may have other tenants

    def of(self, pod: Pod) -> Tenant:
        """Returns the tenant of a pod. Called several times for each pod that is signed."""
        given = self._given(pod.metadata.namespace, pod.metadata.labels.get(_QUEUE))
        if given.tenant.tier == BRONZE and (given.source or not self._own_tier):
            return given.tenant
        class_tier, pod_tier = own_tiers(pod)
        return _with_own_tier(given, class_tier, pod_tier, pod.spec.scheduler_name in self._own_tier)

    def states_tier(self, pod: Pod) -> bool:
        """Returns whether the tier of a pod's tenant is stated, and not the default."""
        given = self._given(pod.metadata.namespace, pod.metadata.labels.get(_QUEUE))
        return bool(given.source) or (bool(self._own_tier) and self.of(pod).tier != BRONZE)

    def fields(self, pod: Pod) -> TenantFields:
        """Returns what is needed of a pod to work out its tenant again (`of_fields`). It has none of the pod's texts
        but names, so it is small however long the pod's annotations are."""
        meta, may_choose = pod.metadata, pod.spec.scheduler_name in self._own_tier
        return TenantFields(meta.namespace, meta.labels.get(_QUEUE), *own_tiers(pod), may_choose)

    def may_choose(self, scheduler: str) -> bool:
        """Returns whether pods with this scheduler name may choose a tier."""
        return scheduler in self._own_tier

    def of_fields(self, fields: TenantFields) -> Tenant:
        """Returns the tenant of a pod with these fields."""
        namespace, queue, class_tier, pod_tier, may_choose = fields
        return _with_own_tier(self._given(namespace, queue), class_tier, pod_tier, may_choose)

    def knows(self, namespace: str) -> bool:
        """Returns whether there is such a namespace."""
        return namespace in self._namespaces

    def tier_source(self, pod: Pod) -> str:
        """Returns what the tier of a pod comes from, in words."""
        given, found = self._given(pod.metadata.namespace, pod.metadata.labels.get(_QUEUE)), self.of(pod)
        if found.tier == given.tenant.tier:
            source = "; ".join([given.source or "default", *self._unread_of(pod, given.source)])
            stated = own_tiers(pod)[1]
            above = stated is not None and stated != found.tier and lower(stated, found.tier) == found.tier
            return f"{source}; {stated} of the pod does not count" if above else source
        by_class = _CLASSES.get(pod.spec.priority_class_name) == found.tier
        return "priority class" if by_class else f"key {tenant.POD_TIER.key} of the pod"

    def _unread_of(self, pod: Pod, source: str) -> list[str]:
        """Returns what is not known or cannot be read and would have been used before `source`, the place of the pod's
        tier."""
        namespace, name = pod.metadata.namespace, pod.metadata.labels.get(_QUEUE, "")
        queue = self._local_queues.get(namespace, {}).get(name)
        subjects = {} if source else {f"Namespace {namespace}": "namespace"}
        if queue is not None:
            subjects |= {
                each: each for each in (f"LocalQueue {namespace}/{name}", f"ClusterQueue {queue.cluster_queue}")
            }
        missing = [] if source or self.knows(namespace) else ["its namespace is not known"]
        unread = [(called, self._unread[each]) for each, called in subjects.items() if each in self._unread]
        return missing + [f"{called}: {why}" for called, why in unread]

    def scope(self, pod: Pod) -> str:
        """Returns what the tier of a pod depends on besides the pod. While it is equal, equal pods have equal tiers. An
        ordinary bronze pod has ""."""
        given = self._given(pod.metadata.namespace, pod.metadata.labels.get(_QUEUE))
        if not given.source or (given.tenant.tier == BRONZE and not self._own_tier):
            return ""
        return given.tenant.tier

    def take_changed(self) -> list[str]:
        """Returns the namespaces whose pods may have other tenants since the last call."""
        changed = list(self._changed)
        self._changed.clear()
        return changed

    def take_warnings(self) -> dict[str, str]:
        """Returns the objects whose tier cannot be read, and why, since the last call: each once, and again when the
        reason changes."""
        warnings, self._warnings = self._warnings, {}
        return warnings

    # --- watched objects ------------------------------------------------------------------------------------------

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Sets the labels of a namespace (None: it is gone)."""
        before = self._namespaces.get(name, _UNKNOWN)
        # Any label may be one by which ClusterQueues select namespaces.
        selected = name in self._local_queues and self._labels.get(name) != labels
        if labels is None:
            self._namespaces.pop(name, None)
            self._labels.pop(name, None)
            self._unread.pop(f"Namespace {name}", None)
        else:
            tier = self._read_tier(f"Namespace {name}", labels, {})
            self._namespaces[name] = _Namespace(read_key(tenant.NAME, labels, {}).value or "", tier)
            self._labels[name] = labels
        if labels is None or selected or self._namespaces[name] != before:
            self._alone.pop(name, None)
            self._queued.pop(name, None)
        if selected or self._namespaces.get(name, _UNKNOWN) != before:
            self._changed[name] = None
            self.version += 1

    def set_local_queue(self, queue: LocalQueue) -> None:
        meta, cluster_queue = queue.metadata, queue.spec.cluster_queue
        tier = self._read_tier(f"LocalQueue {meta.key}", meta.labels, meta.annotations)
        self._set_queue(meta.namespace, meta.name, _Queue(cluster_queue, tier))

    def remove_local_queue(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        self._unread.pop(f"LocalQueue {key}", None)
        self._set_queue(namespace, name, None)

    def set_cluster_queue(self, queue: ClusterQueue) -> None:
        """Adds or updates a ClusterQueue. One whose selector cannot be read selects nothing."""
        meta = queue.metadata
        try:
            namespaces, problem = compile_selector(queue.spec.namespace_selector), ""
        except Malformed as error:
            namespaces, problem = NOTHING, f"spec.namespaceSelector: {error}"
        tier = self._read_tier(f"ClusterQueue {meta.name}", meta.labels, meta.annotations, problem)
        self._set_cluster_queue(meta.name, _Quota(tier, namespaces))

    def remove_cluster_queue(self, name: str) -> None:
        self._unread.pop(f"ClusterQueue {name}", None)
        self._set_cluster_queue(name, None)

    def _read_tier(
        self, subject: str, labels: Mapping[str, str], annotations: Mapping[str, str], also: str = ""
    ) -> str:
        """Returns the tier that an object states, or "" if it states none that is valid; that is a warning, and so is
        `also`."""
        read = read_key(tenant.TIER, labels, annotations)
        problem = "; ".join(filter(None, (*read.warnings, also))) or ("" if read.is_set else _unknown_key(labels))
        if not problem:
            self._unread.pop(subject, None)
        elif self._unread.get(subject) != problem:
            self._unread[subject] = self._warnings[subject] = problem
        return read.value if read.is_set else ""

    def _set_queue(self, namespace: str, name: str, queue: _Queue | None) -> None:
        queues = self._local_queues.setdefault(namespace, {})
        before = queues.pop(name, None)
        if before is not None and before != queue:
            users = self._users[before.cluster_queue]
            del users[namespace, name]
            if not users:
                del self._users[before.cluster_queue]
        if queue is not None:
            queues[name] = queue
            self._users.setdefault(queue.cluster_queue, {})[namespace, name] = None
        if not queues:
            del self._local_queues[namespace]
        if before != queue:  # Kueue writes the status of a queue for each of its workloads
            self._forget_queue(namespace, name)

    def _set_cluster_queue(self, name: str, quota: _Quota | None) -> None:
        if self._cluster_queues.get(name) == quota:
            return
        if quota is None:
            del self._cluster_queues[name]
        else:
            self._cluster_queues[name] = quota
        for namespace, queue in self._users.get(name, {}):
            self._forget_queue(namespace, queue)

    def _forget_queue(self, namespace: str, name: str) -> None:
        self._queued.get(namespace, {}).pop(name, None)
        self._changed[namespace] = None
        self.version += 1

    # --- reading --------------------------------------------------------------------------------------------------

    def _given(self, namespace: str, queue: str | None) -> _Given:
        queues = self._local_queues.get(namespace)
        if queues is not None and queue in queues:
            known = self._queued.get(namespace)
            given = None if known is None else known.get(queue)
            return self._of_queue(namespace, queue, queues[queue]) if given is None else given
        return self._alone.get(namespace) or self._of_namespace(namespace)

    def _of_namespace(self, namespace: str) -> _Given:
        read = self._namespaces.get(namespace, _UNKNOWN)
        if len(self._alone) - len(self._namespaces) > _MAX_REMEMBERED:  # pods outlive their namespaces by a moment
            self._alone.clear()
        given = _Given(Tenant(read.name or namespace, read.tier or BRONZE), "namespace label" if read.tier else "")
        self._alone[namespace] = given
        return given

    def _of_queue(self, namespace: str, name: str, queue: _Queue) -> _Given:
        """Returns the tenant of pods that name this LocalQueue. Without a name of its own the tenant has the name of
        the ClusterQueue: LocalQueues of different tenants often have the same."""
        read, most = self._namespaces.get(namespace, _UNKNOWN), self._most(namespace, queue.cluster_queue)
        stated = "" if most is None else queue.tier  # else a tenant who may create LocalQueues would choose its tier
        limit = most or read.tier
        tier, source = lower(stated, limit) if stated and limit else stated or limit, ""
        if tier:
            source = "LocalQueue" if stated else "ClusterQueue" if most else "namespace label"
        elif read.name and most is not None:
            tier, source = _from_words(read.name), "name of the tenant"
        called = read.name or (namespace if most is None else queue.cluster_queue)
        given = _Given(Tenant(called, tier or BRONZE), source)
        self._queued.setdefault(namespace, {})[name] = given
        return given

    def _most(self, namespace: str, cluster_queue: str) -> str | None:
        """Returns the tier of a ClusterQueue, "" for none; None if it does not exist or does not select the
        namespace."""
        quota, labels = self._cluster_queues.get(cluster_queue), self._labels.get(namespace)
        return quota.tier if quota is not None and labels is not None and quota.namespaces.matches(labels) else None


def own_tiers(pod: Pod) -> tuple[str | None, str | None]:
    """Returns the tiers that a pod's priority class and its own key mean."""
    meta, by_class = pod.metadata, pod.spec.priority_class_name
    stated = None
    if not (_POD_KEYS.isdisjoint(meta.labels) and _POD_KEYS.isdisjoint(meta.annotations)):
        stated = read_key(tenant.POD_TIER, meta.labels, meta.annotations).value
    return _CLASSES.get(by_class) if by_class else None, stated


def _with_own_tier(given: _Given, class_tier: str | None, pod_tier: str | None, may_choose: bool) -> Tenant:
    if class_tier is None and pod_tier is None:
        return given.tenant
    tier = given.tenant.tier
    if not given.source:
        tier = (class_tier or pod_tier or BRONZE) if may_choose else BRONZE
    else:
        tier = lower(lower(tier, class_tier or tier), pod_tier or tier)
    return given.tenant if tier == given.tenant.tier else Tenant(given.tenant.name, tier)


def _unknown_key(labels: Mapping[str, str]) -> str:
    """Returns a sentence about the first label in the domain of tenants that is not known, "" if there is none. Looks
    at `_MAX_LABELS`: a namespace has room for 110,000, and all of those take 15 ms."""
    some = islice(labels, _MAX_LABELS)
    unknown = next((key for key in some if key.startswith(_DOMAIN) and key not in _TENANT_KEYS), "")
    return f"label {quoted(unknown)} is not known; the tier is {tenant.TIER.key}" if unknown else ""


def lower(one: str, other: str) -> str:
    """Returns the lower of two tiers."""
    return one if RANKS[one] <= RANKS[other] else other


def _from_words(name: str) -> str:
    """Returns the tier that a tenant's name suggests: `ml-prod` is gold, `product` is bronze like any other."""
    words = set(_BETWEEN_WORDS.split(name.lower()))
    return next((tier for word, tier in _WORDS.items() if word in words), BRONZE)
