"""Many devices at once, and pods with claims that tell as many of them apart as they can."""

from typing import Any, Final

from kubenexus.client import kinds
from kubenexus.testing.large.large_cluster import Item
from kubenexus.testing.large.pods import Json, plain

_DRIVER: Final = "gpu.example.com"
_VERSION: Final = "resource.k8s.io/v1"
_GPUS: Final = 8
_PER_SLICE: Final = 128
_UUID: Final = f'device.attributes["{_DRIVER}"].uuid'
_KIND: Final = f'device.attributes["{_DRIVER}"].kind'
_GANG, _LEAST = "pod-group.scheduling.kubenexus.io/name", "pod-group.scheduling.kubenexus.io/min-available"
_EVERYTHING: Final = 'device.attributes.exists(domain, domain == "example.com")'


def machines(number: int) -> list[Item]:
    """A slice of eight GPUs for each of so many nodes, no two alike, and pods that ask for them in ways that cost."""
    slices = [_slice(f"gpus-{i}", _devices(f"{i}", _GPUS), nodeName=f"node-{i}") for i in range(number)]
    return [Item(kinds.DEVICE_CLASSES, _class()), *(Item(kinds.RESOURCE_SLICES, each) for each in slices), *_claiming()]


def one_pool_for_all_nodes(number: int) -> list[Item]:
    """So many devices in slices of one pool that all nodes see, and the same pods."""
    count = -(-number // _PER_SLICE)
    slices = [
        _slice(f"shared-{i}", _devices(f"{i}", _PER_SLICE), pool="shared", count=count, allNodes=True)
        for i in range(count)
    ]
    return [Item(kinds.DEVICE_CLASSES, _class()), *(Item(kinds.RESOURCE_SLICES, each) for each in slices), *_claiming()]


def gang_that_competes(members: int) -> list[Item]:
    """A gang of so many members, two at least, each with a claim for one of several kinds of devices, and one device
    too few. Every member is a class of its own, and devices have to be exchanged before the planner finds that the
    gang does not fit."""
    members = max(members, 2)
    kinds_of = [f"k{i}" for i in range(members - 1)]
    slices = []
    for node, first in enumerate(range(0, len(kinds_of), _GPUS)):
        devices = [{"name": each, "attributes": {"kind": {"string": each}}} for each in kinds_of[first : first + _GPUS]]
        slices.append(_slice(f"kinds-{node}", devices, nodeName=f"node-{node}"))
    wanted = [(kinds_of[i - 1], kinds_of[i]) for i in range(1, len(kinds_of))]
    claims = [_wants(" || ".join(f'{_KIND} == "{kind}"' for kind in each)) for each in [*wanted, *[(kinds_of[0],)] * 2]]
    pods = [item for i, each in enumerate(claims) for item in _member(f"competes-{i}", each, members)]
    return [Item(kinds.DEVICE_CLASSES, _class()), *(Item(kinds.RESOURCE_SLICES, each) for each in slices), *pods]


def republished(items: list[Item]) -> list[Item]:
    """Returns the slices of the items in their next generation."""
    slices = [item for item in items if item.resource is kinds.RESOURCE_SLICES]
    for item in slices:
        item.thing["spec"]["pool"]["generation"] += 1
    return slices


def _devices(prefix: str, number: int) -> list[Json]:
    return [
        {
            "name": f"gpu-{prefix}-{i}",
            "attributes": {"uuid": {"string": f"GPU-{prefix}-{i}"}, "root": {"string": f"{prefix}-{i // 2}"}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for i in range(number)
    ]


def _slice(name: str, devices: list[Json], *, pool: str = "", count: int = 1, **where: Any) -> Json:
    described = {"name": pool or name, "generation": 1, "resourceSliceCount": count}
    spec = {"driver": _DRIVER, "pool": described, "devices": devices, **where}
    return {"apiVersion": _VERSION, "kind": "ResourceSlice", "metadata": {"name": name, "uid": name}, "spec": spec}


def _class() -> Json:
    selectors = [{"cel": {"expression": f'device.driver == "{_DRIVER}"'}}]
    meta = {"name": _DRIVER, "uid": _DRIVER}
    return {"apiVersion": _VERSION, "kind": "DeviceClass", "metadata": meta, "spec": {"selectors": selectors}}


def _claiming() -> list[Item]:
    return [item for name, claims in _CLAIMS.items() for item in _pod(name, claims)]


def _pod(name: str, claims: list[Json]) -> list[Item]:
    pod = plain(f"claims-{name}")
    pod["spec"]["nodeSelector"] = {"example.com/no-such": "label"}  # the server here has no claims to write to
    pod["spec"]["resourceClaims"] = [
        {"name": f"c{i}", "resourceClaimName": f"{name}-{i}"} for i, _ in enumerate(claims)
    ]
    made = [Item(kinds.RESOURCE_CLAIMS, _claim(f"{name}-{i}", each)) for i, each in enumerate(claims)]
    return [*made, Item(kinds.PODS, pod)]


def _member(name: str, claim: Json, members: int) -> list[Item]:
    pod = plain(name)
    pod["metadata"].setdefault("labels", {}).update({_GANG: "competes", _LEAST: str(members)})
    pod["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": name}]
    return [Item(kinds.RESOURCE_CLAIMS, _claim(name, claim)), Item(kinds.PODS, pod)]


def _claim(name: str, devices: Json) -> Json:
    meta = {"name": name, "namespace": "default", "uid": f"claim-{name}"}
    return {"apiVersion": _VERSION, "kind": "ResourceClaim", "metadata": meta, "spec": {"devices": devices}}


def _wants(*expressions: str, count: int = 1, requests: int = 1, **devices: Any) -> Json:
    exactly = {
        "deviceClassName": _DRIVER,
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": each}} for each in expressions],
    }
    return {"requests": [{"name": f"r{i}", "exactly": exactly} for i in range(requests)], **devices}


def _constraint(kind: str, name: str) -> list[Json]:
    return [{f"{kind}Attribute": f"{_DRIVER}/{name}"}]


_CLAIMS: Final[dict[str, list[Json]]] = {
    "uuid": [_wants(f'{_UUID} != "none"')],
    "no-such-uuid": [_wants(f'{_UUID} == "none"')],
    "uuids": [_wants(f'{_UUID} != "none"', f'!{_UUID}.endsWith("-7")', requests=4)],
    "everything": [_wants(_EVERYTHING)],
    "broken": [_wants("device.attributes[")],
    "missing": [_wants(f'device.attributes["{_DRIVER}"].none == 1')],
    "root": [_wants(count=2, constraints=_constraint("match", "root"))],
    "same-uuid": [_wants(count=8, constraints=_constraint("match", "uuid"))],
    "combinations": [_wants(f'{_UUID} != "none"', requests=9, constraints=_constraint("distinct", "root"))],
    "many-claims": [_wants(f'{_UUID} != "{i}"') for i in range(16)],
    "long": [_wants(*(f'{_UUID} != "{i}' + "x" * 900 + '"' for i in range(32)))],
}
