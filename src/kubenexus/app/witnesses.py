"""That a gang was complete is written on a few of its members, as a condition: the next scheduler must know whether
those that are left may go on, and nothing else in the cluster tells (docs/adr/0012)."""

from collections.abc import Callable

from kubenexus.api.core import Pod
from kubenexus.api.gangs.resolver import Gang
from kubenexus.base.clock import Clock
from kubenexus.bind.commitment import Guard
from kubenexus.bind.notes import Notes
from kubenexus.client.calls import Api
from kubenexus.client.kinds import PODS
from kubenexus.observe import conditions, logs
from kubenexus.observe.conditions import Condition
from kubenexus.queue.assembly import Assembly
from kubenexus.queue.standing import COMPLETE, Bound

log = logs.get("witnesses")


class Witnesses:
    """`notes` is run by the scheduler; `stalled` is theirs."""

    def __init__(
        self, api: Api, guard: Guard, assembly: Assembly, clock: Clock, stalled: Callable[[str, int], None]
    ) -> None:
        self._assembly, self._clock = assembly, clock
        self.notes: Notes[Pod] = Notes(api, guard, self._is_there, self._unwritten, stalled)

    def completed(self, gang: Gang, member: Bound) -> None:
        """A gang has all the members it needs on nodes, and this one is to say so."""
        said = f"gang {gang.title} has had the {gang.minimum} members that it needs on nodes"
        call = conditions.patch(member.pod, Condition(COMPLETE, "True", "Bound", said), PODS, self._clock.now())
        if call is not None:
            self.notes.write(member.pod, call)

    def _is_there(self, pod: Pod) -> bool:
        member = self._assembly.roll.members.get(pod.key)
        return member is not None and member.pod.metadata.uid == pod.metadata.uid

    def _unwritten(self, pod: Pod, why: str) -> None:
        log.error("Cannot write that a gang is complete", err=why, pod=pod)
        self._assembly.unwritten(pod)
