"""The resources that a pod takes, as kubelet and kube-scheduler count them.

The rule is generic over the type of number. With `Quantity` it prints what `kubectl` prints; with plain nano units
(integers) it is fast enough for the ledger. Nothing is rounded before the end.

    containers            run together, so they add up
    sidecars              (init containers that restart always) run together with everything that comes after them
    init containers       run one after the other, so only the largest counts, with the sidecars started before it
    pod-level requests    replace the sum for cpu, memory and huge pages
    overhead              comes on top
    a resize in flight    counts the largest of what is wanted, what the kubelet allocated and what is in force; these
                          are compared as totals of the pod, and an Infeasible resize does not count as wanted

A negative amount in a spec is refused, as the API server refuses it. In a status it counts as 0: the kubelet wrote it,
users cannot correct it, and a node must not look emptier for it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from kubenexus.api.core import Container, Pod, QuantityText, ResourceList
from kubenexus.api.quantity import (
    NANO,
    NANO_PER_MILLI,
    Quantity,
    ceil_within_int64,
    read_quantity,
    to_milli,
    to_nano,
    to_units,
)
from kubenexus.api.resize import is_infeasible, is_resized, reported_resources, statuses_of
from kubenexus.api.resource_names import CPU, MEMORY, Amounts, to_scheduler_units
from kubenexus.base.errors import Malformed, truncated, truncated_key

# The scoring default of a container without requests, so that a thousand best-effort pods do not count as nothing.
DEFAULT_MILLI_CPU: Final = 100
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
_FEW_NAMES: Final = 16  # in one list of a container; nearly all have two or three

Number = TypeVar("Number", int, Quantity)


class Requests(msgspec.Struct, frozen=True, gc=False):
    """Amounts by resource name, sorted, zeros left out: cpu in thousandths, everything else in units."""

    amounts: Amounts = ()
    nonzero_cpu: int = 0
    nonzero_memory: int = 0


class Demand(Requests, frozen=True, gc=False):
    """The requests of an incoming pod. Upstream counts them in three ways.

    `amounts`         for the Fit filter: the spec alone (`computePodResourceRequest`)
    `with_defaults`   for the Fit scorers: no pod-level requests, no status, defaults for cpu and memory
                      (`calculatePodResourceRequest` of a scorer without features); `nonzero_*` are taken from it
    `with_resize`     for BalancedAllocation: pod-level requests and status, no defaults
                      (`calculatePodResourceRequest` with `useRequested`), which is also what the pod takes on its node
    """

    with_defaults: Amounts = ()
    with_resize: Amounts = ()


class _Numbers(NamedTuple, Generic[Number]):
    """How to read amounts as one type of number."""

    wanted: Callable[[QuantityText], Number]
    reported: Callable[[QuantityText], Number]
    defaults: dict[str, Number]
    only: frozenset[str] | None = None  # the resources that are read; None: all


def footprint(pod: Pod) -> Requests:
    """Returns what a pod takes on its node: `PodInfo.CalculateResource`. Raises Malformed, naming the field."""
    return _located(pod, _footprint)


def demand(pod: Pod) -> Demand:
    """Returns what a pod requests before it has a node. Raises Malformed, naming the field."""
    return _located(pod, _demand)


def pod_requests(pod: Pod, *, status: bool, pod_level: bool = True, fill: bool = False) -> dict[str, Quantity]:
    """Returns the effective requests as quantities (`resource.PodRequests`). `status` counts resizes, `fill` adds
    defaults."""
    defaults = _QUANTITIES.defaults if fill else {}
    return _located(pod, lambda pod: _requests(pod, _QUANTITIES, defaults, resized=status, pod_level=pod_level))


def milli_requests(pod: Pod) -> dict[str, int]:
    """Returns the effective requests in thousandths, resizes counted. kube-scheduler compares these to see whether a
    pod grew or shrank."""
    nanos = _located(pod, lambda pod: _requests(pod, _NANOS, {}, resized=is_resized(pod)))
    return {name: ceil_within_int64(nano, NANO_PER_MILLI) for name, nano in nanos.items()}


def pod_limits(pod: Pod) -> dict[str, Quantity]:
    """Returns the effective limits of the spec as quantities (`resource.PodLimits` without status)."""
    return _located(pod, _limits)


def _footprint(pod: Pod) -> Requests:
    resized = is_resized(pod)
    counted = _requests(pod, _NANOS, {}, resized=resized)
    defaults = _NANOS.defaults
    if _pod_level_requests(pod):
        # With pod-level requests, only resources that neither the pod nor a container mentions get a default.
        defaults = {name: amount for name, amount in defaults.items() if name not in counted}
    elif not resized and _asks_for_both(pod):
        defaults = {}
    filled = _requests(pod, _CPU_AND_MEMORY, defaults, resized=resized) if defaults else counted
    return Requests(to_scheduler_units(counted), _milli_cpu(filled), _bytes_of_memory(filled))


def _demand(pod: Pod) -> Demand:
    ordinary = _ordinary(pod)
    if ordinary is not None:
        (_, cpu), (_, memory) = ordinary
        return Demand(ordinary, cpu, memory, ordinary, ordinary)
    counted = _requests(pod, _NANOS, {}, resized=False)
    settled = not _pod_level_requests(pod) and _asks_for_both(pod)
    filled = counted if settled else _requests(pod, _NANOS, _NANOS.defaults, resized=False, pod_level=False)
    amounts = to_scheduler_units(counted)
    scored = amounts if settled else to_scheduler_units(filled)
    plain = to_scheduler_units(_requests(pod, _NANOS, {}, resized=True)) if is_resized(pod) else amounts
    return Demand(amounts, _milli_cpu(filled), _bytes_of_memory(filled), scored, plain)


def _ordinary(pod: Pod) -> Amounts | None:
    """Returns the requests of most pods without the general rule: cpu and memory of the only container. Else None."""
    spec = pod.spec
    if len(spec.containers) != 1 or spec.init_containers or spec.overhead or spec.resources is not None:
        return None
    requests = spec.containers[0].resources.requests
    if not requests or len(requests) != 2 or CPU not in requests or MEMORY not in requests or is_resized(pod):
        return None
    cpu, memory = to_milli(requests[CPU]), to_units(requests[MEMORY])
    return ((CPU, cpu), (MEMORY, memory)) if cpu > 0 and memory > 0 else None


def _requests(
    pod: Pod, numbers: _Numbers[Number], defaults: dict[str, Number], *, resized: bool, pod_level: bool = True
) -> dict[str, Number]:
    """Returns the effective requests. `resized`: read the status, too, which takes time and mostly repeats the spec."""
    counted = _total(
        pod, lambda container: _amounts(container.resources.requests, numbers.wanted, numbers.only), defaults
    )
    if resized:
        counted = _with_resize(pod, numbers, defaults, counted)
    whole = _pod_level_requests(pod) if pod_level else None
    if whole:
        counted.update(_pod_level(pod, numbers, whole, resized=resized))
    if pod.spec.overhead:
        _add(counted, _amounts(pod.spec.overhead, numbers.wanted, numbers.only))
    return counted


def _total(
    pod: Pod, amounts: Callable[[Container], dict[str, Number]], defaults: Mapping[str, Number]
) -> dict[str, Number]:
    """Returns the total of a pod's containers, given the amounts of each."""
    running: dict[str, Number] = {}
    for container in pod.spec.containers:
        running = _sum(running, {**defaults, **amounts(container)})
    if not pod.spec.init_containers:
        return running
    sidecars: dict[str, Number] = {}
    largest: dict[str, Number] = {}
    for container in pod.spec.init_containers:
        starting = {**defaults, **amounts(container)}
        if container.restart_policy == "Always":
            _add(running, starting)
            _add(sidecars, starting)
            starting = {name: sidecars[name] for name in starting}
        else:
            _add(starting, {name: sidecars[name] for name in starting if name in sidecars})
        # Only the resources of this container: the sidecars' other resources were counted when they started. To visit
        # all of them for each container would take quadratic time.
        _raise(largest, starting)
    _raise(running, largest)
    return running


def _with_resize(
    pod: Pod, numbers: _Numbers[Number], defaults: dict[str, Number], wanted: dict[str, Number]
) -> dict[str, Number]:
    """Returns the largest of what is wanted, in force and allocated, each as a total of the pod.

    An Infeasible resize of a pod whose containers have no status yet counts as nothing. Upstream counts the same; the
    next status corrects it.
    """
    infeasible, whole = is_infeasible(pod), pod.status.resources
    if pod.status.allocated_resources is not None and whole is not None and whole.requests is not None:
        # The kubelet has added it up already.
        in_force = _amounts(whole.requests, numbers.reported, numbers.only)
        allocated = _amounts(pod.status.allocated_resources, numbers.reported, numbers.only)
    else:
        statuses = statuses_of(pod)

        def count(container: Container, *, actual: bool) -> dict[str, Number]:
            told = reported_resources(statuses.get(container.name), actual=actual)
            if told is not None:
                return _amounts(told, numbers.reported, numbers.only)
            return {} if infeasible else _amounts(container.resources.requests, numbers.wanted, numbers.only)

        in_force = _total(pod, lambda container: count(container, actual=True), defaults)
        allocated = _total(pod, lambda container: count(container, actual=False), defaults)
    counted = {} if infeasible else wanted
    _raise(counted, in_force)
    _raise(counted, allocated)
    return counted


def _pod_level_requests(pod: Pod) -> ResourceList | None:
    """Returns the pod-level requests, if they name any resource that can be requested that way."""
    requests = pod.spec.resources.requests if pod.spec.resources else None
    return requests if requests and any(map(_is_pod_level, requests)) else None


def _pod_level(pod: Pod, numbers: _Numbers[Number], whole: ResourceList, *, resized: bool) -> dict[str, Number]:
    counted = _amounts(whole, numbers.wanted, numbers.only)
    if resized and pod.status.resources is not None:
        counted = {} if is_infeasible(pod) else counted
        _raise(counted, _amounts(pod.status.resources.requests, numbers.reported, numbers.only))
        _raise(counted, _amounts(pod.status.allocated_resources, numbers.reported, numbers.only))
    return {name: amount for name, amount in counted.items() if _is_pod_level(name)}


def _limits(pod: Pod) -> dict[str, Quantity]:
    limits = _total(pod, lambda container: _amounts(container.resources.limits, _QUANTITIES.wanted), {})
    whole = pod.spec.resources
    if whole is not None:
        limits.update(
            {name: amount for name, amount in _amounts(whole.limits, _QUANTITIES.wanted).items() if _is_pod_level(name)}
        )
    for name, amount in _amounts(pod.spec.overhead, _QUANTITIES.wanted).items():
        if name in limits and limits[name].nano:
            limits[name] += amount  # no limit stays no limit, with any overhead
    return limits


def _asks_for_both(pod: Pod) -> bool:
    """Returns whether every container requests both cpu and memory, so that no default is needed."""
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        requests = container.resources.requests
        if not requests or CPU not in requests or MEMORY not in requests:
            return False
    return True


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _amounts(
    listing: ResourceList | None, number: Callable[[QuantityText], Number], only: frozenset[str] | None = None
) -> dict[str, Number]:
    if not listing:
        return {}
    if only is not None and len(listing) > len(only):
        return {name: number(listing[name]) for name in only if name in listing}
    if len(listing) <= _FEW_NAMES:
        return {name: number(text) for name, text in listing.items()}
    numbers = {text: number(text) for text in set(listing.values())}  # thousands of names mostly share a few amounts
    return {name: numbers[text] for name, text in listing.items()}


def _sum(total: dict[str, Number], more: dict[str, Number]) -> dict[str, Number]:
    """Returns the sum. May change and return either argument."""
    if not total:
        return more
    _add(total, more)
    return total


def _add(total: dict[str, Number], more: Mapping[str, Number]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(total: dict[str, Number], floor: Mapping[str, Number]) -> None:
    for name, amount in floor.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _milli_cpu(nanos: Mapping[str, int]) -> int:
    return ceil_within_int64(nanos.get(CPU, 0), NANO_PER_MILLI)


def _bytes_of_memory(nanos: Mapping[str, int]) -> int:
    return ceil_within_int64(nanos.get(MEMORY, 0), NANO)


def _wanted_nano(text: QuantityText) -> int:
    nano = to_nano(text)
    if nano < 0:
        raise Malformed(f"must not be negative, but is {truncated(str(text))}")
    return nano


def _wanted_quantity(text: QuantityText) -> Quantity:
    quantity = read_quantity(text)
    if quantity.nano < 0:
        raise Malformed(f"must not be negative, but is {truncated(str(text))}")
    return quantity


_NANOS = _Numbers[int](
    _wanted_nano,
    lambda text: max(to_nano(text), 0),
    {CPU: DEFAULT_MILLI_CPU * NANO_PER_MILLI, MEMORY: DEFAULT_MEMORY * NANO},
)
_CPU_AND_MEMORY = _NANOS._replace(only=frozenset(_NANOS.defaults))
_QUANTITIES = _Numbers[Quantity](
    _wanted_quantity,
    lambda text: max(read_quantity(text), Quantity()),
    {name: Quantity(nano) for name, nano in _NANOS.defaults.items()},
)

_Answer = TypeVar("_Answer")


def _located(pod: Pod, count: Callable[[Pod], _Answer]) -> _Answer:
    """Returns `count(pod)`. Only if that raises, searches the field to name: tracking paths would slow every count."""
    try:
        return count(pod)
    except Malformed as error:
        for path, listing, number in _listings(pod):
            for name, text in (listing or {}).items():
                try:
                    number(text)
                except Malformed as found:
                    raise found.within(f"{path}[{truncated(name)}]", f"Pod {truncated_key(pod.key)}") from None
        raise error.within(subject=f"Pod {truncated_key(pod.key)}") from None


def _listings(pod: Pod) -> Iterator[tuple[str, ResourceList | None, Callable[[QuantityText], int]]]:
    """Yields every list of resources that counts for a pod, with its path and the function that reads its amounts."""
    spec, status = pod.spec, pod.status
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            yield f"spec.{kind}[{index}].resources.requests", container.resources.requests, _NANOS.wanted
            yield f"spec.{kind}[{index}].resources.limits", container.resources.limits, _NANOS.wanted
    if spec.resources is not None:
        yield "spec.resources.requests", spec.resources.requests, _NANOS.wanted
        yield "spec.resources.limits", spec.resources.limits, _NANOS.wanted
    yield "spec.overhead", spec.overhead, _NANOS.wanted
    for kind, statuses in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        for index, each in enumerate(statuses):
            yield f"status.{kind}[{index}].allocatedResources", each.allocated_resources, _NANOS.reported
            if each.resources is not None:
                yield f"status.{kind}[{index}].resources.requests", each.resources.requests, _NANOS.reported
    yield "status.allocatedResources", status.allocated_resources, _NANOS.reported
    if status.resources is not None:
        yield "status.resources.requests", status.resources.requests, _NANOS.reported
