"""Marks a few members of a complete gang with a condition (docs/adr/0012).

The next scheduler process must know whether a gang was complete once: then its running members may go on without the
others. Nothing else in the cluster holds this fact.
"""

from collections.abc import Callable

from kubenexus.api.core import Pod
from kubenexus.api.gangs.resolver import Gang
from kubenexus.base.clock import Clock
from kubenexus.bind.job_binding import WriteGuard
from kubenexus.client.calls import Api
from kubenexus.client.kinds import PODS
from kubenexus.observe import conditions, logs
from kubenexus.observe.conditions import Condition
from kubenexus.observe.status_patcher import StatusPatcher
from kubenexus.queue.gangs.bound_members import COMPLETE, BoundMember
from kubenexus.queue.gangs.gang_registry import GangRegistry

log = logs.get("gangs")


class CompletionMarkers:
    """Writes the conditions through `status_patcher`, which the scheduler runs. `stalled` is called when the writes of
    a namespace do not go through."""

    def __init__(
        self, api: Api, guard: WriteGuard, registry: GangRegistry, clock: Clock, stalled: Callable[[str, int], None]
    ) -> None:
        self._registry, self._clock = registry, clock
        self.status_patcher: StatusPatcher[Pod] = StatusPatcher(api, guard, self._is_there, self._unwritten, stalled)

    def mark_complete(self, gang: Gang, member: BoundMember) -> None:
        """Queues the patch that marks this member: its gang has its minimum on nodes."""
        message = f"gang {gang.title} has had the {gang.minimum} members that it needs on nodes"
        call = conditions.patch(member.pod, Condition(COMPLETE, "True", "Bound", message), PODS, self._clock.now())
        if call is not None:
            self.status_patcher.submit(member.pod, call)

    def _is_there(self, pod: Pod) -> bool:
        member = self._registry.members.get(pod.key)
        return member is not None and member.pod.metadata.uid == pod.metadata.uid

    def _unwritten(self, pod: Pod, why: str) -> None:
        log.error("Cannot write that a gang is complete", err=why, pod=pod)
        self._registry.marker_failed(pod)
