"""Volcano: vc-scheduler with the plugins of its chart, and vc-controller-manager.

The proxy serves no 1.15 of `volcano.sh/apis`. 1.14.0 lacks one constant of it, which is added. `prometheus` is pinned
to a release, since the commit that Volcano asks for has no entry in the checksum database; only its agent uses it.
"""

from bench.live.cases import RACK
from bench.peers.building import Module
from bench.peers.peer import QPS, Gang, Peer, made, mark
from kubenexus.testing.controlplane import ControlPlane, ManagedProcess, Object

PATH = "volcano.sh/volcano"
SCHEDULER, CONTROLLERS = "vc-scheduler", "vc-controller-manager"
CONSTANT = 'package v1beta1\n\nconst QueueAllocationGateKey = GroupName + "/queue-allocation-gate"\n'
CONFIGURATION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins:
  - {name: overcommit}
  - {name: drf, enablePreemptable: false}
  - {name: predicates}
  - {name: proportion}
  - {name: nodeorder}
  - {name: binpack}
"""


class Volcano(Peer):
    """Two processes."""

    name = "volcano"
    module = Module(
        name,
        PATH,
        {SCHEDULER: f"{PATH}/cmd/scheduler", CONTROLLERS: f"{PATH}/cmd/controller-manager"},
        kinds=("config/crd/volcano/bases/*.yaml",),
        additions={"volcano.sh/apis": {"pkg/apis/scheduling/v1beta1/missing_constant.go": CONSTANT}},
    )

    def prepare(self, plane: ControlPlane, namespace: str, racks: int) -> None:
        super().prepare(plane, namespace, racks)
        cluster = plane.cluster()
        for number in range(racks):
            name = f"rack-{number}"
            nodes = {"type": "Node", "selector": {"labelMatch": {"matchLabels": {RACK: name}}}}
            cluster.create(made("topology.volcano.sh/v1alpha1", "HyperNode", name, {"tier": 1, "members": [nodes]}))

    def group(self, gang: Gang) -> Object:
        spec: Object = {"minMember": gang.size, "queue": "default"}
        if gang.rack:
            spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
        return made("scheduling.volcano.sh/v1beta1", "PodGroup", gang.name, spec)

    def join(self, pod: Object, gang: Gang) -> None:
        mark(pod, annotations={"scheduling.k8s.io/group-name": gang.name})

    def start(self, plane: ControlPlane) -> list[ManagedProcess]:
        config = plane.folder / "volcano.yaml"
        config.write_text(CONFIGURATION)
        common = [
            f"--kubeconfig={plane.kubeconfig()}",
            f"--scheduler-name={self.scheduler_name}",
            f"--kube-api-qps={QPS}",
            f"--kube-api-burst={QPS}",
            "--leader-elect=false",
        ]
        files = [f"--scheduler-conf={config}", "--cache-dumper=false"]
        return [
            plane.family.start([str(self.folder / SCHEDULER), *common, *files], SCHEDULER),
            plane.family.start([str(self.folder / CONTROLLERS), *common], CONTROLLERS),
        ]
