"""Extended resources that device classes back: the claim that the scheduler makes for them.

Where no device plugin of a node offers such a resource, each container that requests it becomes a request of one claim
for the whole pod. Init containers use the devices of containers that start after them, and share what they need more.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kubenexus.api.core import Container, Pod
from kubenexus.api.devices.resource_claim import (
    EXACT_COUNT,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from kubenexus.api.quantity import NANO, to_nano


class RequestMapping(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Which request of the claim serves a resource of a container, as the pod's status has it."""

    container_name: str
    resource_name: str
    request_name: str


class _Need(NamedTuple):
    """What a container requests of a resource beyond what it can use of others."""

    request: str
    number: int


def extended_claim(
    pod: Pod, resources: Collection[str], classes: Mapping[str, str]
) -> tuple[ResourceClaimSpec, tuple[RequestMapping, ...]]:
    """Returns the claim for these resources of a pod, and which request serves which container. `classes` has the
    device class of each resource."""
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    short = [i for i, each in enumerate(pod.spec.init_containers) if each.restart_policy != "Always"]
    requests: list[tuple[_Need, str]] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(resources):
        needs, served = _of_resource(containers, short, resource)
        requests += ((each, classes[resource]) for each in needs)
        mappings += served
    requests.sort(key=lambda each: each[0].request)
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=[_request(*each) for each in requests]))
    return spec, tuple(mappings)


def _of_resource(
    containers: Sequence[Container], short: Sequence[int], resource: str
) -> tuple[list[_Need], list[RequestMapping]]:
    lasting: list[_Need | None] = [None] * len(containers)
    served: list[RequestMapping] = []
    for i, container in enumerate(containers):
        if i not in short:
            lasting[i], more = _of_container(i, container, resource, ())
            served += more
    largest: _Need | None = None
    own: list[RequestMapping] = []
    names: set[str] = set()
    for i in short:
        need, more = _of_container(i, containers[i], resource, lasting[i:])
        own += more
        if need is not None:
            names.add(need.request)
            largest = need if largest is None or largest.number < need.number else largest
    if largest is not None:  # one request serves all init containers, which run one after the other
        own = [
            RequestMapping(each.container_name, resource, largest.request) if each.request_name in names else each
            for each in own
        ]
    needs = [each for each in (largest, *lasting) if each is not None]
    return needs, [*served, *own]


def _of_container(
    index: int, container: Container, resource: str, usable: Sequence[_Need | None]
) -> tuple[_Need | None, list[RequestMapping]]:
    requests = container.resources.requests
    count = _whole(requests.get(resource)) if requests else 0
    if not requests or not count:
        return None, []
    served: list[RequestMapping] = []
    covered = 0
    for each in usable:
        if each is not None:
            covered += each.number
            served.append(RequestMapping(container.name, resource, each.request))
            if covered >= count:
                return None, served
    name = f"container-{index}-request-{sorted(requests).index(resource)}"
    served.append(RequestMapping(container.name, resource, name))
    return _Need(name, count - covered), served


def _request(need: _Need, class_name: str) -> DeviceRequest:
    exactly = ExactDeviceRequest(device_class_name=class_name, allocation_mode=EXACT_COUNT, count=need.number)
    return DeviceRequest(name=need.request, exactly=exactly)


def _whole(amount: str | int | float | None) -> int:
    """Returns a whole amount, 0 if there is none."""
    nano = 0 if amount is None else to_nano(amount)
    return nano // NANO if nano % NANO == 0 else 0
