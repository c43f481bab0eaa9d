"""Writes conditions to Kubernetes' own PodGroups: scheduled, or why not yet.

A condition is written only when it changes, and never again once the group was scheduled. A group whose members are
scheduled one by one (policy `basic`) counts as scheduled as soon as one of them is.
"""

from collections.abc import Callable

import msgspec

from kubenexus.api.gangs.declaration import POD_GROUP
from kubenexus.api.workloads import PodGroup
from kubenexus.base.clock import Clock
from kubenexus.bind.job_binding import WriteGuard
from kubenexus.client.calls import Api
from kubenexus.client.kinds import ApiResource
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.observe import conditions, group_conditions, logs
from kubenexus.observe.conditions import Condition
from kubenexus.observe.status_patcher import StatusPatcher
from kubenexus.state.pod_group_store import PodGroupStore

Named = tuple[str, str]  # a namespace and a name in it

log = logs.get("pod_groups")


class LastCondition(msgspec.Struct, frozen=True, gc=False):
    """The condition that was last written to a group, or waits to be written."""

    uid: str
    condition: Condition


class PodGroupReporter:
    """Writes the conditions through `status_patcher`, which the scheduler runs. `form` returns the version of PodGroups
    that the API server has now. `stalled` is called when the writes of a namespace do not go through."""

    def __init__(
        self,
        groups: PodGroupStore,
        api: Api,
        guard: WriteGuard,
        form: Callable[[], ApiResource],
        clock: Clock,
        stalled: Callable[[str, int], None],
    ) -> None:
        self._groups, self._form, self._clock = groups, form, clock
        self._last_condition: dict[Named, LastCondition] = {}
        self._given_up: dict[Named, str] = {}  # UIDs of groups of which it cannot be written that they were scheduled
        self.status_patcher: StatusPatcher[PodGroup] = StatusPatcher(
            api, guard, self._is_there, self._unwritten, stalled
        )

    def refused(self, job: Job, code: Code, sentence: str) -> None:
        """Reports that a job was tried and has no node, or that the attempt failed."""
        group = self._group(job)
        if group is not None:
            self._submit(group, group_conditions.unschedulable_condition(code, sentence, self._form()))

    def complete(self, group: PodGroup, at: float) -> bool:
        """Reports that as many members as the group needs have a node since `at`. Returns False if that was given up
        before: then members have to say so themselves (docs/adr/0012)."""
        if self._given_up.get(_name(group)) == group.metadata.uid:
            return False
        self._submit(group, group_conditions.scheduled_condition(self._form()), at)
        return True

    def _submit(self, group: PodGroup, condition: Condition, since: float | None = None) -> None:
        form, name = self._form(), _name(group)
        last_condition = self._last_condition.get(name)
        if last_condition is not None and last_condition.uid != group.metadata.uid:
            last_condition = None
        settled = last_condition is not None and last_condition.condition.status == "True"
        if (
            settled
            or group_conditions.was_scheduled(group, form)
            or (last_condition is not None and last_condition.condition == condition)
        ):
            return
        self._forget_the_gone()
        self._last_condition[name] = LastCondition(group.metadata.uid, condition)
        call = conditions.patch(group, condition, form, self._clock.now() if since is None else since)
        if call is not None:
            self.status_patcher.submit(group, call)
        else:
            # The patch that waits is outdated, and the group has this condition already.
            self.status_patcher.cancel(group.metadata.uid)

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
        if len(self._last_condition) > 2 * len(self._groups):
            self._last_condition = {
                name: last_condition
                for name, last_condition in self._last_condition.items()
                if self._groups.find(POD_GROUP, *name)
            }
        if len(self._given_up) > 2 * len(self._groups):
            self._given_up = {name: uid for name, uid in self._given_up.items() if self._groups.find(POD_GROUP, *name)}

    def _unwritten(self, group: PodGroup, why: str) -> None:
        log.error("Failed to update the status of a PodGroup", err=why, group="/".join(_name(group)))
        last_condition = self._last_condition.pop(_name(group), None)
        if last_condition is not None and last_condition.condition.status == "True":
            self._given_up[_name(group)] = group.metadata.uid


def _name(group: PodGroup) -> Named:
    return group.metadata.namespace, group.metadata.name
