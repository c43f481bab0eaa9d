"""The registrar writes on Kubernetes' own PodGroups what became of them: scheduled, or why not yet.

Nothing is written again while it is the same, and nothing more once a group was scheduled. A group of which each member
goes by itself (policy `basic`) is scheduled as soon as one of them is.
"""

from collections.abc import Callable

import msgspec

from kubenexus.api.gangs.claim import POD_GROUP
from kubenexus.api.workloads import PodGroup
from kubenexus.base.clock import Clock
from kubenexus.bind.commitment import Guard
from kubenexus.bind.notes import Notes
from kubenexus.client.calls import Api
from kubenexus.client.kinds import Resource
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.observe import conditions, group_conditions, logs
from kubenexus.observe.conditions import Condition
from kubenexus.state.groups import Groups

Named = tuple[str, str]  # a namespace and a name in it

log = logs.get("registrar")


class Told(msgspec.Struct, frozen=True, gc=False):
    """What was last written on a group, or is to be."""

    uid: str
    condition: Condition


class Registrar:
    """`form` is how the server knows PodGroups now. `notes` is run by the scheduler; `stalled` is theirs."""

    def __init__(
        self,
        groups: Groups,
        api: Api,
        guard: Guard,
        form: Callable[[], Resource],
        clock: Clock,
        stalled: Callable[[str, int], None],
    ) -> None:
        self._groups, self._form, self._clock = groups, form, clock
        self._told: dict[Named, Told] = {}
        self.notes: Notes[PodGroup] = Notes(api, guard, self._is_there, self._unwritten, stalled)

    def refused(self, job: Job, code: Code, sentence: str) -> None:
        """A job was tried and has no node, or the attempt failed."""
        group = self._group(job)
        if group is not None:
            self._say(group, group_conditions.refused(code, sentence, self._form()))

    def scheduled(self, job: Job) -> None:
        """As many of its members as it needs have a node, by the server's word."""
        group = self._group(job)
        if group is not None:
            self._say(group, group_conditions.scheduled(self._form()))

    def _say(self, group: PodGroup, condition: Condition) -> None:
        form, name = self._form(), _name(group)
        told = self._told.get(name)
        if told is not None and told.uid != group.metadata.uid:
            told = None
        settled = told is not None and told.condition.status == "True"
        if settled or group_conditions.is_settled(group, form) or (told is not None and told.condition == condition):
            return
        self._forget_the_gone()
        self._told[name] = Told(group.metadata.uid, condition)
        call = conditions.patch(group, condition, form, self._clock.now())
        if call is not None:
            self.notes.write(group, call)
        else:
            self.notes.drop(group.metadata.uid)  # what waits to be written is no longer so, and this is said already

    def _group(self, job: Job) -> PodGroup | None:
        pod = job.pods[0]
        if pod.spec.scheduling_group is None:
            return None
        found = self._groups.find(POD_GROUP, pod.metadata.namespace, pod.spec.scheduling_group.pod_group_name)
        return found if isinstance(found, PodGroup) else None

    def _is_there(self, group: PodGroup) -> bool:
        found = self._groups.find(POD_GROUP, *_name(group))
        return found is not None and found.metadata.uid == group.metadata.uid

    def _forget_the_gone(self) -> None:
        if len(self._told) > 2 * len(self._groups):
            self._told = {name: told for name, told in self._told.items() if self._groups.find(POD_GROUP, *name)}

    def _unwritten(self, group: PodGroup, why: str) -> None:
        log.error("Failed to update the status of a PodGroup", err=why, group="/".join(_name(group)))
        self._told.pop(_name(group), None)


def _name(group: PodGroup) -> Named:
    return group.metadata.namespace, group.metadata.name
