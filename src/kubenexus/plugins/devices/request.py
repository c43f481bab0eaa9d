"""What a pod class asks of the devices of a node, and which devices of each row could serve it."""

import functools
from typing import Any, Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.api.devices.device_types import words_of
from kubenexus.api.devices.pod_needs import REQUIRED, DeviceNeeds, device_amounts, device_needs, may_be_several
from kubenexus.framework.pod_class import PodClass
from kubenexus.state.nodes import NodeColumns

# The plugins that sign what a pod needs. Where one is disabled, what it would sign is not asked for.
FIT, VRAM, TOPOLOGY = "DeviceFit", "VRAMScheduler", "GPUTopology"
MAX_COMMON_NUMBER: Final = 16  # devices
COMMON_PARTS: Final = 50  # thousandths, and multiples of them
_REQUESTS: Final = "device requests"
MAX_REQUESTS: Final = 8  # kinds of devices that one pod may request


class DeviceRequest(NamedTuple):
    """`number` devices of one resource; "" is any GPU. `share` and `memory` are what is taken of each, both 0 for whole
    ones. The other fields are what each must have: see `DeviceNeeds`."""

    resource: str
    number: int
    share: int = 0
    memory: int = 0
    card_memory: int = 0
    words: frozenset[str] = frozenset()
    joined: bool = False
    bandwidth: int = 0
    is_part: bool = False
    is_plain: bool = False  # a number of whole devices, of any memory, type and bandwidth
    is_common: bool = False  # one that many classes have: a small number, or a round part of one device
    is_plain_part: bool = False  # a share of one device, of any memory, type and bandwidth


class SignedNeeds(NamedTuple):
    """What a pod needs of devices, and whether it may request several."""

    needs: DeviceNeeds
    several: bool


_last: list[Any] = [None, None]  # the pod that was signed last, and what it needs


def needs_of(pod: Pod) -> SignedNeeds | None:
    """Returns what a pod needs of devices; None if nothing. Several plugins sign a pod, one after the other."""
    if _last[0] is not pod:
        amounts = device_amounts(pod)
        needs = device_needs(pod, requested=bool(amounts))
        _last[:] = pod, None if needs is None else SignedNeeds(needs, may_be_several(amounts))
    found: SignedNeeds | None = _last[1]
    return found


def may_claim_devices(pod: Pod, nodes: NodeColumns) -> bool:
    """Returns whether a pod may get devices by claims: it names claims, or requests a resource that a device class
    backs. Which devices these are shows when they are allocated, so they count as GPUs where that decides a right."""
    if pod.spec.resource_claims:
        return True
    backed = nodes.device_class_resources
    if not backed:
        return False
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        resources = container.resources
        if not backed.isdisjoint(resources.requests or ()) or not backed.isdisjoint(resources.limits or ()):
            return True
    return False


def requests_of(pod: PodClass) -> tuple[DeviceRequest, ...]:
    """Returns what a class asks for, as far as the enabled plugins signed it. The same objects each time."""
    found: tuple[DeviceRequest, ...] | None = pod.compiled.get(_REQUESTS)  # not `cached`: a call and a closure fewer
    if found is None:
        found = pod.compiled[_REQUESTS] = _requests(pod)
    return found


def _requests(pod: PodClass) -> tuple[DeviceRequest, ...]:
    part = pod.signed.get(FIT) or (0, 0)
    numbers = [each for each in pod.demand.amounts if each[1] and is_device_resource(each[0])]
    if not numbers and (part[0] or part[1]):
        numbers = [("", 1)]
    wishes = pod.signed.get(VRAM, (0, 0))[:2], pod.signed.get(TOPOLOGY, ("", "", 0))
    return _shared_requests(tuple(numbers[:MAX_REQUESTS]), part[0], part[1], *wishes)


@functools.lru_cache(maxsize=256)
def _shared_requests(
    numbers: tuple[tuple[str, int], ...],
    share: int,
    memory: int,
    card_memory: tuple[int, int],
    wanted: tuple[str, str, int],
) -> tuple[DeviceRequest, ...]:
    """Returns one object for the equal requests of many classes, so that what follows from them is found by identity.
    `card_memory` is that of each device and of all together, `wanted` the type, the link and the bandwidth."""
    (each, total), (kind, link, bandwidth) = card_memory, wanted
    return tuple(
        DeviceRequest(
            resource=name,
            number=count,
            share=share,
            memory=memory,
            card_memory=each or -(-total // count),
            words=words_of(kind),
            joined=count > 1 and (link == REQUIRED or bandwidth > 0),
            bandwidth=bandwidth,
            is_part=bool(share or memory),
            is_plain=not (share or memory or each or total or kind or bandwidth),
            is_common=_is_common(count, share) and not (memory or each or total or kind or bandwidth),
            is_plain_part=share > 0 and count == 1 and not (memory or each or total or kind or bandwidth),
        )
        for name, count in numbers
    )


def _is_common(number: int, share: int) -> bool:
    """Whether the request is one of a few dozen. A tenant may write any other, so those share no columns."""
    return (number <= MAX_COMMON_NUMBER and not share) or (number == 1 and not share % COMMON_PARTS)


def suitable(request: DeviceRequest, sets: Any) -> Any:
    """Returns the devices that could serve the request if nothing were taken, as a set for each row."""
    if request.is_plain:
        return sets.offered(request.resource) & sets.healthy
    return sets.shared_by_plugins(("suitable", id(request)), lambda: _suitable(request, sets))


def _suitable(request: DeviceRequest, sets: Any) -> Any:
    found = sets.offered(request.resource) & sets.healthy
    if request.card_memory:
        found = found & sets.with_card_memory(request.card_memory)
    if request.words:
        found = found & sets.of_type(request.words)
    if request.bandwidth and request.number > 1:
        found = found & sets.with_bandwidth(request.bandwidth)
    return found


def available(request: DeviceRequest, sets: Any) -> Any:
    """Returns the devices that can serve the request now, as a set for each row."""
    if request.is_plain:
        return sets.offered(request.resource) & sets.free
    return sets.shared_by_plugins(("available", id(request)), lambda: _available(request, sets))


def _available(request: DeviceRequest, sets: Any) -> Any:
    left = sets.with_share(request.share, request.memory) if request.is_part else sets.free
    return suitable(request, sets) & left
