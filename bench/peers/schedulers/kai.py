"""KAI: the scheduler, its binder and three controllers; webhooks are off. Newer versions are not on the proxy."""

from bench.live.cases import RACK
from bench.peers.building import Module
from bench.peers.peer import QPS, Gang, Peer, made, mark
from kubenexus.testing.controlplane import ControlPlane, ManagedProcess, Object, free_ports

PATH = "github.com/NVIDIA/KAI-scheduler"
PROGRAMS = ("scheduler", "binder", "podgrouper", "podgroupcontroller", "queuecontroller")
QUEUE, PARENT = "default-queue", "default-parent-queue"
TOPOLOGY = "racks"
LOOPBACK = "127.0.0.1"


class KAI(Peer):
    """Five processes. Its podgroupcontroller always listens on port 8080."""

    name = "kai"
    module = Module(
        name,
        PATH,
        {f"kai-{each}": f"{PATH}/cmd/{each}" for each in PROGRAMS},
        kinds=("deployments/kai-scheduler/crds/*.yaml",),
    )

    def prepare(self, plane: ControlPlane, namespace: str, racks: int) -> None:
        super().prepare(plane, namespace, racks)
        cluster = plane.cluster()
        unlimited = {each: {"limit": -1, "overQuotaWeight": 1, "quota": 0} for each in ("cpu", "gpu", "memory")}
        cluster.create(made("scheduling.run.ai/v2", "Queue", PARENT, {"resources": unlimited}))
        cluster.create(made("scheduling.run.ai/v2", "Queue", QUEUE, {"parentQueue": PARENT, "resources": unlimited}))
        if racks:
            levels = {"levels": [{"nodeLabel": RACK}]}
            cluster.create(made("kai.scheduler/v1alpha1", "Topology", TOPOLOGY, levels))

    def group(self, gang: Gang) -> Object:
        spec: Object = {"minMember": gang.size, "queue": QUEUE}
        if gang.rack:
            spec["topologyConstraint"] = {"topology": TOPOLOGY, "requiredTopologyLevel": RACK}
        return made("scheduling.run.ai/v2alpha2", "PodGroup", gang.name, spec)

    def join(self, pod: Object, gang: Gang) -> None:
        mark(pod, labels={"kai.scheduler/queue": QUEUE}, annotations={"pod-group-name": gang.name})

    def start(self, plane: ControlPlane) -> list[ManagedProcess]:
        name = f"--scheduler-name={self.scheduler_name}"
        flags = {
            "scheduler": [name, _at("listen-address"), f"--plugin-server-port={free_ports(1)[0]}"],
            "binder": [name, _at("metrics-bind-address"), _at("health-probe-bind-address")],
            "podgrouper": [name, _at("metrics-bind-address"), _at("health-probe-bind-address")],
            "podgroupcontroller": [name, _at("health-probe-bind-address"), "--enable-podgroup-webhook=false"],
            "queuecontroller": [_at("metrics-listen-address"), "--enable-webhook=false"],
        }
        common = [f"--qps={QPS}", f"--burst={QPS}", "--leader-elect=false"]
        return [
            plane.family.start(
                ["env", f"KUBECONFIG={plane.kubeconfig()}", str(self.folder / f"kai-{each}"), *common, *flags[each]],
                f"kai-{each}",
            )
            for each in PROGRAMS
        ]


def _at(flag: str) -> str:
    return f"--{flag}={LOOPBACK}:{free_ports(1)[0]}"
