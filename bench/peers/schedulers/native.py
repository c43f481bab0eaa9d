"""KubeNexus and kube-scheduler: gangs are PodGroups of Kubernetes' own `scheduling.k8s.io`, with its gates open."""

import kubenexus
from bench.live import contestants
from bench.live.cases import RACK
from bench.live.stage import GATES
from bench.peers.peer import Gang, Peer, made
from kubenexus.testing.controlplane import ControlPlane, ManagedProcess, Object
from tests.e2e.controlplane import build


class _Native(Peer):
    def group(self, gang: Gang) -> Object:
        spec: Object = {"schedulingPolicy": {"gang": {"minCount": gang.size}}}
        if gang.rack:
            spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
        return made("scheduling.k8s.io/v1beta1", "PodGroup", gang.name, spec)

    def join(self, pod: Object, gang: Gang) -> None:
        pod["spec"]["schedulingGroup"] = {"podGroupName": gang.name}

    def start(self, plane: ControlPlane) -> list[ManagedProcess]:
        return [contestants.start(self.name, plane, GATES)]


class KubeScheduler(_Native):
    """As `make controlplane` builds it."""

    name = contestants.THEIRS

    @property
    def version(self) -> str:
        return build.version().removeprefix("v")


class KubeNexus(_Native):
    """As it is in this working tree, with the shipped profile."""

    name = contestants.OURS

    @property
    def version(self) -> str:
        return kubenexus.__version__
