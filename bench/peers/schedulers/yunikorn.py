"""YuniKorn: one process. Placeholder pods take the room of a gang, and the gang's own pods then replace them.

Its scheduler name and the port of its REST API (9080) are fixed. Gangs cannot be bound to a rack.
"""

import json

from bench.peers.building import Module
from bench.peers.peer import QPS, Gang, Peer, mark
from kubenexus.testing.controlplane import ControlPlane, ManagedProcess, Object

PATH = "github.com/apache/yunikorn-k8shim"
PROGRAM = "yunikorn"
NAMESPACE = "yunikorn"
KEYS = "yunikorn.apache.org"
QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues: [{name: default}]
"""


class YuniKorn(Peer):
    """Its gangs are declared by their pods alone."""

    name = "yunikorn"
    scheduler_name = "yunikorn"
    racks = False
    module = Module(name, PATH, {PROGRAM: f"{PATH}/pkg/cmd/shim"})

    def prepare(self, plane: ControlPlane, namespace: str, racks: int) -> None:
        super().prepare(plane, namespace, racks)
        cluster = plane.cluster()
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        data = {"queues.yaml": QUEUES, "kubernetes.qps": str(QPS), "kubernetes.burst": str(QPS)}
        meta = {"name": "yunikorn-configs", "namespace": NAMESPACE}
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}, NAMESPACE)

    def join(self, pod: Object, gang: Gang) -> None:
        amounts = pod["spec"]["containers"][0]["resources"]["requests"]
        tasks = [{"name": "members", "minMember": gang.size, "minResource": amounts}]
        annotations = {
            f"{KEYS}/task-group-name": "members",
            f"{KEYS}/task-groups": json.dumps(tasks),
            f"{KEYS}/schedulingPolicyParameters": "placeholderTimeoutInSeconds=600 gangSchedulingStyle=Hard",
        }
        mark(pod, labels={"applicationId": gang.name, "queue": "root.default"}, annotations=annotations)

    def start(self, plane: ControlPlane) -> list[ManagedProcess]:
        environment = [f"KUBECONFIG={plane.kubeconfig()}", f"NAMESPACE={NAMESPACE}"]
        return [plane.family.start(["env", *environment, str(self.folder / PROGRAM)], self.name)]
