"""Rules of volumes, claims, storage classes, services and device resources: the defaults that other components rely
on."""

import base64
from collections.abc import Callable

from kubenexus.sim.apiserver.rules.base import ClusterReader, Rule
from kubenexus.sim.apiserver.rules.templates import fill
from kubenexus.sim.apiserver.status_errors import FieldError, Json, required


def _defaults(**values: object) -> Callable[[Json], None]:
    def default(item: Json) -> None:
        fill(item, values)

    return default


def _default_volume(item: Json) -> None:
    spec = item.setdefault("spec", {})
    fill(spec, {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"})
    if "hostPath" in spec:
        fill(spec["hostPath"], {"type": ""})


def _finalizer(name: str) -> Callable[[Json, ClusterReader], None]:
    """Returns an admission that adds the protection finalizer. Only a controller or a client removes it here."""

    def admit(item: Json, cluster: ClusterReader) -> None:
        if not cluster.admits("StorageObjectInUseProtection"):
            return
        finalizers = item["metadata"].setdefault("finalizers", [])
        if name not in finalizers:
            finalizers.append(name)

    return admit


def _default_claim(item: Json) -> None:
    fill(item.setdefault("spec", {}), {"volumeMode": "Filesystem"})


def _default_devices(spec: Json) -> None:
    """Fills what a claim leaves out: one device, and taints that are compared by value."""
    for request in (spec.get("devices") or {}).get("requests") or ():
        exactly = [request["exactly"]] if request.get("exactly") else []
        for each in (*exactly, *(request.get("firstAvailable") or ())):
            fill(each, {"allocationMode": "ExactCount"})
            if each["allocationMode"] == "ExactCount":
                fill(each, {"count": 1})
            for toleration in each.get("tolerations") or ():
                fill(toleration, {"operator": "Equal"})


def _default_resource_claim(item: Json) -> None:
    _default_devices(item.setdefault("spec", {}))


def _default_resource_template(item: Json) -> None:
    _default_devices(item.setdefault("spec", {}).setdefault("spec", {}))


def _default_driver(item: Json) -> None:
    spec = item.setdefault("spec", {})
    fill(spec, {"attachRequired": True, "podInfoOnMount": False, "volumeLifecycleModes": ["Persistent"]})
    fill(spec, {"storageCapacity": False, "fsGroupPolicy": "ReadWriteOnceWithFSType", "requiresRepublish": False})
    fill(spec, {"seLinuxMount": False, "preventPodSchedulingIfMissing": False})


def _check_class(item: Json) -> list[FieldError]:
    return [] if item.get("provisioner") else [required("provisioner")]


def _default_secret(item: Json) -> None:
    fill(item, {"type": "Opaque"})
    plain = item.pop("stringData", None) or {}
    if plain:
        data = item.setdefault("data", {})
        data |= {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}


def _default_service(item: Json) -> None:
    spec = item.setdefault("spec", {})
    fill(
        spec, {"type": "ClusterIP", "sessionAffinity": "None", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    )
    fill(spec, {"internalTrafficPolicy": "Cluster"})
    for port in spec.get("ports") or ():
        fill(port, {"protocol": "TCP", "targetPort": port.get("port", 0)})


def _address(item: Json, cluster: ClusterReader) -> None:
    """Sets a cluster IP. Nothing routes it; only its format matters."""
    spec = item["spec"]
    if "clusterIP" not in spec and spec["type"] != "ExternalName":
        spec["clusterIP"] = f"10.96.{cluster.number(256)}.{1 + cluster.number(254)}"
    if "clusterIP" in spec:
        spec["clusterIPs"] = [spec["clusterIP"]]


def _keep_address(new: Json, old: Json, _: ClusterReader) -> None:
    fill(new["spec"], {key: old["spec"][key] for key in ("clusterIP", "clusterIPs") if key in old["spec"]})


SERVICE = Rule(
    default=_default_service,
    admit=_address,
    admit_update=_keep_address,
    status=lambda _: {"loadBalancer": {}},
    create_on_update=True,
    returns_deleted=True,
)
SECRET = Rule(default=_default_secret)
VOLUME = Rule(
    default=_default_volume,
    admit=_finalizer("kubernetes.io/pv-protection"),
    status=lambda item: {"phase": "Pending", "lastPhaseTransitionTime": item["metadata"]["creationTimestamp"]},
    returns_deleted=True,
)
CLAIM = Rule(
    default=_default_claim,
    admit=_finalizer("kubernetes.io/pvc-protection"),
    status=lambda _: {"phase": "Pending"},
    returns_deleted=True,
)
STORAGE_CLASS = Rule(
    default=_defaults(reclaimPolicy="Delete", volumeBindingMode="Immediate"), check=_check_class, returns_deleted=True
)
CSI_NODE = Rule(unconditional=False, returns_deleted=True)
CSI_DRIVER = Rule(default=_default_driver, unconditional=False, returns_deleted=True)
CSI_CAPACITY = Rule(unconditional=False)
ATTACHMENT = Rule(status=lambda _: {"attached": False}, unconditional=False, returns_deleted=True)
RESOURCE_CLAIM = Rule(default=_default_resource_claim, status=lambda _: {}, returns_deleted=True)
RESOURCE_TEMPLATE = Rule(default=_default_resource_template, returns_deleted=True)
RESOURCE_SLICE = Rule(generation=True, returns_deleted=True)
DEVICE_CLASS = Rule(generation=True, returns_deleted=True)
