"""In kube-scheduler's place: what the real controllers make comes up."""

from collections.abc import Callable

from kubenexus.testing.controlplane import ClusterClient, ManagedProcess, Objects
from tests.e2e.manifests import a_daemon_set, a_deployment, a_job, a_stateful_set, all_of
from tests.e2e.provisioner import CLASS, Provisioner
from tests.e2e.scheduling import Start, placed, pods

SPREAD = (
    "topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule,"
    " labelSelector: {matchLabels: {app: web}}}]"
)
CLAIMS = (
    "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: local,"
    " resources: {requests: {storage: 1Gi}}}}]"
)
DATA = "volumeMounts: [{name: data, mountPath: /data}]"
WORKLOADS = all_of(
    a_deployment(4, SPREAD + ', containers: [{name: web, image: "web:1", resources: {requests: {cpu: 100m}}}]'),
    a_stateful_set(3, f'containers: [{{name: db, image: "db:1", {DATA}}}]', more=CLAIMS),
    a_daemon_set('containers: [{name: probe, image: "probe:1"}]'),
    a_job("sums", 'name: sum, image: "sum:1"', "completions: 3, parallelism: 3", run_seconds="0.5"),
)


def test_deployment_statefulset_daemonset_and_job_come_up(
    agents: Callable[..., ManagedProcess],
    controllers: ManagedProcess,
    provisioner: Provisioner,
    scheduler: Start,
    cluster: ClusterClient,
    namespace: str,
) -> None:
    agents("--nodes=4", "--zone=x", "--zone=y")
    scheduler("--scheduler-name=default-scheduler")
    cluster.apply(CLASS)
    cluster.apply(WORKLOADS, namespace)
    apps = f"/apis/apps/v1/namespaces/{namespace}"

    def ready(kind: str, name: str, field: str, count: int, where: str = apps) -> None:
        path = f"{where}/{kind}"
        cluster.until(path, lambda all: _status(all, name, field) == count, f"{kind}/{name}: {field} {count}")

    ready("deployments", "web", "availableReplicas", 4)
    ready("daemonsets", "probe", "numberReady", 4)
    ready("statefulsets", "db", "readyReplicas", 3)
    ready("jobs", "sums", "succeeded", 3, f"/apis/batch/v1/namespaces/{namespace}")
    seen = placed(cluster.objects(pods(namespace)))
    assert len({node for name, node in seen.items() if name.startswith("web-")}) == 4, "spread as asked for"
    assert len({node for name, node in seen.items() if name.startswith("probe-")}) == 4, "one for each node"
    volumes = cluster.objects("/api/v1/persistentvolumes")
    for claim in cluster.objects(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims").values():
        (term,) = volumes[claim["spec"]["volumeName"]]["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        pod = claim["metadata"]["name"].removeprefix("data-")
        assert term["matchExpressions"][0]["values"] == [seen[pod]], "the volume is where its pod is"
    assert controllers.running
    assert provisioner.is_alive()


def _status(objects: Objects, name: str, field: str) -> int:
    return int(objects[name]["status"].get(field, 0))


STATIC = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: shelf}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 2Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: shelf
  local: {path: /disk}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [agent-1]}]
"""
MINE = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: mine}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: shelf
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  schedulerName: kubenexus-scheduler
  containers: [{name: main, image: "app:1"}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: mine}}]
"""


def test_a_volume_that_exists_is_promised_and_its_pod_goes_there(
    agents: Callable[..., ManagedProcess],
    controllers: ManagedProcess,
    scheduler: Start,
    cluster: ClusterClient,
    namespace: str,
) -> None:
    agents("--nodes=3")
    scheduler()
    cluster.apply(STATIC)
    cluster.apply(MINE, namespace)
    seen = cluster.until(pods(namespace), lambda all: bool(placed(all)), "the pod is bound")
    assert placed(seen) == {"user": "agent-1"}
    claim = cluster.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/mine")
    assert (claim["spec"]["volumeName"], claim["status"]["phase"]) == ("disk", "Bound")
    assert controllers.running
