"""A job is what waits, is planned, committed and explained: a gang, or a single pod as a gang of one."""

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import UNSAID, Nearness
from kubenexus.state.devices import Take
from kubenexus.state.volumes.mounts import Pick


class Job(msgspec.Struct, frozen=True, gc=False):
    """`minimum` members or none at all. The key is `namespace/name` of the gang, or of the pod.

    `pods` are the members that need a node. Others may have one already (`anchors`, the nodes' names, one for each):
    they do not count towards `minimum`, and the rest joins them. `holes` are keys under which the ledger holds the room
    of lost members for this very job.
    """

    key: str
    pods: tuple[Pod, ...]
    minimum: int = 1
    topology: Nearness = UNSAID
    anchors: tuple[str, ...] = ()
    holes: tuple[str, ...] = ()

    @property
    def gang(self) -> bool:
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
    seated: frozenset[str] = frozenset()  # the keys of those members, and of others whose place is counted already


ALONE = JobView()


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """What a pod takes on a node besides room: parts of devices, volumes for its claims, and notes to write on it when
    it is bound."""

    takes: tuple[Take, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    volumes: tuple[Pick, ...] = ()

    def __add__(self, other: "Assignment") -> "Assignment":
        return Assignment(
            takes=self.takes + other.takes,
            annotations=self.annotations + other.annotations,
            volumes=self.volumes + other.volumes,
        )


NOTHING = Assignment()
