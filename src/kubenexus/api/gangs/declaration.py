"""The gang that a pod declares, before any object that it names is read."""

import re
from typing import Final, TypeVar

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.keys.entry import KeyEntry
from kubenexus.api.keys.reading import KeyReading, read_key
from kubenexus.api.keys.values import quoted
from kubenexus.base.errors import Malformed

T = TypeVar("T")

# The kinds of objects that a pod may name, as `state.object_kinds` calls them.
POD_GROUP: Final = "PodGroup"
COSCHEDULING: Final = "PodGroup.scheduling.x-k8s.io"
VOLCANO: Final = "PodGroup.scheduling.volcano.sh"
WORKLOAD: Final = "Workload"
KUEUE_WORKLOAD: Final = "Workload.kueue.x-k8s.io"

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", re.ASCII)


class GroupRef(msgspec.Struct, frozen=True, gc=False):
    """A reference to an object in the pod's own namespace; a pod cannot name others. `part`: the group of a
    Workload."""

    kind: str
    namespace: str
    name: str
    part: str = ""

    def __str__(self) -> str:
        kind = self.kind if "." in self.kind else f"{self.kind}.scheduling.k8s.io"
        return f"{kind} {self.namespace}/{self.name}"

    @property
    def kinds(self) -> str:
        """The objects of the kind in a message: `PodGroups of scheduling.volcano.sh`."""
        kind, _, group = self.kind.partition(".")
        return f"{kind}s of {group or 'scheduling.k8s.io'}"


class TopologyRequest(msgspec.Struct, frozen=True, gc=False):
    """The topology levels, by name or label, within which the members must or should be. `explicit`: no default is
    added."""

    required: str = ""
    preferred: str = ""
    explicit: bool = False


NO_TOPOLOGY_REQUEST: Final = TopologyRequest()


class GangDeclaration(msgspec.Struct, frozen=True, gc=False):
    """The gang that a pod declares.

    `key` identifies the gang among all jobs (it has three parts where a pod's has two); `display_name` is for people.
    The minimum is 0 if the object `ref` has it. `source` is the pod's field or key that declares the gang; `warnings`
    are the oddities found there. `completion_timeout` is how many seconds the gang may be incomplete once a member has
    a node; None for the default.
    """

    key: str
    display_name: str
    source: str
    minimum: int = 0
    ref: GroupRef | None = None
    topology: TopologyRequest = NO_TOPOLOGY_REQUEST
    warnings: tuple[str, ...] = ()
    completion_timeout: int | None = None


def validated_name(text: str, where: str) -> str:
    """Returns a name that may be part of a key. Raises Malformed for others, which could be mistaken for another
    gang's."""
    if not _NAME.fullmatch(text):
        what = "a name of letters, digits, '-', '_' and '.', at most 253"
        raise Malformed(f"must be {what}, not {quoted(text)}", field=where)
    return text


def require_key(entry: KeyEntry[T], pod: Pod) -> KeyReading[T]:
    """Reads a key of the pod. Raises Malformed if the key is set and no spelling of it has a valid value."""
    found = read_key(entry, pod.metadata.labels, pod.metadata.annotations)
    if found.problems and not found.is_set:
        raise Malformed(found.problems[0].what, field=found.problems[0].where)
    return found
