"""Creates the objects of a workload through the API, as scheduler_perf does."""

from typing import Any

import msgspec

from kubenexus.api.keys import network
from kubenexus.base.errors import KubeNexusError
from kubenexus.client.calls import JSON, Call
from kubenexus.client.status import status_error
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.perf.template_cache import Item
from kubenexus.sim.virtual.simulation import Simulation

_DEVICES, _DEVICES_BETA = "resource.k8s.io/v1", "resource.k8s.io/v1beta2"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace"}
HOSTNAME = network.HOSTNAME.key
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


class CreateRejected(KubeNexusError):
    """The API server rejected an object of the workload."""


class _Named(msgspec.Struct, gc=False):
    name: str


class _Object(msgspec.Struct, gc=False):
    metadata: _Named


_NAME = msgspec.json.Decoder(_Object).decode
_encode = msgspec.json.Encoder().encode


class ObjectCreator:
    """Writes to the simulation's API server without latency. Raises CreateRejected."""

    def __init__(self, simulation: Simulation) -> None:
        self._api, self._registry = simulation.api, simulation.server.core.registry
        self._namespaces: set[str] = set()

    def create(self, item: Item, namespace: str = "") -> str:
        """Creates an object and returns its name."""
        item = _served(item)
        return self.post(self.kind(item), _encode(item), namespace)

    def post(self, kind: ServedKind, body: bytes, namespace: str = "") -> str:
        """As `create`, for an encoded object."""
        return _NAME(self._sent("POST", path(kind, namespace), body)).metadata.name

    def update(self, item: Item, namespace: str, part: str = "") -> None:
        """Replaces an object, or a subresource of it."""
        item = _served(item)
        self._sent("PUT", path(self.kind(item), namespace, item["metadata"]["name"], part), _encode(item))

    def delete(self, kind: ServedKind, name: str, namespace: str = "") -> None:
        """Deletes an object if it exists."""
        answer = self._api.now(Call("DELETE", path(kind, namespace, name)))
        if answer.code >= 300 and answer.code != 404:
            raise CreateRejected(str(status_error(answer.code, answer.body)))

    def send(self, call: Call) -> None:
        """Sends any call."""
        answer = self._api.now(call)
        if answer.code >= 300:
            raise CreateRejected(str(status_error(answer.code, answer.body)))

    def namespace(self, name: str, item: Item | None = None) -> None:
        """Creates a namespace, if this workload has not created it yet."""
        if name not in self._namespaces:
            self._namespaces.add(name)
            head = {**((item or {}).get("metadata") or {}), "name": name}
            self.create({**(item or NAMESPACE), "metadata": head})

    def kind(self, item: Item) -> ServedKind:
        found = self._registry.of_object(item.get("apiVersion", ""), item.get("kind", ""))
        if found is None:
            raise CreateRejected(
                f"{item.get('kind')} of {item.get('apiVersion')} is not served by the embedded cluster"
            )
        return found

    def _sent(self, method: str, where: str, body: bytes) -> bytes:
        answer = self._api.now(Call(method, where, body, JSON))
        if answer.code >= 300:
            raise CreateRejected(f"{method} {where}: {status_error(answer.code, answer.body)}")
        return answer.body


def path(kind: ServedKind, namespace: str = "", name: str = "", part: str = "") -> str:
    root = f"/apis/{kind.group_version}" if kind.group else f"/api/{kind.group_version}"
    within = f"/namespaces/{namespace}" if kind.namespaced else ""
    return "/".join(filter(None, (f"{root}{within}/{kind.resource}", name, part)))


# ---- objects ---------------------------------------------------------------------------------------------------------


def base_node(prefix: str) -> Item:
    """Returns the node that scheduler_perf creates without a template."""
    amounts = {"pods": "110", "cpu": "4", "memory": "32Gi"}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"capacity": amounts, "allocatable": amounts, "phase": "Running", "conditions": ready}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"generateName": prefix}, "status": status}


def _served(item: Item) -> Item:
    """Returns a device object of a beta version in the one that is served here: their fields are the same."""
    return {**item, "apiVersion": _DEVICES} if item.get("apiVersion") == _DEVICES_BETA else item


def base_pod() -> Item:
    amounts = {"cpu": "100m", "memory": "500Mi"}
    container: Item = {"name": "pause", "image": "registry.k8s.io/pause:3.10.2", "ports": [{"containerPort": 80}]}
    container["resources"] = {"limits": amounts, "requests": amounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-"},
        "spec": {"containers": [container]},
    }


def named_node(item: Item, number: int, labels: dict[str, str]) -> Item:
    """Returns a node with its name, the equal host name, and further labels."""
    head = item.get("metadata") or {}
    name = head.get("name") or f"{head.get('generateName', '')}{number}"
    every = {**(head.get("labels") or {}), HOSTNAME: name, **labels}
    return {**item, "metadata": {**head, "name": name, "labels": every}}


def csi_node(name: str, drivers: dict[str, int | None], migrated: list[str]) -> Item:
    offered: list[dict[str, Any]] = [
        {"name": driver, "nodeID": name} | ({} if count is None else {"allocatable": {"count": count}})
        for driver, count in drivers.items()
    ]
    head = {"name": name, "annotations": {MIGRATED: ",".join(migrated)}}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": head, "spec": {"drivers": offered}}


def bound_volume(volume: Item, claim: Item, namespace: str, index: int) -> tuple[Item, Item]:
    """Returns a volume and its claim, bound to each other."""
    name, claimed = f"{namespace}-vol-{index}", f"pvc-{index}"
    spec = {**volume["spec"], "claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": claimed}}
    if "csi" in spec:
        spec["csi"] = {**spec["csi"], "volumeHandle": name}
    elif "awsElasticBlockStore" in spec:
        spec["awsElasticBlockStore"] = {**spec["awsElasticBlockStore"], "volumeID": f"vol-{index}"}
    made = {**volume, "metadata": {**(volume.get("metadata") or {}), "name": name}, "spec": spec}
    head = {**(claim.get("metadata") or {}), "name": claimed}
    asked = {**claim, "metadata": head, "spec": {**claim["spec"], "volumeName": name}}
    return {**made, "status": {"phase": "Bound"}}, {**asked, "status": {"phase": "Bound"}}


def with_claim(pod: Item, claim: str) -> Item:
    volume = {"name": "vol", "persistentVolumeClaim": {"claimName": claim}}
    return {**pod, "spec": {**pod["spec"], "volumes": [volume]}}
