"""A decision that is being carried out, as data; and the words between the dispatcher and the rooms around it."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from kubenexus.api.core import Pod
from kubenexus.bind.outcome import Outcome
from kubenexus.client.calls import Api, Call, Unreachable
from kubenexus.client.verbs import bind
from kubenexus.framework.decision import Decision, Placement
from kubenexus.framework.job import Job
from kubenexus.state.volumes.mounts import Pick


class Bind(msgspec.Struct, frozen=True, gc=False):
    """One member on its way to its node. `picks` are the volumes that were chosen for its claims."""

    pod: Pod
    node: str
    picks: tuple[Pick, ...] = ()

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def call(self) -> Call:
        meta = self.pod.metadata
        return bind(meta.namespace, meta.name, meta.uid, self.node)


class Commitment(msgspec.Struct, frozen=True):
    """A job that was placed: all of its binds go out together, and at least `minimum` of them or none. `token` is the
    caller's own (the queue's turn)."""

    binds: tuple[Bind, ...]
    decision: Decision
    token: Any = None
    began: float = 0.0
    minimum: int = 1


def committed(job: Job, decision: Decision, token: Any = None, began: float = 0.0) -> Commitment:
    pods = {pod.metadata.uid: pod for pod in job.pods}
    binds = tuple(_bind(pods[each.uid], each) for each in decision.placements)
    return Commitment(binds, decision, token, began, job.minimum)


def _bind(pod: Pod, placement: Placement) -> Bind:
    return Bind(pod, placement.node, placement.assignment.volumes)


class Guard(Protocol):
    """Whether a write may start: `app.leader`, or `Always` where nobody competes."""

    @property
    def write_timeout(self) -> float: ...

    def may_write(self) -> bool: ...


class Always:
    """One process alone."""

    write_timeout = 10.0

    def may_write(self) -> bool:
        return True


class Fenced:
    """An `Api` for writes that nobody waits for, such as events: it sends none that the guard forbids."""

    def __init__(self, api: Api, guard: Guard) -> None:
        self._api, self._guard = api, guard

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if not self._guard.may_write():
            raise Unreachable(f"{call}: not sent, this process does not lead")
        return await self._api.send(call, timeout=min(timeout, self._guard.write_timeout))


class PreBind(Protocol):
    """Something that has to be done before a pod is bound: called for each member, all members at once, outside the
    bound on binds in flight, since it may take minutes. `awaited` is what pods wait for in it, in plural."""

    name: str
    awaited: str

    def may_concern(self, pod: Pod) -> bool:
        """Whether there may be something to do, by what is known before the pod has a node."""

    def concerns(self, bind: Bind) -> bool:
        """Whether there is anything to do; asked of every member, so it has to be quick."""

    async def pre_bind(self, bind: Bind) -> str:
        """Do it. Returns what went wrong, "" if nothing: then no member is bound."""


class PostBind(Protocol):
    """Told of each member that has its node. Must return soon."""

    def post_bind(self, bind: Bind) -> None: ...


class Points(NamedTuple):
    """What happens around a bind, in order."""

    pre_binds: tuple[PreBind, ...] = ()
    post_binds: tuple[PostBind, ...] = ()


NO_POINTS = Points()


class Landing(Protocol):
    """Who draws the consequences. Called once for each commitment, in the loop; must return soon."""

    def __call__(self, commitment: Commitment, outcomes: Sequence[Outcome]) -> None: ...
