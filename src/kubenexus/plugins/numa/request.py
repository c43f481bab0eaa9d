"""What a pod asks of NUMA nodes: what its kubelet has to align, and its own policy."""

import functools
from typing import Any, Final, NamedTuple

from kubenexus.api.classification.workload import WorkloadType
from kubenexus.api.core import Pod
from kubenexus.api.gangs.resolver import declared_gang
from kubenexus.api.keys import gang, numa
from kubenexus.api.keys.entry import KeyEntry
from kubenexus.api.keys.reading import read_key
from kubenexus.api.numa.pod_demand import PodDemand, numa_demand
from kubenexus.api.resource_names import CPU, MEMORY, is_extended
from kubenexus.base.errors import Malformed
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.workload.signed import workload_of
from kubenexus.state.numa.kept_zones import ALL_PODS

NAME: Final = "NUMATopology"
NONE, BEST_EFFORT, RESTRICTED, SINGLE, ISOLATED = "none", "best-effort", "restricted", "single-numa-node", "isolated"
BALANCED: Final = "balanced"
USUAL_WEIGHT: Final = 50
INTENSIVE_MEMORY: Final = 16 << 30  # bytes, and per core a quarter of that
_ENTRIES: Final[tuple[KeyEntry[Any], ...]] = (
    numa.POLICY,
    numa.RESOURCES,
    numa.AFFINITY,
    numa.ANTI_AFFINITY,
    numa.MEMORY_INTENSIVE,
    numa.DISTANCE_WEIGHT,
)
_KEYS: Final = frozenset[str]().union(*(entry.keys for entry in _ENTRIES))
_MAX_KEPT: Final = 256  # characters of a value that are read
MAX_IDS: Final = 64  # of the lists of NUMA nodes; further ones are ignored
MAX_NAMES: Final = 16  # of the list of resources
Texts = tuple[tuple[str, str], ...]


class NumaRequest(NamedTuple):
    """`policy` is the pod's own; `stated`: it is written on the pod. `resources` are those that it binds together,
    empty for the usual ones. `intensive` None: decided by the amount of memory. `pinned`: its kubelet has something to
    align. `gang` is the key of its gang if the members keep off each other's NUMA nodes; `minimum` the number of
    members that should be spread evenly."""

    policy: str = NONE
    stated: bool = False
    resources: tuple[str, ...] = ()
    preferred: tuple[int, ...] = ()
    avoided: tuple[int, ...] = ()
    intensive: bool | None = None
    weight: int = USUAL_WEIGHT
    pinned: bool = False
    gang: str = ""
    minimum: int = 0

    @property
    def alone(self) -> bool:
        """Whether two of these pods cannot share a NUMA node."""
        return self.policy == ISOLATED or self.gang != ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Whose NUMA nodes are kept from this pod (`state.numa.kept_zones`)."""
        return (ALL_PODS, self.gang) if self.gang else (ALL_PODS,)


NOTHING: Final = NumaRequest()


class Wanted(NamedTuple):
    """What a class takes as a whole: whole cores, bytes of memory, devices by resource."""

    cores: int
    memory: int
    devices: tuple[tuple[str, int], ...]


def numa_request(pod: Pod) -> NumaRequest | None:
    """Returns what a pod asks of NUMA nodes, or None if nothing: neither does its kubelet have anything to align, nor
    does the pod state a policy."""
    stated = stated_request(pod)
    pinned = numa_demand(pod) is not None
    if not pinned and not (stated.stated and stated.policy != NONE):
        return None
    return _spread(pod, stated._replace(pinned=pinned))


def stated_request(pod: Pod) -> NumaRequest:
    """Returns the policy of a pod and what belongs to it. Batch and training without one have single-numa-node."""
    meta = pod.metadata
    said = not _KEYS.isdisjoint(meta.annotations) or not _KEYS.isdisjoint(meta.labels)
    stated = _read(_stated(meta.labels), _stated(meta.annotations)) if said else NOTHING
    if not stated.stated:
        batch = workload_of(pod).type in (WorkloadType.BATCH, WorkloadType.TRAINING)
        stated = stated._replace(policy=SINGLE if batch else NONE)
    return stated


def _spread(pod: Pod, request: NumaRequest) -> NumaRequest:
    """Adds how the gang of a pod shares NUMA nodes. `balanced` is a wish: a gang that needs a topology does without."""
    meta = pod.metadata
    if gang.NUMA_SPREAD.keys.isdisjoint(meta.annotations) and gang.NUMA_SPREAD.keys.isdisjoint(meta.labels):
        return request
    spread = read_key(gang.NUMA_SPREAD, meta.labels, meta.annotations).value
    if spread not in (ISOLATED, BALANCED):
        return request
    try:
        declared = declared_gang(pod)
    except Malformed:
        return request
    if declared is None:
        return request
    if spread == ISOLATED:
        return request._replace(gang=declared.key)
    return request if declared.topology.required else request._replace(minimum=declared.minimum)


def request_of(pod: PodClass) -> NumaRequest:
    """Returns what the pods of a class ask for. The runtime hands signed data back as plain tuples."""
    signed = pod.signed.get(NAME)
    return NumaRequest(*signed) if signed else NOTHING


def demand_of(pod: PodClass) -> PodDemand | None:
    """Returns what the class wants of the managers of a kubelet."""
    return pod.cached((NAME, "demand"), lambda: numa_demand(pod.pod))


def wanted_by(pod: PodClass) -> Wanted:
    """Returns the amounts that the pod's own policy binds together."""
    return pod.cached((NAME, "wanted"), lambda: _wanted(pod, request_of(pod)))


def is_intensive(request: NumaRequest, wanted: Wanted) -> bool:
    """Returns whether memory bandwidth matters: above 16 GiB, and above 4 GiB for each core."""
    if request.intensive is not None:
        return request.intensive
    return wanted.memory > INTENSIVE_MEMORY and wanted.memory * 4 > INTENSIVE_MEMORY * max(wanted.cores, 1)


def _wanted(pod: PodClass, request: NumaRequest) -> Wanted:
    amounts = dict(pod.demand.amounts)
    chosen = set(request.resources)
    if chosen:
        amounts = {name: amount for name, amount in amounts.items() if name in chosen}
    devices = tuple((name, amount) for name, amount in sorted(amounts.items()) if is_extended(name))
    return Wanted(-(-amounts.get(CPU, 0) // 1000), amounts.get(MEMORY, 0), devices)


def _stated(texts: dict[str, str]) -> Texts:
    return tuple(sorted([(key, texts[key][:_MAX_KEPT]) for key in _KEYS.intersection(texts)]))


@functools.lru_cache(maxsize=256)
def _read(labels: Texts, annotations: Texts) -> NumaRequest:
    """Returns the request of pods with these texts. Pods of one template have the same."""
    said = dict(labels), dict(annotations)
    policy = read_key(numa.POLICY, *said)
    intensive = read_key(numa.MEMORY_INTENSIVE, *said)
    return NumaRequest(
        policy=policy.value or NONE,
        stated=policy.is_set and policy.value is not None,
        resources=tuple(read_key(numa.RESOURCES, *said).value or ())[:MAX_NAMES],
        preferred=_ids(numa.AFFINITY, said[1]),
        avoided=_ids(numa.ANTI_AFFINITY, said[1]),
        intensive=intensive.value if intensive.is_set else None,
        weight=_weight(read_key(numa.DISTANCE_WEIGHT, *said).value),
    )


def _ids(entry: KeyEntry[Any], annotations: dict[str, str]) -> tuple[int, ...]:
    """Returns the NUMA nodes of a list. What is no number is ignored, and does not make the others unreadable."""
    parts = [part.strip() for part in annotations.get(entry.key, "").split(",")]
    return tuple(sorted({int(part) for part in parts if part.isascii() and part.isdigit() and len(part) < 5}))[:MAX_IDS]


def _weight(value: int | None) -> int:
    return USUAL_WEIGHT if value is None else value
