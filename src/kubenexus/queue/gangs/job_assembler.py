"""The assembly: pods come in one by one, jobs go to the waiting room whole.

A pod that is in no gang goes through at once. A member changes its gang (`roll`), and a gang that has changed is formed
anew (`formation`) when a batch of news has ended (`flush`): ten thousand members that arrive together cost one job,
built once a batch. A job in flight is left alone until it has landed.
"""

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, GangDeclaration, TopologyRequest
from kubenexus.api.gangs.resolver import Gang, GroupLookup, merge_gangs, resolve_gang
from kubenexus.base.errors import Malformed
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict
from kubenexus.queue.gangs.bound_members import BoundMember, IncompleteGang, bound_member, new_witnesses
from kubenexus.queue.gangs.gang_jobs import (
    GATED_SUFFIX,
    MOST_MEMBERS,
    GangJobs,
    GangMember,
    MemberNodes,
    build_gang_jobs,
    hold_verdict,
    incomplete_gang,
    invalid_gang_jobs,
    too_many,
    with_default_topology,
)
from kubenexus.queue.gangs.gang_registry import GangRegistry, GangState, LeavingMember
from kubenexus.queue.gangs.rebuild_pacing import RebuildPacing
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.pods import PodRecord, PodStage


def _nobody(*_: Any) -> None:
    """Nobody wants to know."""


class _AllMembers:
    """All schedulers' names."""

    def __contains__(self, name: object) -> bool:
        return True


def _raised(gang: str, error: Exception) -> None:
    raise error


class JobAssembler:
    """`records` are the ledger's pods: who has a node by our own decision. `default_topology` is how close the members
    of a gang shall be when nobody says so. `profiles` are the names of the schedulers that we are.

    `on_pod_queued` hears of pods that wait by themselves, `on_gang_queued` of jobs that wait as a gang or are held
    back, each with its place; `on_gang_warning` of what is odd about a pod's gang; `on_gang_complete` of gangs that
    lack nobody, or all; `completed` of members that are to say that their gang is complete; `failed` of gangs that
    could not be formed, which is raised otherwise. `hold_keys` says under which keys the room of lost members is held.
    `incomplete` are the gangs of which only some have a node.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        groups: GroupLookup,
        records: Mapping[str, PodRecord],
        usual: Callable[[Pod], TopologyRequest] = lambda pod: NO_TOPOLOGY_REQUEST,
        profiles: Container[str] = _AllMembers(),
    ) -> None:
        self._queue, self._groups, self._records, self._usual = queue, groups, records, usual
        self._profiles = profiles
        self.on_pod_queued: Callable[[Pod, QueueState], None] = _nobody
        self.on_gang_queued: Callable[[str, QueueState], None] = _nobody
        self.on_gang_warning: Callable[[Pod, str], None] = _nobody
        self.hold_keys: Callable[[str], tuple[str, ...]] = lambda gang: ()
        self.on_gang_complete: Callable[[str], None] = _nobody
        self.completed: Callable[[Gang, BoundMember], None] = _nobody
        self.failed: Callable[[str, Exception], None] = _raised
        self.incomplete: dict[str, IncompleteGang] = {}
        self.builds = 0
        self.registry = GangRegistry()
        self._paces = ((self.registry.grown, RebuildPacing()), (self.registry.edited, RebuildPacing()))
        self._held: dict[str, Verdict] = {}
        queue.set_hold(lambda job: self._held.get(job.key))
        queue.before_pop, queue.refill_at = self.build_changed, self._due

    # --- pods -----------------------------------------------------------------------------------------------------

    def __contains__(self, key: str) -> bool:
        return key in self.registry.members or key in self._queue

    def add_waiting(self, pod: Pod, since: float | None) -> None:
        """A live pod of ours that has no node, new or changed."""
        try:
            claim, problem = self.registry.declaration(pod), None
        except Malformed as malformed:
            claim, problem = None, hold_verdict(str(malformed))
        if claim is not None:
            self._join(GangMember.of(pod, claim, since))
            return
        self.registry.remove_member(pod.key)
        self._keep_back(pod.key, problem)
        state = self._queue.add(Job.of(pod), since)
        if problem is None:
            self.on_pod_queued(pod, state)
        else:
            self.on_gang_queued(pod.key, state)

    def add_bound(self, pod: Pod, slim: Pod, since: float | None) -> None:
        """A live pod that has a node, by whoever's hand. `stripped_pod` is what is kept of it."""
        try:
            claim = self.registry.declaration(pod)
        except Malformed:
            claim = None
        if claim is None:
            self.remove(pod.key)
        else:
            self._join(GangMember.of(slim, claim, since, bound_member(pod, slim), ours=self._ours(pod)))

    def foreign(self, slim: Pod, pod: Pod, since: float | None) -> None:
        """A live pod without a node that another scheduler is to place. It may name a gang of ours."""
        self.add_bound(pod, slim, since)  # it is not ours and on no node: no more is to be known of it

    def _ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._profiles

    def remove(self, key: str) -> None:
        """Deleted, ended, on its way out, or not ours."""
        self.registry.remove_member(key)
        self._keep_back(key, None)
        self._queue.delete(key)

    def _join(self, member: GangMember) -> None:
        known = self.registry.members.get(member.pod.key)
        if known is None or known.claim.key != member.claim.key:
            self.remove(member.pod.key)  # it was by itself, or in another gang
        self.registry.add_member(member)

    # --- what else changes a gang -----------------------------------------------------------------------------------

    def group_changed(self, kind: str, key: str) -> None:
        """A PodGroup or a Workload was made, changed or deleted."""
        self.registry.group_changed(kind, key)

    def kind_changed(self, kind: str) -> None:
        """Objects of a kind can no longer be listed, or can be again."""
        self.registry.kind_changed(kind)

    def mark_changed(self, gang: str) -> None:
        """Something else about a gang did: what is held for it, say."""
        self.registry.mark_changed(gang)

    def attempt_finished(self, job: str) -> None:
        """A job is no longer in flight: what became of its members is in the ledger."""
        member = self.registry.members.get(job)
        gang = job if member is None else member.claim.key
        if self.has_gang(gang):
            self.registry.mark_changed(gang)
            self.build_changed()

    # --- who and where a pod is -----------------------------------------------------------------------------------

    def has_gang(self, gang: str) -> bool:
        """Whether anybody is left of a gang who could be joined."""
        return gang in self.registry.gangs

    def leaving(self, key: str) -> LeavingMember | None:
        """What a member on a node leaves behind: see `GangRegistry.leaving`."""
        return self.registry.leaving(key)

    def lacks(self, gang: str) -> int:
        """How many members a gang needs on nodes besides those that it has there."""
        gang_state = self.registry.gangs[gang]
        return max(0, gang_state.minimum - gang_state.bound)

    def latest_pod(self, pod: Pod) -> Pod:
        """The pod as it was last seen: a job keeps it as it was when something about it mattered."""
        return self.registry.latest(pod)

    def job_key(self, key: str) -> str:
        """The key of the job that a pod waits in, or would wait in."""
        member = self.registry.members.get(key)
        if member is None or key in self.registry.gangs[member.claim.key].entries:
            return key
        return member.claim.key + (GATED_SUFFIX if member.pod.spec.scheduling_gates else "")

    def is_waiting(self, pod: Pod) -> bool:
        """Whether this very pod waits, and is not on its way to a node."""
        member, state = self.registry.members.get(pod.key), self._queue.state(self.job_key(pod.key))
        if state in (QueueState.IN_FLIGHT, QueueState.GONE):
            return False
        if member is not None:
            return member.pod.metadata.uid == pod.metadata.uid and not self._node(pod.key, member)
        job = self._queue.job(pod.key)
        return job is not None and job.pods[0].metadata.uid == pod.metadata.uid

    # --- gangs ----------------------------------------------------------------------------------------------------

    def build_changed(self) -> None:
        """Bring all gangs that have changed into the room. Called at the end of a batch, and before each turn. Those in
        flight are looked at again when they have landed; those that have grown or were edited a little when their time
        has come."""
        changed, now = self.registry.changed, self._queue.now()
        for waiting, pacing in self._paces:
            for key, count in waiting.items():
                if key not in changed and pacing.allows(len(self.registry.gangs[key].members), count, now):
                    changed[key] = None
        while changed:
            key = next(iter(changed))
            del changed[key]
            self.registry.grown.pop(key, None)
            self.registry.edited.pop(key, None)
            if self._queue.state(key) is not QueueState.IN_FLIGHT:
                try:
                    self._form(key)
                except Exception as error:  # a gang that cannot be formed must not keep the others out
                    self.failed(key, error)

    def _due(self) -> float | None:
        """When a gang that has grown or was edited will be formed, if nothing else happens."""
        gang_states = self.registry.gangs
        times = [pacing.due(len(gang_states[key].members)) for waiting, pacing in self._paces for key in waiting]
        return min(times, default=None)

    def _form(self, key: str) -> None:
        gang_state = self.registry.gangs[key]
        self.builds += 1
        formation = self._formation(key, gang_state)
        gated = self._queue.job(key + GATED_SUFFIX)
        behind = frozenset(() if gated is None else (pod.metadata.uid for pod in gated.pods))
        for name in [each for each in gang_state.entries if each not in formation.jobs]:
            self._withdraw(gang_state, name)
        for name, job in formation.jobs.items():
            opened = name == key and any(pod.metadata.uid in behind for pod in job.pods)
            ready = math.inf if opened else formation.ready if name == key else None
            self._hand_in(gang_state, name, job, formation.hold if name == key else None, formation, ready)
        if not gang_state.members and not gang_state.entries:
            self._complete(key)
            self.registry.remove_gang(key)

    def _formation(self, key: str, gang_state: GangState) -> GangJobs:
        if len(gang_state.members) > MOST_MEMBERS:
            return too_many(key, gang_state.members.values())
        seated = [(member, member.node or self._node(name, member)) for name, member in gang_state.in_order().items()]
        first = next((member.pod for member, _ in seated if member.ours), None)
        if first is None:  # no member is left, or none of ours
            self._complete(key)
            return GangJobs({})
        claims = gang_state.claims()
        for text in gang_state.new_warnings(claims):
            self.on_gang_warning(first, text)
        try:
            gang = merge_gangs([resolve_gang(claim, self._groups) for claim in claims])
        except Malformed as problem:
            return invalid_gang_jobs(key, seated, str(problem))
        self._take_stock(gang_state, gang, claims[0], seated)
        return build_gang_jobs(with_default_topology(gang, self._usual(first)), seated, self.hold_keys(key))

    def _take_stock(self, gang_state: GangState, gang: Gang, claim: GangDeclaration, seated: MemberNodes) -> None:
        """How the gang stands: whether it lacks members, and whether that it does not is written where it survives."""
        gang_state.settle(0 if gang.missing_object else gang.minimum)
        noticed = self._queue.now() if gang_state.noticed is None else gang_state.noticed
        lack = incomplete_gang(gang, claim, seated, was_complete=gang_state.was_complete, noticed=noticed)
        if lack is not None:
            gang_state.noticed, self.incomplete[gang.key] = noticed, lack
        else:
            self._complete(gang.key)
        # Also of one that loses members: those that are left must be able to say so when the others have finished.
        if gang_state.was_complete and gang_state.minimum > 1:
            bound = [member.bound for member, _ in seated if member.bound is not None and member.ours]
            for each in new_witnesses(bound, gang_state.asked):
                gang_state.asked.add(each.uid)
                self.completed(gang, each)

    def unwritten(self, pod: Pod) -> None:
        """A member could not be made to say that its gang is complete: another one is asked, or this one again."""
        member = self.registry.members.get(pod.key)
        if member is not None:
            self.registry.gangs[member.claim.key].asked.discard(pod.metadata.uid)

    def needed(self, job: Job) -> int:
        """How many members of a job that is being bound have to be for its gang to be complete, given who else of it
        has a node now: others may have been lost since the job was decided."""
        gang_state = self.registry.gangs.get(job.key) if job.is_gang else None
        if gang_state is None:
            return job.minimum
        own = {pod.metadata.uid for pod in job.pods}
        others = [
            name
            for name, member in gang_state.members.items()
            if member.node or (member.pod.metadata.uid not in own and self._node(name, member))
        ]
        return max(1, gang_state.minimum - len(others))

    def _complete(self, gang: str) -> None:
        """It lacks nobody, or everybody."""
        self.incomplete.pop(gang, None)
        self.on_gang_complete(gang)

    def _hand_in(
        self, gang_state: GangState, name: str, job: Job, hold: Verdict | None, formation: GangJobs, ready: float | None
    ) -> None:
        known = self._queue.job(name)
        if known == job and self._held.get(name) == hold:
            return
        gang_state.entries[name] = None
        self._keep_back(name, hold)
        pod, alone = job.pods[0], name in gang_state.members
        since = gang_state.members[name].since if alone else formation.since
        state = self._queue.add(job, since, ready)
        if alone:
            self.on_pod_queued(pod, state)
        else:
            self.on_gang_queued(name, state)

    def _withdraw(self, gang_state: GangState, name: str) -> None:
        if self._queue.state(name) is not QueueState.IN_FLIGHT:  # else its landing brings us back here
            del gang_state.entries[name]
            self._keep_back(name, None)
            self._queue.delete(name)

    def _node(self, key: str, member: GangMember) -> str:
        """Where it is, or goes by our own decision."""
        record = self._records.get(key)
        if record is None or member.node:
            return member.node
        ours = record.uid == member.pod.metadata.uid and record.stage is not PodStage.NOMINATED
        return record.node if ours else ""

    def _keep_back(self, key: str, why: Verdict | None) -> None:
        if why is None:
            self._held.pop(key, None)
        else:
            self._held[key] = why
