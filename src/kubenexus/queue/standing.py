"""How gangs stand whose members have nodes: which of them lack some, since when, and who could be let go.

Told by the assembly; asked by whoever keeps gangs whole (`app.keeper`). All times are the API server's, so that a
scheduler that has just started knows as much as the one before it.
"""

import msgspec

from kubenexus.api.core import Pod
from kubenexus.base.moments import moment


class Bound(msgspec.Struct, frozen=True, gc=False):
    """A member on a node, by the API server's word: since when, and whether it has begun to run."""

    pod: Pod
    since: float
    started: bool

    @property
    def owned(self) -> bool:
        """Whether somebody would make it again."""
        return any(owner.controller for owner in self.pod.metadata.owner_references)


class Incomplete(msgspec.Struct, frozen=True, gc=False):
    """A gang with fewer members on nodes than it needs. `patience`: seconds, None for the usual."""

    key: str
    title: str
    minimum: int
    bound: tuple[Bound, ...]
    patience: int | None = None

    @property
    def since(self) -> float:
        return min(each.since for each in self.bound)


def bound_of(pod: Pod, slim: Pod) -> Bound | None:
    """What counts of a pod that has a node; `slim` is what is kept of it."""
    if not pod.spec.node_name:
        return None
    said = [c.last_transition_time for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "True"]
    since = moment(said[0] if said else "", 0.0) or moment(pod.metadata.creation_timestamp, 0.0)
    return Bound(slim, since, pod.status.phase not in ("", "Pending"))
