"""The job: what the queue orders, the planner decides, the dispatcher binds and `explain` explains.

A job is a gang, or a single pod as a gang of one. It is not a batch/v1 Job.
"""

from collections.abc import Mapping

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.api.gangs.job_key import display_name, is_gang_key
from kubenexus.state.claims.store import ClaimChoice
from kubenexus.state.volumes.pod_volumes import VolumeChoice


class Job(msgspec.Struct, frozen=True, gc=False):
    """Pods that are placed together: at least `minimum` of them, or none.

    `key` is unique among all jobs (`api.gangs.job_key`). `pods` are the members that need a node, at least one, the
    first in the gang's order first. `bound_nodes` has the node of each member that has one already; such members do not
    count towards `minimum`, and `topology` places the others beside them. `hold_keys` are the keys under which the
    ledger holds the capacity of lost members for this job.
    """

    key: str
    pods: tuple[Pod, ...]
    minimum: int = 1
    topology: TopologyRequest = NO_TOPOLOGY_REQUEST
    bound_nodes: tuple[str, ...] = ()
    hold_keys: tuple[str, ...] = ()

    @property
    def is_gang(self) -> bool:
        """Whether the job is a gang, or the rest of one, even if a single member is left."""
        return is_gang_key(self.key)

    @property
    def profile(self) -> str:
        """The scheduler name of its pods. All members of a gang have the same, or the gang is held back."""
        return self.pods[0].spec.scheduler_name

    @property
    def namespace(self) -> str:
        """The namespace of its pods; no gang reaches beyond one."""
        return self.pods[0].metadata.namespace

    @property
    def priority(self) -> int:
        """The highest priority of its pods."""
        pods = self.pods
        return pods[0].spec.priority if len(pods) == 1 else max(pod.spec.priority for pod in pods)

    @property
    def display_name(self) -> str:
        """The job as users write it: `ml/llama`, without the family that `key` has in the middle."""
        return display_name(self.key)

    def bound_rows(self, row_of: Mapping[str, int]) -> tuple[int, ...]:
        """Returns the rows of `bound_nodes`, each once, in order. `row_of` has the row of each node."""
        if not self.bound_nodes:
            return ()
        return tuple(sorted({row_of[name] for name in self.bound_nodes if name in row_of}))

    @staticmethod
    def of(pod: Pod) -> "Job":
        """Returns the job of a single pod."""
        return Job(key=pod.key, pods=(pod,))


class JobView(msgspec.Struct, frozen=True, gc=False):
    """What a Score plugin gets of the job: its size, and the rows of the members that have a node.

    `placed` has the members that run or are bound already, and those that this decision placed before. `counted_keys`
    are the keys of the latter, and of all other pods that are in the columns already.
    """

    size: int = 1
    placed: tuple[int, ...] = ()
    counted_keys: frozenset[str] = frozenset()

    @property
    def is_single(self) -> bool:
        """Whether there is no other member that a plugin could look at."""
        return not self.placed and self.size == 1


SINGLE_POD_VIEW = JobView()


class Assignment(msgspec.Struct, frozen=True, gc=False, rename={"device_shares": "takes"}):
    """What a pod takes on a node besides resources: parts of devices, volumes, and devices for its claims.

    The dispatcher writes `annotations` on the pod when it binds it.
    """

    device_shares: tuple[DeviceShare, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    volumes: tuple[VolumeChoice, ...] = ()
    claims: tuple[ClaimChoice, ...] = ()

    def __add__(self, other: "Assignment") -> "Assignment":
        return Assignment(
            device_shares=self.device_shares + other.device_shares,
            annotations=self.annotations + other.annotations,
            volumes=self.volumes + other.volumes,
            claims=self.claims + other.claims,
        )


NO_ASSIGNMENT = Assignment()
