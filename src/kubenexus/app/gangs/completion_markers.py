"""That a gang was complete is written on a few of its members, as a condition: the next scheduler must know whether
those that are left may go on, and nothing else in the cluster tells (docs/adr/0012)."""

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
from kubenexus.queue.gangs.job_assembler import JobAssembler

log = logs.get("gangs")


class CompletionMarkers:
    """`status_patcher` is run by the scheduler; `stalled` is theirs."""

    def __init__(
        self, api: Api, guard: WriteGuard, assembler: JobAssembler, clock: Clock, stalled: Callable[[str, int], None]
    ) -> None:
        self._assembler, self._clock = assembler, clock
        self.status_patcher: StatusPatcher[Pod] = StatusPatcher(api, guard, self._is_there, self._unwritten, stalled)

    def mark_complete(self, gang: Gang, member: BoundMember) -> None:
        """A gang has all the members it needs on nodes, and this one is to say so."""
        said = f"gang {gang.title} has had the {gang.minimum} members that it needs on nodes"
        call = conditions.patch(member.pod, Condition(COMPLETE, "True", "Bound", said), PODS, self._clock.now())
        if call is not None:
            self.status_patcher.submit(member.pod, call)

    def _is_there(self, pod: Pod) -> bool:
        member = self._assembler.registry.members.get(pod.key)
        return member is not None and member.pod.metadata.uid == pod.metadata.uid

    def _unwritten(self, pod: Pod, why: str) -> None:
        log.error("Cannot write that a gang is complete", err=why, pod=pod)
        self._assembler.unwritten(pod)
