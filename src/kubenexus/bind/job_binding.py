"""Data of a decision that is being carried out, and the protocols between the dispatcher and its callers."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import devices_annotation
from kubenexus.api.keys import gpu
from kubenexus.bind.bind_result import BindResult
from kubenexus.client.calls import Api, Call, Unreachable
from kubenexus.client.verbs import bind
from kubenexus.framework.decision import Decision, PodPlacement
from kubenexus.framework.job import Job
from kubenexus.state.volumes.pod_volumes import VolumeChoice

NOT_LEADING = "this process does not lead any more"


class PodBinding(msgspec.Struct, frozen=True, gc=False):
    """One pod and the node to bind it to. `picks` are the volumes that were chosen for its claims, `annotations` what
    is written on the pod with the bind."""

    pod: Pod
    node: str
    picks: tuple[VolumeChoice, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def call(self) -> Call:
        meta = self.pod.metadata
        return bind(meta.namespace, meta.name, meta.uid, self.node, dict(self.annotations))


class JobBinding(msgspec.Struct, frozen=True):
    """A job that was placed. All its binds are sent together: at least `minimum` of them, or none. `attempt` belongs
    to the caller (the queue's attempt)."""

    pod_bindings: tuple[PodBinding, ...]
    decision: Decision
    attempt: Any = None
    began: float = 0.0
    minimum: int = 1


def job_binding(job: Job, decision: Decision, attempt: Any = None, began: float = 0.0) -> JobBinding:
    pods = {pod.metadata.uid: pod for pod in job.pods}
    pod_bindings = tuple(_bind(pods[each.uid], each) for each in decision.placements)
    return JobBinding(pod_bindings, decision, attempt, began, job.minimum)


def _bind(pod: Pod, placement: PodPlacement) -> PodBinding:
    given = placement.assignment
    annotations = given.annotations
    if given.device_shares:
        annotations += ((gpu.DEVICES.key, devices_annotation(given.device_shares)),)
    return PodBinding(pod, placement.node, given.volumes, annotations)


class WriteGuard(Protocol):
    """Whether a write may start: `app.election.leader`, or `AlwaysWritable` without leader election."""

    @property
    def write_timeout(self) -> float: ...

    def may_write(self) -> bool: ...


class AlwaysWritable:
    """The guard of a process without leader election."""

    write_timeout = 10.0

    def may_write(self) -> bool:
        return True


class GuardedApi:
    """An `Api` for less urgent writes, such as events. Sends none that the guard forbids."""

    def __init__(self, api: Api, guard: WriteGuard) -> None:
        self._api, self._guard = api, guard

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if not self._guard.may_write():
            raise Unreachable(f"{call}: not sent, this process does not lead")
        return await self._api.send(call, timeout=min(timeout, self._guard.write_timeout))


class PreBind(Protocol):
    """A plugin that runs before a pod is bound. The dispatcher calls it for all members of a job at once, outside the
    bound on binds in flight, since it may take minutes. `awaited` is what pods wait for in it, in plural."""

    name: str
    awaited: str

    def may_concern(self, pod: Pod) -> bool:
        """Whether there may be something to do, as far as is known before the pod has a node."""

    def concerns(self, pod_binding: PodBinding) -> bool:
        """Whether there is anything to do. Called for each member, so it has to be quick."""

    async def pre_bind(self, pod_binding: PodBinding) -> str:
        """Does it. Returns what went wrong, "" if nothing did. If anything did, no member is bound."""


@runtime_checkable
class UnBind(Protocol):
    """A PreBind plugin that can take back what it wrote."""

    async def un_bind(self, pod_binding: PodBinding) -> None:
        """Called for each member that was not bound in the end, before its result is reported. Must not raise."""


class PostBind(Protocol):
    """A plugin that is called for each pod that was bound. Must return soon."""

    def post_bind(self, pod_binding: PodBinding) -> None: ...


class BindHooks(NamedTuple):
    """The plugins that run around a bind, in order."""

    pre_binds: tuple[PreBind, ...] = ()
    post_binds: tuple[PostBind, ...] = ()


NO_HOOKS = BindHooks()


class JobBoundCallback(Protocol):
    """Handles the results of a job. Called once for each job, in the event loop; must return soon. What can wait is
    left to the iterator that it returns, if any: each step of that has a turn of the loop."""

    def __call__(self, job_binding: JobBinding, results: Sequence[BindResult]) -> Iterator[None] | None: ...
