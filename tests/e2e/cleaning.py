"""What a test made is gone before the next one begins, without waiting for controllers that may not be running."""

import contextlib

from kubenexus.testing.controlplane import ClusterClient, RequestRefused

# Owners before what they own: a controller that runs would only make it anew.
NAMESPACED = (
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/apps/v1/namespaces/{}/statefulsets",
    "/apis/apps/v1/namespaces/{}/daemonsets",
    "/apis/batch/v1/namespaces/{}/jobs",
    "/apis/apps/v1/namespaces/{}/replicasets",
    "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "/api/v1/namespaces/{}/pods",
    "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "/api/v1/namespaces/{}/persistentvolumeclaims",
    "/api/v1/namespaces/{}/services",
    "/api/v1/namespaces/{}/events",
)
CLUSTER_WIDE = (
    "/api/v1/nodes",
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/volumeattachments",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/devicetaintrules",
)
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def clean(cluster: ClusterClient) -> None:
    """Removes what tests make: their namespaces with all that is in them, and what is outside."""
    for namespace in cluster.objects("/api/v1/namespaces"):
        if namespace != "default" and not namespace.startswith("kube-"):
            for collection in NAMESPACED:
                remove(cluster, collection.format(namespace))
            _remove_namespace(cluster, namespace)
    for collection in CLUSTER_WIDE:
        remove(cluster, collection)
    for name in cluster.objects(PRIORITIES):
        if not name.startswith("system-"):  # the server made these, and does so only at its start
            cluster.delete(f"{PRIORITIES}/{name}")


def _remove_namespace(cluster: ClusterClient, name: str) -> None:
    """Deleted and declared empty, which else a controller would do."""
    path = f"/api/v1/namespaces/{name}"
    cluster.delete(path)
    empty = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
    with contextlib.suppress(RequestRefused):  # a controller was faster
        cluster.send("PUT", f"{path}/finalize", empty)


def remove(cluster: ClusterClient, collection: str) -> None:
    """Deletes all objects of a collection, without waiting for those that would remove finalizers."""
    cluster.delete(collection, grace=0)
    for name, item in cluster.objects(collection).items():
        # `kubernetes.io/pvc-protection` and its like wait for controllers.
        if item["metadata"].get("finalizers"):
            with contextlib.suppress(RequestRefused):
                cluster.patch(f"{collection}/{name}", {"metadata": {"finalizers": None}})
