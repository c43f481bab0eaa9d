"""A stand-in for an external provisioner and for the controller that binds: a claim whose node the scheduler has
chosen gets a volume that only this node can reach."""

import contextlib
import threading
from types import TracebackType
from typing import Self

from kubenexus.testing.controlplane import ClusterClient, Object, RequestRefused

CLAIMS = "/api/v1/persistentvolumeclaims"
NAME = "e2e.kubenexus.io/local"
SELECTED = "volume.kubernetes.io/selected-node"
CLASS = f"""
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: local}}
provisioner: {NAME}
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Delete
"""


class Provisioner(threading.Thread):
    """Runs while its `with` block does. `CLASS` is a class for it; `delay` seconds pass before a volume is made."""

    def __init__(self, cluster: ClusterClient, delay: float = 0.0) -> None:
        super().__init__(name="provisioner", daemon=True)
        self._cluster = cluster
        self._delay = delay
        self._ending = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ending.set()
        self.join()

    def run(self) -> None:
        while not self._ending.is_set():
            # The server may be away for a while, in tests of just that.
            with contextlib.suppress(OSError, RequestRefused):
                for claims in self._cluster.states(CLAIMS, seconds=0.5):
                    for claim in claims.values():
                        self._serve(claim)
            self._ending.wait(0.01)

    def _serve(self, claim: Object) -> None:
        node = claim["metadata"].get("annotations", {}).get(SELECTED)
        if not node or claim["spec"].get("volumeName") or self._ending.wait(self._delay):
            return
        name = f"pv-{claim['metadata']['uid']}"
        with contextlib.suppress(RequestRefused):  # made already, or the claim is gone
            self._cluster.create(_volume(name, node, claim))
        self._bind(claim, name)

    def _bind(self, claim: Object, volume: str) -> None:
        meta = claim["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/persistentvolumeclaims/{meta['name']}"
        done = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
        self._cluster.patch(path, {"metadata": {"annotations": done}, "spec": {"volumeName": volume}})
        capacity = claim["spec"]["resources"]["requests"]
        bound = {"phase": "Bound", "accessModes": claim["spec"]["accessModes"], "capacity": capacity}
        self._cluster.patch(f"{path}/status", {"status": bound})
        self._cluster.patch(f"/api/v1/persistentvolumes/{volume}/status", {"status": {"phase": "Bound"}})


def _volume(name: str, node: str, claim: Object) -> Object:
    meta, spec = claim["metadata"], claim["spec"]
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": NAME}},
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Delete",
            "local": {"path": "/volumes"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
        },
    }
