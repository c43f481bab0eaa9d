"""Plays the part of the loop: hears of objects, keeps those that wait, decides, commits, and hears of the outcome.

Whatever an entry point does is compared with the twin at once. After a fault it goes on as if the object had been
refused: a hundred thousand objects shall show all faults, not the first.
"""

import time
import warnings
from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec

from kubenexus.api.codec import Unreadable, decode_list, encode, read_object
from kubenexus.api.core import DeviceClass, Node, Pod
from kubenexus.base.errors import Malformed
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import lineup
from kubenexus.state.ledger import Ledger
from kubenexus.testing.fuzz import laws
from kubenexus.testing.fuzz.stream import Event, Kind, event
from kubenexus.testing.fuzz.tally import Tally
from kubenexus.testing.fuzz.twin import Twin
from kubenexus.testing.fuzz.work import TooMuchWork, counted

LARGE: Final = 4096  # bytes from which on every step is counted; of smaller objects, one in a few
BOOKS_EVERY: Final = 5000


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.ledger = Ledger()
        self.twin = Twin()
        self.tally = Tally()
        self.planner = Planner(lineup())
        self._event = Event(-1, Pod, b"")
        self._calls = 0
        self._rng = Random(seed)
        self._way_of: dict[str, str] = {}

    def run(self, objects: int, first: int = 0) -> Tally:
        """All objects up to this number. A warning (NumPy's, of an overflow, say) counts as an exception."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for number in range(first, objects):
                self.step(event(self.seed, number))
                if number % BOOKS_EVERY == BOOKS_EVERY - 1:
                    self.close_books()
            self.close_books()
        return self.tally

    def step(self, heard: Event) -> None:
        """One event, and now and then a decision after it."""
        self._event, self._calls, self._rng = heard, 0, Random(f"{self.seed}/{heard.number}/acts")
        begin = time.perf_counter()
        self._hear_page(heard) if heard.count else self._hear(heard)
        self._spent(heard.way, begin)
        if self._rng.random() < 0.4 and self.twin.waiting:
            self._decide()

    def close_books(self) -> None:
        """Everything is accounted for, and a ledger told only what was accepted comes to the same."""
        for wrong in laws.books(self.ledger, self.twin):
            self._broken("the books", wrong)
        again = self._guarded("rebuild", lambda: laws.rebuilt(self.twin, self._rng))
        if again is not None:
            self._broken("the digest", laws.digests(self.ledger, again))

    # --- hearing --------------------------------------------------------------------------------------------------

    def _hear(self, heard: Event) -> None:
        found = self._guarded("codec", lambda: read_object(heard.raw, heard.kind))
        if isinstance(found, Unreadable):
            known = laws.identity(heard.raw)
            self._broken("a refusal", laws.refusal(heard.kind.__name__, found.error, known))
            self._broken("what was saved", laws.saved(found, known) if heard.kind is Pod else "")
            self._lost(found, deleted=heard.deleted)
        elif found is not None and heard.deleted:
            self._gone(heard.kind, _key(found))
            self.tally.outcome(heard.way, "deleted")
        elif found is not None:
            self._told(found)

    def _hear_page(self, heard: Event) -> None:
        page = self._guarded("codec", lambda: decode_list(heard.raw, heard.kind))
        if page is None:
            return
        if len(page.items) + len(page.unreadable) != heard.count:
            self._broken("a page", f"{heard.count} objects, but {len(page.items)} + {len(page.unreadable)} came out")
        for found in page.items:
            self._told(found)
        for lost in page.unreadable:
            self._lost(lost, deleted=False)

    def _told(self, found: Pod | Node | DeviceClass) -> None:
        """An object that could be decoded meets the ledger, which may still refuse what it cannot count."""
        tell: Callable[[Any], object] = {
            Pod: self.ledger.pod_seen,
            Node: self.ledger.node_seen,
            DeviceClass: self.ledger.device_class_seen,
        }[type(found)]
        try:
            answer = self._guarded("ledger", lambda: (tell(found),), passing=Malformed)
        except Malformed as error:
            known = laws.Identity(found.metadata.namespace, found.metadata.name)
            self._broken("a refusal", laws.refusal(type(found).__name__, error, known))
            self._refuse(error, fenced=isinstance(found, Pod) and bool(found.spec.node_name))
            if isinstance(found, Pod):
                self.twin.refused(found)
            return
        if answer is None:
            return
        self.tally.outcome(self._event.way, "accepted")
        if isinstance(found, Pod):
            self.twin.seen(found)
            self._way_of[found.key] = self._event.way
        elif isinstance(found, Node):
            self.twin.nodes[found.metadata.name] = found
        else:
            self.twin.classes[found.metadata.name] = found

    def _lost(self, found: Unreadable, *, deleted: bool) -> None:
        """An object that could not be decoded: what is left of it says whether something runs where."""
        pod, key = found.kind == "Pod", f"{found.namespace}/{found.name}" if found.kind == "Pod" else found.name
        stopped = deleted or found.phase in laws.STOPPED
        if stopped and found.name and (deleted or pod):
            self._gone(self._event.kind, key)
        elif pod:
            self._guarded("ledger", lambda: self.ledger.pod_unreadable(key, found.node))
            self.twin.unreadable(key, found.node)
        self._refuse(found.error, fenced=pod and bool(found.node) and not stopped)

    def _refuse(self, error: Malformed, *, fenced: bool) -> None:
        self.tally.outcome(self._event.way, "quarantined, its node fenced" if fenced else "refused")
        self.tally.refusal(self._event.kind.__name__, error.field, error.problem)

    def _gone(self, kind: Kind, key: str) -> None:
        if kind is Pod:
            self._guarded("ledger", lambda: self.ledger.pod_gone(key))
            self.twin.gone(key)
        elif kind is Node:
            self._guarded("ledger", lambda: self.ledger.node_gone(key))
            self.twin.nodes.pop(key, None)
        else:
            self._guarded("ledger", lambda: self.ledger.device_class_gone(key))
            self.twin.classes.pop(key, None)

    # --- deciding -------------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """For one that waits, or for a gang of a few; sometimes for the one that was just heard of."""
        rng, waiting = self._rng, list(self.twin.waiting)
        keys = rng.sample(waiting, min(len(waiting), rng.choice((1, 1, 1, 1, 3))))
        if rng.random() < 0.5:
            keys = [waiting[-1]]
        pods = tuple(self.twin.waiting[key] for key in keys)
        job = Job(key=keys[0], pods=pods, minimum=rng.randrange(1, len(pods) + 1))
        begin = time.perf_counter()
        answer = self._guarded(
            "decide", lambda: self.planner.decide(job, self.ledger.snapshot(), 0.0), length=_length(pods)
        )
        self._spent(f"{self._way_of.get(keys[0], '?')}, decided", begin)
        if answer is None:
            return
        self._broken("a decision", laws.decision(answer, pods))
        self.tally.decisions[_said(answer)] += 1
        if self._event.number % 16 == 0:
            self._again(job, answer)
        if answer.placed:
            self._commit(answer, job)

    def _again(self, job: Job, answer: Decision) -> None:
        """The same question has the same answer, with what is cached and without."""
        planner = Planner(self.planner.lineup) if self._event.number % 128 == 0 else self.planner
        other = self._guarded(
            "decide again", lambda: planner.decide(job, self.ledger.snapshot(), 0.0), length=_length(job.pods)
        )
        if other is not None and other != answer:
            self._broken("the same answer", f"first {_said(answer)}: {answer.sentence()}, then {other.sentence()}")

    def _commit(self, answer: Decision, job: Job) -> None:
        pods = {pod.key: pod for pod in job.pods}
        if self._guarded("commit", lambda: commit(answer, job, self.ledger, 0.0)) is None:
            return
        for placed in answer.placements:
            pod = pods[placed.pod]
            self._broken("a placement", laws.placement(placed, pod, self.twin))
            self.twin.place(pod, placed.node, ours=True)
            self._confirm(pod, placed.node)

    def _confirm(self, pod: Pod, node: str) -> None:
        """The API server's word on our bind: it shows the pod bound, or the bind failed, or nothing came yet."""
        chance = self._rng.random()
        if chance < 0.1:
            self._guarded("forget", lambda: self.ledger.forget(pod.key))
            self.twin.take_off(pod.key)
            self.twin.waiting[pod.key] = pod
        elif chance < 0.6:
            bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
            found = self._guarded("codec", lambda: read_object(encode(bound), Pod), length=_length((pod,)))
            if isinstance(found, Pod):
                self._guarded("confirm", lambda: self.ledger.pod_seen(found), length=_length((pod,)))
                self.twin.seen(found)
            else:
                self._broken("a bind", f"{pod.key} was placed, but cannot be read when it comes back: {found}")

    # --- guarding -------------------------------------------------------------------------------------------------

    def _guarded(self, step: str, act: Callable[[], Any], *, passing: Any = (), length: int = 0) -> Any:
        """The act's answer, or None if something came out of it that must not."""
        raw, number = self._event.raw, self._event.number
        length = length or len(raw)
        try:
            if length < LARGE and number % 32:
                return act()
            answer, calls = counted(act, length)
        except passing:
            raise
        except TooMuchWork as error:
            self.tally.violation(number, f"{step}: too much work", str(error), raw)
            return None
        except Exception as error:
            self.tally.escaped(number, step, error, raw)
            return None
        self._calls += calls
        return answer

    def _spent(self, way: str, begin: float) -> None:
        self.tally.cost(way, self._event.number, self._calls, time.perf_counter() - begin)
        self._calls = 0

    def _broken(self, law: str, wrong: str) -> None:
        if wrong:
            self.tally.violation(self._event.number, f"{law}: {_kind_of(wrong)}", wrong, self._event.raw)


def _key(found: Pod | Node | DeviceClass) -> str:
    return found.key if isinstance(found, Pod) else found.metadata.name


def _said(answer: Decision) -> str:
    refused = not answer.placed and answer.diagnosis.message.startswith("Pod ")
    return "refused: the pod cannot be read" if refused else answer.code.label


def _length(pods: tuple[Pod, ...]) -> int:
    return sum(len(encode(pod)) for pod in pods)


def _kind_of(wrong: str) -> str:
    return wrong.partition(":")[0][:60]
