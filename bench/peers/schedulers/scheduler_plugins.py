"""scheduler-plugins: kube-scheduler with Coscheduling, which lets the members of a gang wait for each other.

It pins Kubernetes' libraries 0.34.2 instead of 0.34.7, of which the proxy does not serve all. Gangs cannot be bound to
a rack.
"""

import json

from bench.peers.building import Module
from bench.peers.peer import QPS, Gang, Peer, made, mark
from kubenexus.testing.controlplane import ControlPlane, ManagedProcess, Object, free_ports

PATH = "sigs.k8s.io/scheduler-plugins"
PROGRAM = "scheduler"
PLUGIN = "Coscheduling"
# Its sample gives a gang 10 s to assemble.
WAIT_SECONDS = 300


class SchedulerPlugins(Peer):
    """One process."""

    name = "scheduler-plugins"
    racks = False
    module = Module(name, PATH, {PROGRAM: f"{PATH}/cmd/scheduler"}, kinds=("config/crd/bases/*.yaml",))

    def group(self, gang: Gang) -> Object:
        return made("scheduling.x-k8s.io/v1alpha1", "PodGroup", gang.name, {"minMember": gang.size})

    def join(self, pod: Object, gang: Gang) -> None:
        mark(pod, labels={"scheduling.x-k8s.io/pod-group": gang.name})

    def start(self, plane: ControlPlane) -> list[ManagedProcess]:
        config = plane.folder / "scheduler-plugins.json"
        config.write_text(json.dumps(self._configuration(plane)))
        port = free_ports(1)[0]
        flags = [f"--config={config}", "--bind-address=127.0.0.1", f"--secure-port={port}"]
        return [plane.family.start([str(self.folder / PROGRAM), *flags], self.name)]

    def _configuration(self, plane: ControlPlane) -> Object:
        enabled = {"enabled": [{"name": PLUGIN}]}
        plugins = {"multiPoint": enabled, "queueSort": {**enabled, "disabled": [{"name": "*"}]}}
        arguments = {"name": PLUGIN, "args": {"permitWaitingTimeSeconds": WAIT_SECONDS}}
        profile = {"schedulerName": self.scheduler_name, "plugins": plugins, "pluginConfig": [arguments]}
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(plane.kubeconfig()), "qps": QPS, "burst": QPS},
            "profiles": [profile],
        }
