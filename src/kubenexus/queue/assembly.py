"""The assembly: pods come in one by one, jobs go to the waiting room whole.

A pod that is in no gang goes through at once. A member changes its gang (`roll`), and a gang that has changed is formed
anew (`formation`) when a batch of news has ended (`flush`): ten thousand members that arrive together cost one job,
built once a batch. A job in flight is left alone until it has landed.
"""

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import UNSAID, Claim, Nearness
from kubenexus.api.gangs.resolver import Gang, Groups, merged, settle
from kubenexus.base.errors import Malformed
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict
from kubenexus.queue.entry import Place
from kubenexus.queue.formation import (
    BEHIND_GATES,
    MOST_MEMBERS,
    Formation,
    Member,
    Seated,
    broken,
    formed,
    held,
    lacking,
    too_many,
    with_usual,
)
from kubenexus.queue.pace import Pace
from kubenexus.queue.roll import Leaving, Roll, Roster
from kubenexus.queue.room import WaitingRoom
from kubenexus.queue.standing import Bound, Incomplete, bound_of, new_witnesses
from kubenexus.state.pods import PodRecord, Stage


def _nobody(*_: Any) -> None:
    """Nobody wants to know."""


class _Everybody:
    """All schedulers' names."""

    def __contains__(self, name: object) -> bool:
        return True


def _raised(gang: str, error: Exception) -> None:
    raise error


class Assembly:
    """`records` are the ledger's pods: who has a node by our own decision. `usual` is how close the members of a gang
    shall be when nobody says so. `profiles` are the names of the schedulers that we are.

    `arrived` hears of pods that wait by themselves, `assembled` of jobs that wait as a gang or are held back, each
    with its place; `warned` of what is odd about a pod's gang; `whole` of gangs that lack nobody, or all; `completed`
    of members that are to say that their gang is complete; `failed` of gangs that could not be formed, which is raised
    otherwise. `holes` says under which keys the room of lost members is held. `incomplete` are the gangs of which only
    some have a node.
    """

    def __init__(
        self,
        room: WaitingRoom,
        groups: Groups,
        records: Mapping[str, PodRecord],
        usual: Callable[[Pod], Nearness] = lambda pod: UNSAID,
        profiles: Container[str] = _Everybody(),
    ) -> None:
        self._room, self._groups, self._records, self._usual = room, groups, records, usual
        self._profiles = profiles
        self.arrived: Callable[[Pod, Place], None] = _nobody
        self.assembled: Callable[[str, Place], None] = _nobody
        self.warned: Callable[[Pod, str], None] = _nobody
        self.holes: Callable[[str], tuple[str, ...]] = lambda gang: ()
        self.whole: Callable[[str], None] = _nobody
        self.completed: Callable[[Gang, Bound], None] = _nobody
        self.failed: Callable[[str, Exception], None] = _raised
        self.incomplete: dict[str, Incomplete] = {}
        self.formations = 0
        self.roll = Roll()
        self._paces = ((self.roll.grown, Pace()), (self.roll.edited, Pace()))
        self._held: dict[str, Verdict] = {}
        room.hold_back(lambda job: self._held.get(job.key))
        room.refill, room.refill_at = self.flush, self._due

    # --- pods -----------------------------------------------------------------------------------------------------

    def __contains__(self, key: str) -> bool:
        return key in self.roll.members or key in self._room

    def waits(self, pod: Pod, since: float | None) -> None:
        """A live pod of ours that has no node, new or changed."""
        try:
            claim, problem = self.roll.claim(pod), None
        except Malformed as malformed:
            claim, problem = None, held(str(malformed))
        if claim is not None:
            self._join(Member.of(pod, claim, since))
            return
        self.roll.leave(pod.key)
        self._keep_back(pod.key, problem)
        place = self._room.add(Job.of(pod), since)
        if problem is None:
            self.arrived(pod, place)
        else:
            self.assembled(pod.key, place)

    def placed(self, pod: Pod, slim: Pod, since: float | None) -> None:
        """A live pod that has a node, by whoever's hand. `slim` is what is kept of it."""
        try:
            claim = self.roll.claim(pod)
        except Malformed:
            claim = None
        if claim is None:
            self.gone(pod.key)
        else:
            self._join(Member.of(slim, claim, since, bound_of(pod, slim), ours=self._ours(pod)))

    def foreign(self, slim: Pod, pod: Pod, since: float | None) -> None:
        """A live pod without a node that another scheduler is to place. It may name a gang of ours."""
        self.placed(pod, slim, since)  # it is not ours and on no node: no more is to be known of it

    def _ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._profiles

    def gone(self, key: str) -> None:
        """Deleted, ended, on its way out, or not ours."""
        self.roll.leave(key)
        self._keep_back(key, None)
        self._room.delete(key)

    def _join(self, member: Member) -> None:
        known = self.roll.members.get(member.pod.key)
        if known is None or known.claim.key != member.claim.key:
            self.gone(member.pod.key)  # it was by itself, or in another gang
        self.roll.join(member)

    # --- what else changes a gang -----------------------------------------------------------------------------------

    def group_changed(self, kind: str, key: str) -> None:
        """A PodGroup or a Workload was made, changed or deleted."""
        self.roll.group_changed(kind, key)

    def kind_changed(self, kind: str) -> None:
        """Objects of a kind can no longer be listed, or can be again."""
        self.roll.kind_changed(kind)

    def changed(self, gang: str) -> None:
        """Something else about a gang did: what is held for it, say."""
        self.roll.touch(gang)

    def landed(self, job: str) -> None:
        """A job is no longer in flight: what became of its members is in the ledger."""
        member = self.roll.members.get(job)
        gang = job if member is None else member.claim.key
        if self.stands(gang):
            self.roll.touch(gang)
            self.flush()

    # --- who and where a pod is -----------------------------------------------------------------------------------

    def stands(self, gang: str) -> bool:
        """Whether anybody is left of a gang who could be joined."""
        return gang in self.roll.rosters

    def leaving(self, key: str) -> Leaving | None:
        """What a member on a node leaves behind: see `Roll.leaving`."""
        return self.roll.leaving(key)

    def lacks(self, gang: str) -> int:
        """How many members a gang needs on nodes besides those that it has there."""
        roster = self.roll.rosters[gang]
        return max(0, roster.minimum - roster.bound)

    def latest(self, pod: Pod) -> Pod:
        """The pod as it was last seen: a job keeps it as it was when something about it mattered."""
        return self.roll.latest(pod)

    def job_of(self, key: str) -> str:
        """The key of the job that a pod waits in, or would wait in."""
        member = self.roll.members.get(key)
        if member is None or key in self.roll.rosters[member.claim.key].entries:
            return key
        return member.claim.key + (BEHIND_GATES if member.pod.spec.scheduling_gates else "")

    def still_waits(self, pod: Pod) -> bool:
        """Whether this very pod waits, and is not on its way to a node."""
        member, place = self.roll.members.get(pod.key), self._room.place(self.job_of(pod.key))
        if place in (Place.IN_FLIGHT, Place.GONE):
            return False
        if member is not None:
            return member.pod.metadata.uid == pod.metadata.uid and not self._node(pod.key, member)
        job = self._room.job(pod.key)
        return job is not None and job.pods[0].metadata.uid == pod.metadata.uid

    # --- gangs ----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Bring all gangs that have changed into the room. Called at the end of a batch, and before each turn. Those in
        flight are looked at again when they have landed; those that have grown or were edited a little when their time
        has come."""
        changed, now = self.roll.changed, self._room.now()
        for waiting, pace in self._paces:
            for key, count in waiting.items():
                if key not in changed and pace.allows(len(self.roll.rosters[key].members), count, now):
                    changed[key] = None
        while changed:
            key = next(iter(changed))
            del changed[key]
            self.roll.grown.pop(key, None)
            self.roll.edited.pop(key, None)
            if self._room.place(key) is not Place.IN_FLIGHT:
                try:
                    self._form(key)
                except Exception as error:  # a gang that cannot be formed must not keep the others out
                    self.failed(key, error)

    def _due(self) -> float | None:
        """When a gang that has grown or was edited will be formed, if nothing else happens."""
        rosters = self.roll.rosters
        times = [pace.due(len(rosters[key].members)) for waiting, pace in self._paces for key in waiting]
        return min(times, default=None)

    def _form(self, key: str) -> None:
        roster = self.roll.rosters[key]
        self.formations += 1
        formation = self._formation(key, roster)
        gated = self._room.job(key + BEHIND_GATES)
        behind = frozenset(() if gated is None else (pod.metadata.uid for pod in gated.pods))
        for name in [each for each in roster.entries if each not in formation.jobs]:
            self._withdraw(roster, name)
        for name, job in formation.jobs.items():
            opened = name == key and any(pod.metadata.uid in behind for pod in job.pods)
            ready = math.inf if opened else formation.ready if name == key else None
            self._hand_in(roster, name, job, formation.hold if name == key else None, formation, ready)
        if not roster.members and not roster.entries:
            self._complete(key)
            self.roll.disband(key)

    def _formation(self, key: str, roster: Roster) -> Formation:
        if len(roster.members) > MOST_MEMBERS:
            return too_many(key, roster.members.values())
        seated = [(member, member.node or self._node(name, member)) for name, member in roster.in_order().items()]
        first = next((member.pod for member, _ in seated if member.ours), None)
        if first is None:  # no member is left, or none of ours
            self._complete(key)
            return Formation({})
        claims = roster.claims()
        for text in roster.new_warnings(claims):
            self.warned(first, text)
        try:
            gang = merged([settle(claim, self._groups) for claim in claims])
        except Malformed as problem:
            return broken(key, seated, str(problem))
        self._take_stock(roster, gang, claims[0], seated)
        return formed(with_usual(gang, self._usual(first)), seated, self.holes(key))

    def _take_stock(self, roster: Roster, gang: Gang, claim: Claim, seated: Seated) -> None:
        """How the gang stands: whether it lacks members, and whether that it does not is written where it survives."""
        roster.settle(0 if gang.awaits else gang.minimum)
        noticed = self._room.now() if roster.noticed is None else roster.noticed
        lack = lacking(gang, claim, seated, was_complete=roster.was_complete, noticed=noticed)
        if lack is not None:
            roster.noticed, self.incomplete[gang.key] = noticed, lack
        else:
            self._complete(gang.key)
        # Also of one that loses members: those that are left must be able to say so when the others have finished.
        if roster.was_complete and roster.minimum > 1:
            bound = [member.bound for member, _ in seated if member.bound is not None and member.ours]
            for each in new_witnesses(bound, roster.asked):
                roster.asked.add(each.uid)
                self.completed(gang, each)

    def unwritten(self, pod: Pod) -> None:
        """A member could not be made to say that its gang is complete: another one is asked, or this one again."""
        member = self.roll.members.get(pod.key)
        if member is not None:
            self.roll.rosters[member.claim.key].asked.discard(pod.metadata.uid)

    def needed(self, job: Job) -> int:
        """How many members of a job that is being bound have to be for its gang to be complete, given who else of it
        has a node now: others may have been lost since the job was decided."""
        roster = self.roll.rosters.get(job.key) if job.gang else None
        if roster is None:
            return job.minimum
        own = {pod.metadata.uid for pod in job.pods}
        others = [
            name
            for name, member in roster.members.items()
            if member.node or (member.pod.metadata.uid not in own and self._node(name, member))
        ]
        return max(1, roster.minimum - len(others))

    def _complete(self, gang: str) -> None:
        """It lacks nobody, or everybody."""
        self.incomplete.pop(gang, None)
        self.whole(gang)

    def _hand_in(
        self, roster: Roster, name: str, job: Job, hold: Verdict | None, formation: Formation, ready: float | None
    ) -> None:
        known = self._room.job(name)
        if known == job and self._held.get(name) == hold:
            return
        roster.entries[name] = None
        self._keep_back(name, hold)
        pod, alone = job.pods[0], name in roster.members
        since = roster.members[name].since if alone else formation.since
        place = self._room.add(job, since, ready)
        if alone:
            self.arrived(pod, place)
        else:
            self.assembled(name, place)

    def _withdraw(self, roster: Roster, name: str) -> None:
        if self._room.place(name) is not Place.IN_FLIGHT:  # else its landing brings us back here
            del roster.entries[name]
            self._keep_back(name, None)
            self._room.delete(name)

    def _node(self, key: str, member: Member) -> str:
        """Where it is, or goes by our own decision."""
        record = self._records.get(key)
        if record is None or member.node:
            return member.node
        ours = record.uid == member.pod.metadata.uid and record.stage is not Stage.NOMINATED
        return record.node if ours else ""

    def _keep_back(self, key: str, why: Verdict | None) -> None:
        if why is None:
            self._held.pop(key, None)
        else:
            self._held[key] = why
