"""A job is what waits, is planned, committed and explained: a gang, or a single pod as a gang of one."""

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.state.devices import DeviceShare
from kubenexus.state.volumes.pod_volumes import VolumeChoice


class Job(msgspec.Struct, frozen=True, gc=False):
    """`minimum` members or none at all. The key is `namespace/name` of the gang, or of the pod.

    `pods` are the members that need a node. Others may have one already (`bound_nodes`, the nodes' names, one for
    each): they do not count towards `minimum`, and the rest joins them. `hold_keys` are keys under which the ledger
    holds the room of lost members for this very job.
    """

    key: str
    pods: tuple[Pod, ...]
    minimum: int = 1
    topology: TopologyRequest = NO_TOPOLOGY_REQUEST
    bound_nodes: tuple[str, ...] = ()
    hold_keys: tuple[str, ...] = ()

    @property
    def is_gang(self) -> bool:
        """Whether it is one, or what is left of one. A gang's key has more parts than a pod's."""
        return self.key.count("/") > 1

    @staticmethod
    def of(pod: Pod) -> "Job":
        """A pod is a job of one."""
        return Job(key=pod.key, pods=(pod,))


class JobView(msgspec.Struct, frozen=True, gc=False):
    """What a scoring rule may know of the job: how large it is and where its earlier members went, as rows."""

    size: int = 1
    placed: tuple[int, ...] = ()
    counted_keys: frozenset[str] = (
        frozenset()
    )  # the keys of those members, and of others whose place is counted already


SINGLE_POD_VIEW = JobView()


class Assignment(msgspec.Struct, frozen=True, gc=False, rename={"device_shares": "takes"}):
    """What a pod takes on a node besides room: parts of devices, volumes for its claims, and notes to write on it when
    it is bound."""

    device_shares: tuple[DeviceShare, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    volumes: tuple[VolumeChoice, ...] = ()

    def __add__(self, other: "Assignment") -> "Assignment":
        return Assignment(
            device_shares=self.device_shares + other.device_shares,
            annotations=self.annotations + other.annotations,
            volumes=self.volumes + other.volumes,
        )


NO_ASSIGNMENT = Assignment()
