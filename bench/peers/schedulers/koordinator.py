"""Koordinator: koord-scheduler with the plugins of its own sample configuration; the agents on nodes are not there.

A gang is bound to a rack by an annotation, which its network topology manager reads; both are off by default.
"""

import json

from bench.live.cases import RACK
from bench.peers.building import Module
from bench.peers.peer import QPS, Gang, Peer, made, mark
from kubenexus.testing.controlplane import ControlPlane, ManagedProcess, Object, free_ports

PATH = "github.com/koordinator-sh/koordinator"
PROGRAM = "koord-scheduler"
KEYS = "gang.scheduling.koordinator.sh"
LAYER = "RackLayer"
# By point of its framework: what its sample configuration enables there.
PLUGINS = {
    "preEnqueue": ["Coscheduling"],
    "preFilter": ["SchedulingHint", "Reservation", "NodeNUMAResource", "DeviceShare", "Coscheduling", "ElasticQuota"],
    "filter": ["LoadAwareScheduling", "NodeNUMAResource", "DeviceShare", "Reservation"],
    "postFilter": ["Reservation", "Coscheduling", "ElasticQuota", "DefaultPreemption"],
    "preScore": ["Reservation", "Coscheduling"],
    "score": ["LoadAwareScheduling", "NodeNUMAResource", "DeviceShare", "Reservation", "Coscheduling"],
    "reserve": ["LoadAwareScheduling", "NodeNUMAResource", "DeviceShare", "Coscheduling", "ElasticQuota"],
    "permit": ["Coscheduling"],
    "preBind": ["NodeNUMAResource", "DeviceShare", "Reservation", "Coscheduling", "DefaultPreBind"],
    "bind": ["Reservation", "DefaultBinder"],
    "postBind": ["Coscheduling"],
}
INSTEAD = ("postFilter", "bind")  # points at which these replace kube-scheduler's own
WEIGHTS = {"Reservation": 5000}


class Koordinator(Peer):
    """One process."""

    name = "koordinator"
    module = Module(name, PATH, {PROGRAM: f"{PATH}/cmd/koord-scheduler"}, kinds=("config/crd/bases/*.yaml",))

    def prepare(self, plane: ControlPlane, namespace: str, racks: int) -> None:
        super().prepare(plane, namespace, racks)
        if racks:
            layers = [
                {"topologyLayer": LAYER, "labelKey": [RACK]},
                {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": LAYER},
            ]
            spec = {"networkTopologySpec": layers}
            plane.cluster().create(
                made("scheduling.koordinator.sh/v1alpha1", "ClusterNetworkTopology", "default", spec)
            )

    def group(self, gang: Gang) -> Object:
        group = made("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", gang.name, {"minMember": gang.size})
        if gang.rack:
            rule = {"gatherStrategy": [{"layer": LAYER, "strategy": "MustGather"}]}
            mark(group, annotations={f"{KEYS}/network-topology-spec": json.dumps(rule)})
        return group

    def join(self, pod: Object, gang: Gang) -> None:
        mark(pod, labels={"pod-group.scheduling.sigs.k8s.io": gang.name})

    def start(self, plane: ControlPlane) -> list[ManagedProcess]:
        config = plane.folder / "koordinator.json"
        config.write_text(json.dumps(self._configuration(plane)))
        port, health = free_ports(2)
        flags = [f"--config={config}", "--bind-address=127.0.0.1", f"--secure-port={port}", f"--port={health}"]
        flags.append("--enable-network-topology-manager=true")
        return [plane.family.start([str(self.folder / PROGRAM), *flags], self.name)]

    def _configuration(self, plane: ControlPlane) -> Object:
        arguments = {"awareNetworkTopology": True}
        profile = {
            "schedulerName": self.scheduler_name,
            "plugins": {point: _enabled(point) for point in PLUGINS},
            "pluginConfig": [{"name": "Coscheduling", "args": arguments}],
        }
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(plane.kubeconfig()), "qps": QPS, "burst": QPS},
            "profiles": [profile],
        }


def _enabled(point: str) -> Object:
    weighed = point == "score"
    names = [{"name": each, **({"weight": WEIGHTS.get(each, 1)} if weighed else {})} for each in PLUGINS[point]]
    return {"enabled": names, **({"disabled": [{"name": "*"}]} if point in INSTEAD else {})}
