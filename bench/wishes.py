"""Pods that look beyond their node: the shapes of kube-scheduler's own benchmark (scheduler_perf), and two from life.

Each is written into the text of a pod; what it asks about (a service, claims) is told to the ledger beforehand.
"""

from collections.abc import Callable
from typing import Any, Final

from kubenexus.api import storage
from kubenexus.api.codec import from_data
from kubenexus.api.workloads import ReplicaSet, Service
from kubenexus.state.ledger import Ledger

Data = dict[str, Any]
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
WORKLOAD: Final = "shop"
CLAIM: Final = "data-@NUMBER@"


def _term(color: str, key: str) -> Data:
    return {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key}


def _required_affinity(pod: Data) -> None:
    pod["metadata"]["labels"]["color"] = "blue"
    wanted = {"requiredDuringSchedulingIgnoredDuringExecution": [_term("blue", ZONE)]}
    pod["spec"]["affinity"] = {"podAffinity": wanted}


def _anti_affinity(pod: Data) -> None:
    pod["metadata"]["labels"]["color"] = "green"
    avoided = {"requiredDuringSchedulingIgnoredDuringExecution": [_term("green", HOST)]}
    pod["spec"]["affinity"] = {"podAntiAffinity": avoided}


def _preferred_affinity(pod: Data) -> None:
    pod["metadata"]["labels"]["color"] = "red"
    wanted = [{"weight": 1, "podAffinityTerm": _term("red", HOST)}]
    pod["spec"]["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wanted}}


def _spread(pod: Data) -> None:
    pod["metadata"]["labels"]["color"] = "blue"
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 5,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"color": "blue"}},
        }
    ]


def _deployment(pod: Data) -> None:
    """A ReplicaSet's pods behind a Service: spread by default, though they say nothing about it."""
    pod["metadata"]["labels"] = {"app": WORKLOAD, "pod-template-hash": "5d4c"}
    owner = pod["metadata"]["ownerReferences"][0]
    owner.update(apiVersion="apps/v1", kind="ReplicaSet", name=WORKLOAD)


def _volumes(pod: Data) -> None:
    """Each pod has a claim of its own, whose volume is made where the pod goes."""
    pod["spec"]["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": CLAIM}})


WISHES: Final[dict[str, Callable[[Data], None]]] = {
    "required-affinity": _required_affinity,
    "anti-affinity": _anti_affinity,
    "spread": _spread,
    "preferred-affinity": _preferred_affinity,
    "deployment": _deployment,
    "volumes": _volumes,
}


def surroundings(ledger: Ledger) -> None:
    """What is there before any pod: the deployment's owners, and a class of volumes."""
    meta = {"name": WORKLOAD, "namespace": "default"}
    ledger.upsert_owner(from_data({"metadata": meta, "spec": {"selector": {"app": WORKLOAD}}}, Service))
    labels = {"app": WORKLOAD, "pod-template-hash": "5d4c"}
    ledger.upsert_owner(from_data({"metadata": meta, "spec": {"selector": {"matchLabels": labels}}}, ReplicaSet))
    late = {"provisioner": "disk.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    ledger.upsert_storage(from_data({"metadata": {"name": "late"}, **late}, storage.StorageClass))


def claim_for(ledger: Ledger, number: int) -> None:
    """The claim of one pod, as a StatefulSet's controller makes it before the pod."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "resources": {"requests": {"storage": "10Gi"}},
    }
    meta = {"name": CLAIM.replace("@NUMBER@", str(number)), "namespace": "default", "uid": f"claim-{number}"}
    ledger.upsert_storage(from_data({"metadata": meta, "spec": spec}, storage.PersistentVolumeClaim))
