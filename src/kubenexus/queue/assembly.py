"""The assembly: pods come in one by one, jobs go to the waiting room whole.

A pod that is in no gang goes through at once. A member changes its gang, and a gang that has changed is formed anew
when a batch of news has ended (`flush`): ten thousand members that arrive together cost one job, built once a batch. A
job in flight is left alone until it has landed.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import UNSAID, Claim, Nearness
from kubenexus.api.gangs.resolver import Groups, claim_of, merged, settle
from kubenexus.base.errors import Malformed
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict
from kubenexus.queue.entry import Place
from kubenexus.queue.formation import BEHIND_GATES, Formation, Member, broken, formed, held, lacking, with_usual
from kubenexus.queue.room import WaitingRoom
from kubenexus.queue.standing import Incomplete, bound_of
from kubenexus.state.pods import PodRecord, Stage

Named = tuple[str, str, str]  # an object: its kind, its namespace and its name


def _nobody(*_: Any) -> None:
    """Nobody wants to know."""


class Crew:
    """The members of one gang, and which jobs the waiting room has of it."""

    __slots__ = ("entries", "members", "names", "warned")

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.entries: dict[str, None] = {}
        self.names: set[Named] = set()
        self.warned: set[str] = set()


class Assembly:
    """`records` are the ledger's pods: who has a node by our own decision. `usual` is how close the members of a gang
    shall be when nobody says so.

    `arrived` hears of pods that wait by themselves, `assembled` of jobs that wait as a gang or are held back, each
    with its place; `warned` of what is odd about a pod's gang; `whole` of gangs that lack nobody, or all. `holes` says
    under which keys the room of lost members is held. `incomplete` are the gangs of which only some have a node.
    """

    def __init__(
        self,
        room: WaitingRoom,
        groups: Groups,
        records: Mapping[str, PodRecord],
        usual: Callable[[Pod], Nearness] = lambda pod: UNSAID,
    ) -> None:
        self._room, self._groups, self._records, self._usual = room, groups, records, usual
        self.arrived: Callable[[Pod, Place], None] = _nobody
        self.assembled: Callable[[str, Place], None] = _nobody
        self.warned: Callable[[Pod, str], None] = _nobody
        self.holes: Callable[[str], tuple[str, ...]] = lambda gang: ()
        self.whole: Callable[[str], None] = _nobody
        self.incomplete: dict[str, Incomplete] = {}
        self.formations = 0
        self._members: dict[str, Member] = {}
        self._crews: dict[str, Crew] = {}
        self._named: dict[Named, dict[str, None]] = {}  # gangs by the object that they name
        self._changed: dict[str, None] = {}
        self._flying: dict[str, None] = {}  # changed while a job of theirs was in flight
        self._held: dict[str, Verdict] = {}
        room.hold_back(lambda job: self._held.get(job.key))
        room.refill = self.flush

    # --- pods -----------------------------------------------------------------------------------------------------

    def __contains__(self, key: str) -> bool:
        return key in self._members or key in self._room

    def waits(self, pod: Pod, since: float | None) -> None:
        """A live pod of ours that has no node, new or changed."""
        try:
            claim, problem = self._claim(pod), None
        except Malformed as malformed:
            claim, problem = None, held(str(malformed))
        if claim is not None:
            self._join(Member.of(pod, claim, since))
            return
        self._leave(pod.key)
        self._keep_back(pod.key, problem)
        place = self._room.add(Job.of(pod), since)
        if problem is None:
            self.arrived(pod, place)
        else:
            self.assembled(pod.key, place)

    def placed(self, pod: Pod, slim: Pod, since: float | None) -> None:
        """A live pod that has a node, by whoever's hand. `slim` is what is kept of it."""
        try:
            claim = self._claim(pod)
        except Malformed:
            claim = None
        if claim is None:
            self.gone(pod.key)
        else:
            self._join(Member.of(slim, claim, since, bound_of(pod, slim)))

    def gone(self, key: str) -> None:
        """Deleted, ended, on its way out, or not ours."""
        self._leave(key)
        self._keep_back(key, None)
        self._room.delete(key)

    def gang_around(self, key: str) -> str:
        """The gang of a pod that has a node, if others of it have one, too; "" if not."""
        member = self._members.get(key)
        if member is None or not member.node:
            return ""
        others = self._crews[member.claim.key].members
        return member.claim.key if any(each.node for name, each in others.items() if name != key) else ""

    def stands(self, gang: str) -> bool:
        """Whether anybody is left of a gang who could be joined."""
        return gang in self._crews

    def latest(self, pod: Pod) -> Pod:
        """The pod as it was last seen: a job keeps it as it was when something about it mattered."""
        member = self._members.get(pod.key)
        return pod if member is None or member.pod.metadata.uid != pod.metadata.uid else member.pod

    # --- what else changes a gang -----------------------------------------------------------------------------------

    def group_changed(self, kind: str, key: str) -> None:
        """A PodGroup or a Workload was made, changed or deleted."""
        namespace, _, name = key.partition("/")
        self._changed.update(self._named.get((kind, namespace, name), {}))

    def changed(self, gang: str) -> None:
        """Something else about a gang did: what is held for it, say."""
        if gang in self._crews:
            self._changed[gang] = None

    def landed(self, job: str) -> None:
        """A job is no longer in flight: what became of its members is in the ledger."""
        member = self._members.get(job)
        gang = job if member is None else member.claim.key
        self._flying.pop(gang, None)
        if gang in self._crews:
            self._changed[gang] = None
            self.flush()

    # --- where a pod's job is -------------------------------------------------------------------------------------

    def job_of(self, key: str) -> str:
        """The key of the job that a pod waits in, or would wait in."""
        member = self._members.get(key)
        if member is None or key in self._crews[member.claim.key].entries:
            return key
        return member.claim.key + (BEHIND_GATES if member.pod.spec.scheduling_gates else "")

    def still_waits(self, pod: Pod) -> bool:
        """Whether this very pod waits, and is not on its way to a node."""
        member, place = self._members.get(pod.key), self._room.place(self.job_of(pod.key))
        if place in (Place.IN_FLIGHT, Place.GONE):
            return False
        if member is not None:
            return member.pod.metadata.uid == pod.metadata.uid and not self._node(pod.key, member)
        job = self._room.job(pod.key)
        return job is not None and job.pods[0].metadata.uid == pod.metadata.uid

    # --- gangs ----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Bring all gangs that have changed into the room. Called at the end of a batch, and before each turn."""
        while self._changed:
            key = next(iter(self._changed))
            del self._changed[key]
            if self._room.place(key) is Place.IN_FLIGHT:
                self._flying[key] = None
            else:
                self._form(key)

    def _form(self, key: str) -> None:
        crew = self._crews[key]
        self.formations += 1
        formation = self._formation(key, crew)
        for name in [each for each in crew.entries if each not in formation.jobs]:
            self._withdraw(crew, name)
        for name, job in formation.jobs.items():
            self._hand_in(crew, name, job, formation.hold if name == key else None, formation)
        if not crew.members and not crew.entries:
            self._disband(key)

    def _formation(self, key: str, crew: Crew) -> Formation:
        if not crew.members:
            return Formation({})
        crew.members = dict(sorted(crew.members.items(), key=_order))  # most of them stand in order since the last time
        seated = [(member, member.node or self._node(name, member)) for name, member in crew.members.items()]
        claims = list({id(each.claim): each.claim for each in crew.members.values()}.values())
        self._warn(crew, claims)
        try:
            gang = merged([settle(claim, self._groups) for claim in claims])
        except Malformed as problem:
            return broken(key, seated, str(problem))
        lack = lacking(gang, claims[0], seated)
        if lack is not None:
            self.incomplete[key] = lack
        else:
            self._complete(key)
        return formed(with_usual(gang, self._usual(seated[0][0].pod)), seated, self.holes(key))

    def _complete(self, gang: str) -> None:
        """It lacks nobody, or everybody."""
        self.incomplete.pop(gang, None)
        self.whole(gang)

    def _hand_in(self, crew: Crew, name: str, job: Job, hold: Verdict | None, formation: Formation) -> None:
        known = self._room.job(name)
        if known == job and self._held.get(name) == hold:
            return
        crew.entries[name] = None
        self._keep_back(name, hold)
        pod, alone = job.pods[0], name in crew.members
        since = crew.members[name].since if alone else formation.since
        place = self._room.add(job, since)
        if alone:
            self.arrived(pod, place)
        else:
            self.assembled(name, place)

    def _withdraw(self, crew: Crew, name: str) -> None:
        if self._room.place(name) is not Place.IN_FLIGHT:  # else its landing brings us back here
            del crew.entries[name]
            self._keep_back(name, None)
            self._room.delete(name)

    def _warn(self, crew: Crew, claims: Iterable[Claim]) -> None:
        texts = [text for claim in claims for text in claim.warnings]
        numbers = sorted({claim.minimum for claim in claims})
        if len(numbers) > 1:
            texts.append(f"members ask for different minimums ({', '.join(map(str, numbers))}); the largest counts")
        for text in texts:
            if text not in crew.warned:
                crew.warned.add(text)
                self.warned(next(iter(crew.members.values())).pod, text)

    # --- members --------------------------------------------------------------------------------------------------

    def _claim(self, pod: Pod) -> Claim | None:
        """What the pod says of its gang; not read again while it says the same."""
        known = self._members.get(pod.key)
        if known is None:
            return claim_of(pod)
        before, now = known.pod, pod.metadata
        same = before.metadata.labels == now.labels and before.metadata.annotations == now.annotations
        return known.claim if same and not known.node and before.metadata.uid == now.uid else claim_of(pod)

    def _join(self, member: Member) -> None:
        key, gang = member.pod.key, member.claim.key
        old = self._members.get(key)
        if old is None or old.claim.key != gang:
            self.gone(key)  # it was by itself, or in another gang
            old = None
        crew = self._crews.get(gang)
        if crew is None:
            crew = self._crews[gang] = Crew()
        sibling = old or next(iter(crew.members.values()), None)
        if sibling is not None and sibling.claim == member.claim:
            member = msgspec.structs.replace(member, claim=sibling.claim)  # ten thousand share one
        crew.members[key] = self._members[key] = member
        ref = member.claim.ref
        if ref is not None:
            crew.names.add(named := (ref.kind, ref.namespace, ref.name))
            self._named.setdefault(named, {})[gang] = None
        if old is None or _matters(old, member):
            self._changed[gang] = None

    def _leave(self, key: str) -> None:
        member = self._members.pop(key, None)
        if member is None:
            return
        crew = self._crews[member.claim.key]
        del crew.members[key]
        crew.entries.pop(key, None)  # of a pod by itself, which whoever called us takes out of the room
        self._changed[member.claim.key] = None

    def _disband(self, gang: str) -> None:
        """The last member is gone, and nothing is left to remember: who takes the name starts afresh."""
        self._complete(gang)
        for named in self._crews.pop(gang).names:
            del self._named[named][gang]
            if not self._named[named]:
                del self._named[named]

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


def _order(named: tuple[str, Member]) -> tuple[int, float, str]:
    return named[1].order


def _matters(old: Member, new: Member) -> bool:
    """Whether the gang is another one now. What is written about a pod that waits (by us, a thousand times) is not."""
    if old.claim is not new.claim or old.node != new.node or old.pod.metadata.uid != new.pod.metadata.uid:
        return True
    if old.bound is not None and new.bound is not None:
        return old.bound.started != new.bound.started
    before, after = old.pod.metadata, new.pod.metadata
    same = before.labels == after.labels and before.annotations == after.annotations and old.pod.spec == new.pod.spec
    return not same or _silent(old.pod.status) != _silent(new.pod.status)


def _silent(status: Any) -> Any:
    return msgspec.structs.replace(status, conditions=[])
