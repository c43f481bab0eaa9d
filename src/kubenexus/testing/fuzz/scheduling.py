"""Schedules as the loop does: decides for waiting pods, commits, and simulates the outcome of the bind."""

import time
from random import Random
from typing import Final

import msgspec

from kubenexus.api.codec import encode, read_object
from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.fuzz import message_invariants, state_invariants
from kubenexus.testing.fuzz.guard import ExceptionGuard
from kubenexus.testing.fuzz.reference_ledger import ReferenceLedger

CACHE: Final = 4 << 20  # bytes of classes: so few that old classes are evicted and computed again


class FuzzScheduler:
    def __init__(self, guard: ExceptionGuard, ledger: Ledger, reference: ReferenceLedger) -> None:
        self._guard = guard
        self._ledger = ledger
        self._reference = reference
        rules = profile_plugins()
        self._planner = Planner(rules, ClassCache(rules, cache_bytes=CACHE))

    def decide(self, rng: Random, last: str, way_of: dict[str, str]) -> None:
        """Decides for one waiting pod or a gang of a few; usually for the last accepted pod."""
        waiting = list(self._reference.waiting)
        keys = rng.sample(waiting, min(len(waiting), rng.choice((1, 1, 1, 1, 3))))
        if last in self._reference.waiting and rng.random() < 0.7:
            keys = [last]
        pods = tuple(self._reference.waiting[key] for key in keys)
        job = Job(key=keys[0], pods=pods, minimum=rng.randrange(1, len(pods) + 1))
        begin = time.perf_counter()
        answer = self._asked("decide", self._planner, job)
        self._guard.spent(f"{way_of.get(keys[0], '?')}, decided", begin)
        if answer is None:
            return
        self._guard.broken("a decision", message_invariants.decision(answer, pods))
        self._guard.tally.decisions[_said(answer)] += 1
        self._again(job, answer)
        if answer.placed:
            self._commit(answer, job, rng)

    def _asked(self, step: str, planner: Planner, job: Job) -> Decision | None:
        length = sum(len(encode(pod)) for pod in job.pods)
        answer: Decision | None = self._guard.guarded(
            step, lambda: planner.decide(job, self._ledger.snapshot(), 0.0), length=length
        )
        return answer

    def _again(self, job: Job, answer: Decision) -> None:
        """Checks on a sample that the same question has the same answer, with cached state and without."""
        number = self._guard.event.number
        if number % 32:
            return
        other = self._asked(
            "decide again", self._planner if number % 256 else Planner(self._planner.profile_plugins), job
        )
        if other is not None and other != answer:
            wrong = f"another answer to the same question: {answer.sentence()}; {other.sentence()}"
            self._guard.broken("a decision", wrong)

    def _commit(self, answer: Decision, job: Job, rng: Random) -> None:
        pods = {pod.key: pod for pod in job.pods}
        if self._guard.guarded("commit", lambda: commit(answer, job, self._ledger, 0.0)) is None:
            return
        for placed in answer.placements:
            pod = pods[placed.pod]
            self._guard.broken("a placement", state_invariants.placement(placed, pod, self._reference))
            self._reference.place(pod, placed.node, ours=True)
            self._confirm(pod, placed.node, rng.random())

    def _confirm(self, pod: Pod, node: str, chance: float) -> None:
        """Simulates the outcome of the bind: it fails, the pod is reported as bound, or nothing arrives yet."""
        if chance < 0.1:
            self._guard.guarded("forget", lambda: self._ledger.forget(pod.key))
            self._reference.take_off(pod.key)
            self._reference.waiting[pod.key] = pod
        elif chance < 0.6:
            bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
            raw = encode(bound)
            found = self._guard.guarded("codec", lambda: read_object(raw, Pod), length=len(raw))
            if isinstance(found, Pod):
                self._guard.guarded("confirm", lambda: self._ledger.upsert_pod(found), length=len(raw))
                self._reference.seen(found)
            else:
                self._guard.broken("a bind", f"what was placed cannot be read when it comes back: {found}")


def _said(answer: Decision) -> str:
    refused = not answer.placed and answer.diagnosis.message.startswith("Pod ")
    return "refused: the pod cannot be read" if refused else answer.code.label
