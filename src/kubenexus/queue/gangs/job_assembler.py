"""Pods in, jobs out: the assembler turns pods into jobs and hands them to the queue.

A pod of no gang becomes a job at once. A member changes its gang in the `gang_registry`, and the jobs of changed gangs
are built (`gang_jobs`) by `build_changed`, at the end of a batch of watch events and before each burst of decisions:
ten thousand members that arrive together cost one build. A job in flight is left alone until its attempt has finished.

One call builds a portion of the changed gangs. A job whose gang is not built yet is outdated: the queue has it built
(`rebuild`) before its attempt begins, so that no gang is decided by a minimum, a topology or members of the past.
"""

import math
from collections.abc import Callable, Container
from typing import Final, Protocol

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import POD_GROUP, GangDeclaration, TopologyRequest
from kubenexus.api.gangs.job_key import gated_key
from kubenexus.api.gangs.resolver import Gang, GroupLookup, gang_terms, merge_gangs, resolve_gang
from kubenexus.api.workloads import PodGroup
from kubenexus.base.errors import Malformed
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict
from kubenexus.queue.gangs.bound_members import (
    BoundMember,
    IncompleteGang,
    bound_member,
    members_to_mark,
    scheduled_at,
)
from kubenexus.queue.gangs.changed_gangs import Named
from kubenexus.queue.gangs.gang_jobs import (
    MAX_MEMBERS,
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
from kubenexus.queue.gangs.waiting_pods import WaitingPods
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue

# Members that one turn of the event loop builds: 5 to 10 ms. The last gang of a turn may be larger than what is left.
PORTION: Final = 1000
PER_GANG: Final = 8  # a gang takes as long as so many members, besides its own: 25 to 80 us


class CapacityHolds(Protocol):
    """Capacity that is held on nodes for the replacements of lost members (`app.gangs.replacement_holds`)."""

    def keys_of(self, gang: str) -> tuple[str, ...]:
        """Returns the keys under which the ledger has what is held for the gang."""

    def release_gang(self, gang: str) -> None:
        """The gang has all its members again, or none is left."""


class AssemblyObserver(Protocol):
    """What the assembler reports (`app.report.assembly_reporter`). Called while it works: must return soon."""

    def pod_queued(self, pod: Pod, state: QueueState) -> None:
        """A pod that is its own job was queued or updated."""

    def gang_queued(self, key: str, state: QueueState) -> None:
        """A gang's job, or a pod whose declaration cannot be read, was queued or updated."""

    def gang_warning(self, pod: Pod, text: str) -> None:
        """Something about the pod's gang is odd; each text comes once a gang."""

    def group_complete(self, group: PodGroup, at: float) -> bool:
        """A PodGroup has its minimum on nodes since `at`. Returns whether its condition will say so."""

    def gang_complete(self, gang: Gang, member: BoundMember) -> None:
        """The gang has its minimum on nodes, and this member is to be marked with that."""

    def build_failed(self, gang: str, error: Exception) -> None:
        """The jobs of a gang could not be built. It is tried again when the gang changes."""


class JobAssembler:
    """`default_topology` returns the topology request of a gang that states none; `profiles` are the names of this
    process's schedulers. `incomplete` are the gangs of which only some members have a node. `builds` counts how often
    a gang's jobs were built. `portion` is how many members one turn of the event loop builds."""

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        queue: SchedulingQueue,
        registry: GangRegistry,
        waiting: WaitingPods,
        groups: GroupLookup,
        *,
        holds: CapacityHolds,
        observer: AssemblyObserver,
        default_topology: Callable[[Pod], TopologyRequest],
        profiles: Container[str],
        portion: int = PORTION,
    ) -> None:
        self._queue, self.registry, self.waiting, self._groups = queue, registry, waiting, groups
        self._holds, self._observer = holds, observer
        self._default_topology, self._profiles = default_topology, profiles
        self.incomplete: dict[str, IncompleteGang] = {}
        self.builds = 0
        self._portion = portion
        self._left = 0  # of the portion of this turn of the event loop
        self._left_for_attempts = portion  # as many again, of which each is needed before a decision

    # --- pods -----------------------------------------------------------------------------------------------------

    def __contains__(self, key: str) -> bool:
        return key in self.waiting

    def add_waiting(self, pod: Pod, since: float | None) -> None:
        """A live pod of one of our profiles that has no node, new or changed."""
        try:
            claim, problem = self.registry.declaration(pod), None
        except Malformed as malformed:
            claim, problem = None, hold_verdict(str(malformed))
        if claim is not None:
            self._join(GangMember.of(pod, claim, since))
            return
        self.registry.remove_member(pod.key)
        state = self._queue.add(Job.of(pod), since, hold=problem)
        if problem is None:
            self._observer.pod_queued(pod, state)
        else:
            self._observer.gang_queued(pod.key, state)

    def add_bound(self, pod: Pod, slim: Pod, since: float | None) -> None:
        """A live pod that has a node, whichever scheduler bound it. `slim` is the stripped copy that is kept."""
        try:
            claim = self.registry.declaration(pod)
        except Malformed:
            claim = None
        if claim is None:
            self.remove(pod.key)
        else:
            self._join(GangMember.of(slim, claim, since, bound_member(pod, slim), ours=self._ours(pod)))

    def foreign(self, slim: Pod, pod: Pod, since: float | None) -> None:
        """A live pod without a node that another scheduler is to place. It may name one of our gangs."""
        self.add_bound(pod, slim, since)  # not of our profiles and on no node: nothing else is kept of it

    def _ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._profiles

    def remove(self, key: str) -> None:
        """The pod was deleted, has ended, is terminating, or is not of our profiles."""
        self.registry.remove_member(key)
        self._queue.delete(key)

    def _join(self, member: GangMember) -> None:
        known = self.registry.members.get(member.pod.key)
        if known is None or known.claim.key != member.claim.key:
            self.remove(member.pod.key)  # it was its own job, or in another gang
        self.registry.add_member(member)

    # --- what else changes a gang -----------------------------------------------------------------------------------

    def group_changed(self, kind: str, key: str) -> None:
        """A PodGroup or a Workload was made, changed or deleted. An update of something that no gang depends on
        changes none."""
        namespace, _, name = key.partition("/")
        self._object_changed((kind, namespace, name))

    def kind_changed(self, kind: str) -> None:
        """Objects of a kind can no longer be listed, or can be again."""
        for named in self.registry.changed.objects(kind):
            self._object_changed(named)

    def _object_changed(self, named: Named) -> None:
        found = self._groups.find(*named)
        terms = None if found is None else gang_terms(found)
        self.registry.changed.updated(
            named, (terms, str(self._groups.problem(*named)), self._groups.listable(named[0]))
        )

    def mark_changed(self, gang: str) -> None:
        """The gang's jobs are to be built again, because of what is held for it, say."""
        self.registry.mark_changed(gang)

    def attempt_finished(self, job: str) -> None:
        """The job is no longer in flight, and the ledger has what became of its members."""
        member = self.registry.members.get(job)
        gang = job if member is None else member.claim.key
        if self.has_gang(gang):
            self.registry.mark_changed(gang)
            self.build_changed()

    # --- gangs, read -----------------------------------------------------------------------------------

    def has_gang(self, gang: str) -> bool:
        """Whether any member of the gang is left."""
        return gang in self.registry.gangs

    def leaving(self, key: str) -> LeavingMember | None:
        """See `GangRegistry.leaving`."""
        return self.registry.leaving(key)

    def still_waits(self, pod: Pod) -> bool:
        """Whether this very member of a gang (by UID) has no node, as far as the watch has shown."""
        member = self.registry.members.get(pod.key)
        return member is not None and member.pod.metadata.uid == pod.metadata.uid and not member.node

    def lacks(self, gang: str) -> int:
        """Returns how many more members on nodes the gang needs."""
        gang_state = self.registry.gangs[gang]
        return max(0, gang_state.minimum - gang_state.bound)

    # --- gangs ----------------------------------------------------------------------------------------------------

    def build_changed(self) -> int:
        """Builds the jobs of changed gangs and queues them, as many as one turn of the event loop may; namespaces take
        turns. Called at the end of a batch of watch events and before each burst of decisions. Gangs in flight are
        built when their attempt has finished. Returns the work that it took, in members."""
        self._left = self._left_for_attempts = self._portion
        self.registry.changed.mark_due(self._queue.now())
        while self._left > 0 and (gang := self.registry.changed.next()) is not None:
            self._left -= self._cost(gang)
            self._build(gang)
        return self._portion - self._left

    def build_gang(self, gang: str) -> None:
        """Builds the jobs of a gang if they are outdated."""
        if gang in self.registry.gangs and self.registry.changed.is_outdated(gang):
            self._build(gang)

    def _cost(self, gang: str) -> int:
        return PER_GANG + self.registry.gangs[gang].size

    def _build(self, gang: str) -> None:
        self.registry.changed.built(gang)
        if self._queue.state(gang) is QueueState.IN_FLIGHT:
            return
        try:
            self._form(gang)
        except Exception as error:  # one gang must not keep the others from being built
            self._observer.build_failed(gang, error)

    def next_due(self) -> float | None:
        """Returns when a changed gang will be built, if nothing else happens; None for never."""
        return self.registry.changed.due(self._queue.now())

    # --- before an attempt (`queue.job_rebuilder.JobRebuilder`) -------------------------------------------------------

    def is_outdated(self, job: Job) -> bool:
        """Whether the job must not be decided before its gang is built again. A member of a trivial gang does not
        depend on what becomes of the others."""
        registry, member = self.registry, self.registry.members.get(job.key)
        if member is None:
            return job.key in registry.gangs and registry.changed.is_outdated(job.key)
        gang, same = member.claim.key, member.pod.metadata.uid == job.pods[0].metadata.uid
        return bool(member.node) or not same or not registry.gangs[gang].trivial or registry.changed.is_regrouped(gang)

    def rebuild(self, job: Job) -> bool:
        """Builds the gang of an outdated job. The job is withdrawn if it is outdated even then: its gang is in flight,
        or cannot be built. Returns False, and does nothing, if this turn of the loop has built enough."""
        if self._left_for_attempts <= 0:
            return False
        member = self.registry.members.get(job.key)
        gang = job.key if member is None else member.claim.key
        self._left_for_attempts -= self._cost(gang)
        self._build(gang)
        current = self._queue.job(job.key)
        if current is not None and self.is_outdated(current):
            self.registry.gangs[gang].entries.pop(job.key, None)
            self._queue.delete(job.key)
        return True

    def _form(self, key: str) -> None:
        gang_state = self.registry.gangs[key]
        self.builds += 1
        formation = self._formation(key, gang_state)
        gated = self._queue.job(gated_key(key))
        behind = frozenset(() if gated is None else (pod.metadata.uid for pod in gated.pods))
        for name in [each for each in gang_state.entries if each not in formation.jobs]:
            self._withdraw(gang_state, name)
        for name, job in formation.jobs.items():
            opened = name == key and any(pod.metadata.uid in behind for pod in job.pods)
            ready = math.inf if opened else formation.ready if name == key else None
            self._hand_in(gang_state, name, job, formation.hold if name == key else None, formation, ready)
        gang_state.trivial = next(iter(formation.jobs), "") in gang_state.members
        if not gang_state.members and not gang_state.entries:
            self._complete(key)
            self.registry.remove_gang(key)

    def _formation(self, key: str, gang_state: GangState) -> GangJobs:
        if len(gang_state.members) > MAX_MEMBERS:
            return too_many(key, gang_state.members.values())
        seated = [
            (member, member.node or self.waiting.node_of(name, member))
            for name, member in gang_state.in_order().items()
        ]
        first = next((member.pod for member, _ in seated if member.ours), None)
        if first is None:  # no member is left, or none of our profiles
            self._complete(key)
            return GangJobs({})
        claims = gang_state.claims()
        for text in gang_state.new_warnings(claims):
            self._observer.gang_warning(first, text)
        try:
            gang = merge_gangs([resolve_gang(claim, self._groups) for claim in claims])
        except Malformed as problem:
            return invalid_gang_jobs(key, seated, str(problem))
        self._take_stock(gang_state, gang, claims[0], seated)
        return build_gang_jobs(
            with_default_topology(gang, self._default_topology(first)), seated, self._holds.keys_of(key)
        )

    def _take_stock(self, gang_state: GangState, gang: Gang, claim: GangDeclaration, seated: MemberNodes) -> None:
        """Records whether the gang lacks members on nodes, and has members marked once it does not."""
        gang_state.settle(0 if gang.missing_object else gang.minimum)
        bound = [member.bound for member, _ in seated if member.bound is not None and member.ours]
        complete_at = self._complete_at(gang_state, claim, bound)
        if any(each.was_bound_at(complete_at) for each in bound):
            gang_state.was_complete = True
        noticed = self._queue.now() if gang_state.noticed is None else gang_state.noticed
        lack = incomplete_gang(gang, claim, seated, was_complete=gang_state.was_complete, noticed=noticed)
        if lack is not None:
            gang_state.noticed, self.incomplete[gang.key] = noticed, lack
        else:
            self._complete(gang.key)
        # Also while members finish: those that are left must carry the mark.
        if gang_state.was_complete and gang_state.minimum > 1:
            for each in members_to_mark(bound, gang_state.asked, complete_at):
                gang_state.asked.add(each.uid)
                self._observer.gang_complete(gang, each)

    def _complete_at(self, gang_state: GangState, claim: GangDeclaration, bound: list[BoundMember]) -> float | None:
        """Returns when the gang was complete, by the condition of its PodGroup; None if it has no PodGroup, or that has
        no such condition. The condition is written here, with the time at which the last member was bound, by the API
        server's clock."""
        ref = claim.ref
        group = None if ref is None or ref.kind != POD_GROUP else self._groups.find(ref.kind, ref.namespace, ref.name)
        if not isinstance(group, PodGroup):
            return None
        at = scheduled_at(group)
        if at is None and bound and 0 < gang_state.minimum <= gang_state.bound:
            last = max((each.since for each in bound if each.dated), default=self._queue.now())
            return last if self._observer.group_complete(group, last) else None
        return at

    def needed(self, job: Job) -> int:
        """Returns how many members of a job that is being bound must succeed for its gang to be complete, given which
        other members have a node now: some may have been lost since the decision."""
        gang_state = self.registry.gangs.get(job.key) if job.is_gang else None
        if gang_state is None:
            return job.minimum
        own = {pod.metadata.uid for pod in job.pods}
        others = [
            name
            for name, member in gang_state.members.items()
            if member.node or (member.pod.metadata.uid not in own and self.waiting.node_of(name, member))
        ]
        return max(1, gang_state.minimum - len(others))

    def _complete(self, gang: str) -> None:
        """The gang has its minimum on nodes, or no member there."""
        self.incomplete.pop(gang, None)
        self._holds.release_gang(gang)

    def _hand_in(
        self, gang_state: GangState, name: str, job: Job, hold: Verdict | None, formation: GangJobs, ready: float | None
    ) -> None:
        known = self._queue.job(name)
        if known == job and self._queue.hold(name) == hold:
            return
        gang_state.entries[name] = None
        pod, alone = job.pods[0], name in gang_state.members
        since = gang_state.members[name].since if alone else formation.since
        state = self._queue.add(job, since, ready, hold)
        if alone:
            self._observer.pod_queued(pod, state)
        else:
            self._observer.gang_queued(name, state)

    def _withdraw(self, gang_state: GangState, name: str) -> None:
        if self._queue.state(name) is not QueueState.IN_FLIGHT:  # else it is withdrawn when its attempt has finished
            del gang_state.entries[name]
            self._queue.delete(name)
