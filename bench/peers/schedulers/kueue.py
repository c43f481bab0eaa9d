"""Kueue with kube-scheduler: Kueue admits the pods of a gang together, and kube-scheduler then binds them.

Kueue's webhook marks pods when they are created. Here all pods exist before Kueue runs, so they are created with what
the webhook adds to one of them in a dry run. Admission, the webhooks' later calls and the binds are on the clock.
"""

from bench.live import cases, contestants
from bench.live.cases import RACK
from bench.peers.peer import QPS, Gang, Peer, made, mark
from kubenexus.testing.controlplane import ClusterClient, ControlPlane, ManagedProcess, Object
from tests.e2e.controlplane import build as controlplane
from tests.e2e.kueue import build
from tests.e2e.kueue.running import Kueue

API = "kueue.x-k8s.io/v1beta2"
KEYS = "kueue.x-k8s.io"
FLAVOR, QUEUE, TOPOLOGY = "nodes", "gangs", "racks"
PLENTY = {"cpu": "1000000", "memory": "1000000Gi"}


class KueueWithKubeScheduler(Peer):
    """Two processes."""

    name = "kueue"

    def __init__(self) -> None:
        super().__init__()
        self._kueue: Kueue | None = None
        self._added: Object = {}

    @property
    def version(self) -> str:
        return f"{build.version().removeprefix('v')} with kube-scheduler {controlplane.version().removeprefix('v')}"

    def build(self) -> None:
        self.folder = build.provide()

    def prepare(self, plane: ControlPlane, namespace: str, racks: int) -> None:
        """Creates the queue, asks the webhook what it adds to a pod, and stops Kueue again."""
        cluster = plane.cluster()
        self._kueue = Kueue(self.folder, plane, clientConnection={"qps": QPS, "burst": QPS})
        with self._kueue:
            flavor: Object = {}
            if racks:
                levels = [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
                cluster.create(made(API, "Topology", TOPOLOGY, {"levels": levels}))
                flavor = {"nodeLabels": {"kubernetes.io/os": "linux"}, "topologyName": TOPOLOGY}
            cluster.create(made(API, "ResourceFlavor", FLAVOR, flavor))
            cluster.create(made(API, "ClusterQueue", QUEUE, _quota()))
            cluster.create(made(API, "LocalQueue", QUEUE, {"clusterQueue": QUEUE}, namespace), namespace)
            self._added = _dry_run(cluster, namespace, self._sample(bool(racks)))

    def _sample(self, rack: bool) -> Object:
        pod = cases.pod(cases.CASES["gangs"], "sample")
        self.join(pod, Gang("sample", 8, rack))
        return pod

    def join(self, pod: Object, gang: Gang) -> None:
        labels = {f"{KEYS}/queue-name": QUEUE, f"{KEYS}/pod-group-name": gang.name}
        annotations = {f"{KEYS}/pod-group-total-count": str(gang.size)}
        if gang.rack:
            annotations[f"{KEYS}/podset-required-topology"] = RACK
        added = self._added.get("metadata", {})
        mark(
            pod,
            labels={**added.get("labels", {}), **labels},
            annotations={**added.get("annotations", {}), **annotations},
        )
        pod["metadata"]["finalizers"] = added.get("finalizers", [])
        pod["spec"]["schedulingGates"] = self._added.get("spec", {}).get("schedulingGates", [])

    def start(self, plane: ControlPlane) -> list[ManagedProcess]:
        assert self._kueue is not None, "prepare comes first"
        binding = contestants.start(contestants.THEIRS, plane)
        return [binding, self._kueue.start()]


def _dry_run(cluster: ClusterClient, namespace: str, pod: Object) -> Object:
    """Returns a pod as the webhooks would have it created."""
    return dict(cluster.send("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod))


def _quota() -> Object:
    amounts = [{"name": name, "nominalQuota": amount} for name, amount in PLENTY.items()]
    flavors = [{"name": FLAVOR, "resources": amounts}]
    return {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": list(PLENTY), "flavors": flavors}]}
