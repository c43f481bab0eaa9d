"""What a pod asks of the managers of a kubelet, container by container."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from kubenexus.api.core import Container, Pod, ResourceList, ResourceRequirements
from kubenexus.api.quantity import NANO, to_milli, to_nano, to_units
from kubenexus.api.resource_names import CPU, MEMORY, is_extended

MAX_CONTAINERS: Final = 64  # of a pod whose NUMA nodes are predicted; what each gets takes up to a millisecond
MAX_LIMITS: Final = 2_000  # of all its containers; 60,000 take 170 ms to read, and no pod with so many is placed
_FEW: Final = 8
_MAX_KEPT: Final = 2048  # characters of what a pod asks for that are remembered
_MAX_REMEMBERED: Final = 4096
GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
_BEST_EFFORT: Final = "BestEffort"


_NOT_YET: Any = object()
_remembered: dict[Any, "PodDemand | None"] = {}  # pods of one template ask for the same


class ContainerDemand(msgspec.Struct, frozen=True, gc=False):
    """What one container wants. `cpus` are exclusive ones. `memory` None: an amount is no whole number of bytes."""

    name: str = ""
    init: bool = False
    sidecar: bool = False
    cpus: int = 0
    memory: tuple[tuple[str, int], ...] | None = ()
    devices: tuple[tuple[str, int], ...] = ()

    @property
    def leaves_for_reuse(self) -> bool:
        """Whether later containers may use what this one had: it ends before they start."""
        return self.init and not self.sidecar


class PodDemand(msgspec.Struct, frozen=True, gc=False):
    """All containers in the order in which a kubelet allocates for them, and what the pod wants as a whole."""

    containers: tuple[ContainerDemand, ...] = ()
    cpus: int = 0
    memory: tuple[tuple[str, int], ...] | None = ()
    devices: tuple[tuple[str, int], ...] = ()

    @property
    def cares(self) -> bool:
        """Whether any manager has anything to allocate."""
        return bool(self.cpus or self.memory is None or self.memory or self.devices) or any(
            each.cpus or each.memory is None or each.memory or each.devices for each in self.containers
        )


def numa_demand(pod: Pod) -> PodDemand | None:
    """Returns what a pod asks of the managers, or None if nothing. Called for each pod: a pod without limits, as most
    are, is neither Guaranteed nor has devices."""
    if not any([container.resources.limits for container in pod.spec.containers]):  # noqa: C419
        return None
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    if len(containers) > MAX_CONTAINERS or sum([len(each.resources.limits or ()) for each in containers]) > MAX_LIMITS:
        return None
    key = _key(pod)
    if key is None:
        return _caring(pod)
    found: PodDemand | None = _remembered.get(key, _NOT_YET)
    if found is _NOT_YET:
        if len(_remembered) >= _MAX_REMEMBERED:
            _remembered.clear()
        found = _remembered[key] = _caring(pod)
    return found


def _caring(pod: Pod) -> PodDemand | None:
    found = pod_demand(pod)
    return found if found.cares else None


def _key(pod: Pod) -> Any:
    """Returns what the demand of a pod depends on, the same for pods of one template; None for unusual pods, which are
    not remembered."""
    spec = pod.spec
    if spec.resources is not None or len(spec.containers) + len(spec.init_containers) > _FEW:
        return None
    parts: list[Any] = [len(spec.init_containers)]
    for container in (*spec.init_containers, *spec.containers) if spec.init_containers else spec.containers:
        requests, limits = container.resources.requests or {}, container.resources.limits or {}
        if len(requests) + len(limits) > 2 * _FEW:
            return None
        parts += (container.name, container.restart_policy, *requests.items(), None, *limits.items())
    return tuple(parts) if _size(parts) <= _MAX_KEPT else None


def _size(parts: list[Any]) -> int:
    size = 0
    for part in parts:
        if type(part) is str:
            size += len(part)
        elif type(part) is tuple:
            size += len(part[0]) + (len(part[1]) if type(part[1]) is str else 20)
    return size


def pod_demand(pod: Pod) -> PodDemand:
    """Returns what a pod asks of the managers. Raises Malformed for a text that is no quantity."""
    pinned = qos_class(pod) == GUARANTEED and not _has_pod_level_resources(pod)
    containers = tuple(_demands(pod, pinned))
    memory: tuple[tuple[str, int], ...] | None = None
    if all(each.memory is not None for each in containers):
        # Only types that an app container asks for count for the pod as a whole.
        types = {kind for each in containers if not each.init for kind, _ in each.memory or ()}
        memory = _totals([(each, each.memory or ()) for each in containers], types)
    listed = [(each, each.devices) for each in containers]
    devices = _totals(listed, {resource for _, amounts in listed for resource, _ in amounts})
    return PodDemand(containers, _total((each, each.cpus) for each in containers), memory, devices)


def qos_class(pod: Pod) -> str:
    """Returns the QoS class of a pod (`ComputePodQOS`)."""
    if pod.spec.resources is not None and _has_pod_level_resources(pod):
        return _qos(pod.spec.resources)
    classes = {_qos(container.resources) for container in (*pod.spec.init_containers, *pod.spec.containers)}
    return classes.pop() if len(classes) == 1 else BURSTABLE if classes else _BEST_EFFORT


def _demands(pod: Pod, pinned: bool) -> Iterator[ContainerDemand]:
    for init, containers in ((True, pod.spec.init_containers), (False, pod.spec.containers)):
        for container in containers:
            yield ContainerDemand(
                container.name,
                init,
                init and container.restart_policy == "Always",
                _exclusive_cpus(container) if pinned else 0,
                _memory(container) if pinned else (),
                tuple(sorted(_devices(container.resources.limits))),
            )


def _exclusive_cpus(container: Container) -> int:
    """Returns how many CPUs the container wants for itself; a fraction of a CPU is never exclusive."""
    milli = to_milli((container.resources.requests or {}).get(CPU, "0"))
    return milli // 1000 if milli % 1000 == 0 else 0


def _memory(container: Container) -> tuple[tuple[str, int], ...] | None:
    amounts: list[tuple[str, int]] = []
    for name, text in (container.resources.requests or {}).items():
        if name == MEMORY or name.startswith("hugepages-"):
            nano = to_nano(text)
            if nano % NANO:
                return None
            amounts.append((name, nano // NANO))
    return tuple(sorted(amounts))


def _devices(limits: ResourceList | None) -> Iterator[tuple[str, int]]:
    for name, text in (limits or {}).items():
        if is_extended(name):
            yield name, to_units(text)


def _totals(
    listed: Sequence[tuple[ContainerDemand, tuple[tuple[str, int], ...]]], names: Iterable[str]
) -> tuple[tuple[str, int], ...]:
    tables = [(container, dict(amounts)) for container, amounts in listed]  # once: a pod may name thousands
    return tuple(
        (name, _total((container, amounts.get(name, 0)) for container, amounts in tables)) for name in sorted(names)
    )


def _total(listed: Iterable[tuple[ContainerDemand, int]]) -> int:
    """Returns an amount of a pod: apps and sidecars together, or the largest init container and the sidecars before."""
    sidecars = largest = apps = 0
    for container, amount in listed:
        if container.sidecar:
            sidecars += amount
        elif container.init:
            largest = max(largest, sidecars + amount)
        else:
            apps += amount
    return max(largest, apps + sidecars)


def _has_pod_level_resources(pod: Pod) -> bool:
    whole = pod.spec.resources
    names: Mapping[str, object] = {**((whole and whole.requests) or {}), **((whole and whole.limits) or {})}
    return any(name in (CPU, MEMORY) or name.startswith("hugepages-") for name in names)


def _qos(resources: ResourceRequirements) -> str:
    requests, limits = resources.requests or {}, resources.limits or {}
    if not requests and not limits:
        return _BEST_EFFORT
    classes = set[str]()
    for name in (CPU, MEMORY):
        wanted, limit = to_nano(requests.get(name, "0")), to_nano(limits.get(name, "0"))
        classes.add(BURSTABLE if wanted != limit else GUARANTEED if wanted else _BEST_EFFORT)
    return classes.pop() if len(classes) == 1 else BURSTABLE
