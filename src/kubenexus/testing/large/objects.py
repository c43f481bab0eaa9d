"""Nodes and other kinds with one field grown to a number of entries."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kubenexus.api.keys import discovered, gpu, network
from kubenexus.client import kinds
from kubenexus.client.kinds import ApiResource
from kubenexus.testing.large.pods import GPU, HOSTNAME, ZONE, Json

FABRICS: Final = ("nvswitch", "infiniband", "roce", "ethernet")
TIERS: Final = ("premium", "standard", "economy")


def node(number: int, name: str = "") -> Json:
    """Returns one of many nodes: regions, zones and racks, eight GPUs on every fourth, eight labels that are each on a
    quarter of the nodes, a taint on every tenth."""
    name = name or f"node-{number}"
    labels = {HOSTNAME: name, ZONE: f"z{number % 6}", network.REGION.key: f"g{number % 2}"}
    labels[network.RACK.key] = f"r{number // 40}"
    labels |= {f"node-label-{i}": f"v{number % 7}" for i in range(number % 4 * 8, number % 4 * 8 + 8)}
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    if number % 5 == 0:
        allocatable |= {f"example.com/device-{i}": "8" for i in range(8)}
    if number % 4 == 0:
        allocatable[GPU] = "8"
        labels |= _gpu_labels(number // 4)
    taints = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}] if number % 10 == 9 else []
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def _gpu_labels(number: int) -> Json:
    """The labels of GPU Feature Discovery, and those that administrators set: the tier and the fabric."""
    found = {discovered.PRODUCT.key: "NVIDIA-H100-80GB-HBM3", discovered.MEMORY_MIB.key: "81559"}
    found |= {discovered.COUNT.key: "8", discovered.CLIQUE.key: f"clique.{number // 8}"}
    if number % 3 == 0:
        found |= {discovered.PRODUCT.key: "NVIDIA-L4", discovered.MEMORY_MIB.key: "23034"}
    found |= {gpu.HARDWARE_TIER.key: TIERS[number % 3], network.FABRIC_TYPE.key: FABRICS[number % 4]}
    return found | {network.FABRIC_ID.key: f"fabric-{number // 16}"}


def claim(number: int) -> tuple[Json, Json]:
    """Returns a bound claim and its volume, which nodes of one zone can use."""
    name = f"claim-{number}"
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z0"]}]}]
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "csi": {"driver": "csi.example.com", "volumeHandle": f"handle-{number}"},
        "claimRef": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {**asked, "storageClassName": "fast", "volumeName": f"volume-{number}"}
    meta = _meta(name, "default", annotations={"pv.kubernetes.io/bind-completed": "yes"})
    made = {"metadata": meta, "spec": spec, "status": {"phase": "Bound"}}
    return made, {"metadata": _meta(f"volume-{number}"), "spec": volume, "status": {"phase": "Bound"}}


class LargeObject(NamedTuple):
    """A kind, and a function that creates an object with so many entries in one field."""

    resource: ApiResource
    make: Callable[[int], Json]


def _node(put: Callable[[Json, int], None]) -> LargeObject:
    def make(number: int) -> Json:
        made = node(0, "large")
        put(made, number)
        return made

    return LargeObject(kinds.NODES, make)


def _labels(made: Json, number: int) -> None:
    made["metadata"]["labels"] |= {f"own-{i}": "x" for i in range(number)}


def _taints(effect: str) -> Callable[[Json, int], None]:
    def put(made: Json, number: int) -> None:
        made["spec"]["taints"] = [{"key": f"k{i}", "value": "v", "effect": effect} for i in range(number)]

    return put


def _images(made: Json, number: int) -> None:
    made["status"]["images"] = [{"names": [f"image-{i}"], "sizeBytes": 2**30 + i} for i in range(number)]


def _image_names(made: Json, number: int) -> None:
    made["status"]["images"] = [{"names": [f"image-{i}" for i in range(number)], "sizeBytes": 2**30}]


def _resources(made: Json, number: int) -> None:
    made["status"]["allocatable"] |= {f"own.example.com/r{i}": "1" for i in range(number)}


def _features(made: Json, number: int) -> None:
    made["status"]["declaredFeatures"] = [f"Feature{i}" for i in range(number)]


def _islands(made: Json, number: int) -> None:
    text = "_".join(f"{i}-{i}" for i in range(number))
    made["metadata"]["annotations"] = {gpu.ISLANDS.key: text}


def _meta(name: str, namespace: str = "", **more: Any) -> Json:
    return {"name": name, "uid": f"uid-{name}", **({"namespace": namespace} if namespace else {}), **more}


def _namespace(number: int) -> Json:
    return {"metadata": _meta("default", labels={f"k{i}": "v" for i in range(number)})}


def _service(number: int) -> Json:
    selector = {"app": "w"} | {f"label-{i}": "x" for i in range(number)}
    return {"metadata": _meta("service", "default"), "spec": {"selector": selector}}


def _replica_set(number: int) -> Json:
    wanted = [{"key": f"k{i}", "operator": "DoesNotExist"} for i in range(number)]
    return {"metadata": _meta("r0", "default"), "spec": {"selector": {"matchExpressions": wanted}}}


def _volume(number: int) -> Json:
    terms = [{"matchExpressions": [{"key": f"node-label-{i}", "operator": "Exists"}]} for i in range(number)]
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    return {"metadata": _meta("volume"), "spec": {**spec, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}


def _storage_class(number: int) -> Json:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": [f"z{i}"]}]} for i in range(number)]
    made = {"metadata": _meta("fast"), "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    return {**made, "allowedTopologies": topologies}


def _claim_selector(number: int) -> Json:
    made, _ = claim(0)
    wanted = [{"key": f"k{i}", "operator": "DoesNotExist"} for i in range(number)]
    made["spec"] |= {"volumeName": "", "selector": {"matchExpressions": wanted}}
    return made


def _csi_node(number: int) -> Json:
    drivers = [{"name": f"csi-{i}", "nodeID": "n", "allocatable": {"count": 8}} for i in range(number)]
    return {"metadata": _meta("node-0"), "spec": {"drivers": drivers}}


OTHERS: Final[dict[str, LargeObject]] = {
    "node labels": _node(_labels),
    "node taints": _node(_taints("NoSchedule")),
    "node taints, preferred": _node(_taints("PreferNoSchedule")),
    "node images": _node(_images),
    "names of an image": _node(_image_names),
    "node resources": _node(_resources),
    "node features": _node(_features),
    "islands of GPUs": _node(_islands),
    "namespace labels": LargeObject(kinds.NAMESPACES, _namespace),
    "service selector": LargeObject(kinds.SERVICES, _service),
    "replica set selector": LargeObject(kinds.REPLICA_SETS, _replica_set),
    "volume terms": LargeObject(kinds.PERSISTENT_VOLUMES, _volume),
    "storage class topologies": LargeObject(kinds.STORAGE_CLASSES, _storage_class),
    "claim selector": LargeObject(kinds.PERSISTENT_VOLUME_CLAIMS, _claim_selector),
    "drivers of a node": LargeObject(kinds.CSI_NODES, _csi_node),
}
