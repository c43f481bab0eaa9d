"""Jobs that wait for the success of others: a gate in front of the queue, and what is known of the jobs they wait for.

    pre_enqueue ─▶ names that are not known yet ─▶ `next_to_look_up` ─▶ `app.dependencies` ─▶ `set` ─▶ the gate again

Only names of the pod's own namespace count. No I/O here: the API server is asked by `app.dependencies`. What no pod
has waited for in `FORGET_SECONDS` is forgotten; gates of waiting jobs are called every five minutes.
"""

import enum
import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.job_dependencies import after, names_of
from kubenexus.api.keys.workload import AFTER
from kubenexus.base.clock import Clock
from kubenexus.base.errors import Malformed, truncated
from kubenexus.framework.verdict import Code, Verdict

DEPENDENCIES: Final = "JobDependencies"
MAX_TRACKED: Final = 1_000  # names of one namespace that jobs wait for
MAX_WAITING: Final = 5_000  # names of waiting jobs of one namespace that the search for a cycle knows
MAX_STEPS: Final = 128  # names that this search looks at: 0.04 ms, for each pod of a batch
MAX_SHOWN: Final = 5  # names in a reason
LOOK_SECONDS: Final = 15.0  # between two looks at a job without an event
MIN_SECONDS: Final = 1.0  # between two looks at a job after events
FORGET_SECONDS: Final = 900.0


class JobOutcome(enum.Enum):
    """What became of a job that others wait for."""

    UNKNOWN = "unknown"
    MISSING = "missing"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class JobName(NamedTuple):
    namespace: str
    name: str


class _Tracked:
    """A job that pods wait for, by their keys. `look_at` is when to look at it again if no pod of its namespace ends;
    infinite for one that has succeeded."""

    __slots__ = ("look_at", "looked_at", "name", "outcome", "pods", "wanted_at")

    def __init__(self, name: str, now: float) -> None:
        self.name = name
        self.outcome = JobOutcome.UNKNOWN
        self.look_at = self.wanted_at = now
        self.looked_at = 0.0
        self.pods: dict[str, None] = {}

    def is_due(self, now: float, ended_at: float) -> bool:
        """Whether to look at it now. `ended_at`: when a pod of its namespace last ended, as the job may have with
        it."""
        if self.look_at <= now:
            return True
        return ended_at >= self.looked_at and self.look_at < math.inf and self.looked_at + MIN_SECONDS <= now


class _Namespace:
    """The names that pods of one namespace wait for: those that were looked at the longest ago come first. `names_of`
    has the names by waiting pod, `after` those of each waiting job by its own names."""

    __slots__ = ("after", "ended_at", "names_of", "tracked")

    def __init__(self) -> None:
        self.tracked: OrderedDict[str, _Tracked] = OrderedDict()
        self.names_of: dict[str, tuple[str, ...]] = {}
        self.after: dict[str, tuple[str, ...]] = {}
        self.ended_at = -math.inf

    def waits(self, pod: str, names: tuple[str, ...]) -> None:
        """Notes that a pod waits for these names, which are tracked. O(names)."""
        self.no_longer(pod)
        if names:
            self.names_of[pod] = names
        for name in names:
            self.tracked[name].pods[pod] = None

    def no_longer(self, pod: str) -> None:
        for name in self.names_of.pop(pod, ()):
            known = self.tracked.get(name)
            if known is not None:
                known.pods.pop(pod, None)

    def forget(self, now: float) -> None:
        for name in [name for name, known in self.tracked.items() if known.wanted_at + FORGET_SECONDS < now]:
            for pod in self.tracked.pop(name).pods:
                self.names_of.pop(pod, None)


class JobDependencies:
    """A PreEnqueue gate. Pods without the annotation pass at once."""

    name: ClassVar[str] = DEPENDENCIES
    reads: ClassVar[tuple[str, ...]] = ()

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._namespaces: OrderedDict[str, _Namespace] = OrderedDict()  # which take turns

    def pre_enqueue(self, pod: Pod) -> Verdict | None:
        """Returns why the pod waits; None if all jobs that it comes after have succeeded."""
        if AFTER.key not in pod.metadata.annotations:
            return None
        try:
            names = after(pod)
        except Malformed as problem:
            return Verdict(Code.UNRESOLVABLE, (str(problem),), DEPENDENCIES)
        namespace, now = self._open(pod.metadata.namespace), self._clock.now()
        tracked = namespace.tracked
        if len(tracked) + len([name for name in names if name not in tracked]) > MAX_TRACKED:
            reason = f"jobs of this namespace wait for more than {MAX_TRACKED} others"
            return Verdict(Code.UNRESOLVABLE, (reason,), DEPENDENCIES)
        outcomes: dict[JobOutcome, list[str]] = {}
        for name in names:
            known = tracked.get(name)
            if known is None:
                known = tracked[name] = _Tracked(name, now)
            known.wanted_at = now
            outcomes.setdefault(known.outcome, []).append(name)
        waits = [outcome for outcome in outcomes if outcome is not JobOutcome.SUCCEEDED]
        shared = tuple([tracked[name].name for name in names])
        namespace.waits(pod.key, shared if waits else ())
        own = namespace.after
        for name in names_of(pod):
            if not waits:
                own.pop(name, None)
            elif name in own or len(own) < MAX_WAITING:
                own[name] = shared
        if not waits:
            return None
        cycle = _cycle(namespace.after, pod)
        if cycle:
            reason = f"jobs wait for each other and none can start: {' after '.join(map(truncated, cycle))}"
        else:
            reason = _reason(outcomes)
        return Verdict(Code.UNRESOLVABLE, (reason,), DEPENDENCIES)

    def _open(self, namespace: str) -> _Namespace:
        found = self._namespaces.get(namespace)
        if found is None:
            found = self._namespaces[namespace] = _Namespace()
        return found

    # --- looking jobs up ------------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        """Whether a job waits for another one, or did so lately."""
        return bool(self._namespaces)

    def on_pod_ended(self, pod: Pod) -> None:
        """Notes that a pod is gone: it waits no more, and a job of its namespace may have ended with it. O(names that
        it waited for), since a tenant may delete thousands of pods at once."""
        namespace = self._namespaces.get(pod.metadata.namespace)
        if namespace is None:
            return
        for name in names_of(pod):  # other pods of its Job are known again when their gates are next called
            namespace.after.pop(name, None)
        namespace.no_longer(pod.key)
        namespace.ended_at = self._clock.now()

    def next_to_look_up(self) -> JobName | None:
        """Returns a job to look at now, or None. Namespaces take turns."""
        now = self._clock.now()
        for _ in range(len(self._namespaces)):
            name, namespace = next(iter(self._namespaces.items()))
            self._namespaces.move_to_end(name)
            namespace.forget(now)
            if not namespace.tracked:
                del self._namespaces[name]
                continue
            for job, known in namespace.tracked.items():
                if known.is_due(now, namespace.ended_at):
                    known.look_at, known.looked_at = now + LOOK_SECONDS, now
                    namespace.tracked.move_to_end(job)
                    return JobName(name, job)
        return None

    def set(self, job: JobName, outcome: JobOutcome) -> list[str]:
        """Sets what became of a job. Returns the keys of the pods whose gates may have another answer now."""
        namespace = self._namespaces.get(job.namespace)
        known = None if namespace is None else namespace.tracked.get(job.name)
        if namespace is None or known is None or known.outcome is outcome:
            return []
        known.outcome = outcome
        if outcome is JobOutcome.SUCCEEDED:
            known.look_at = math.inf
        found, known.pods = list(known.pods), {}
        return found


def _cycle(waiting: Mapping[str, tuple[str, ...]], pod: Pod) -> list[str]:
    """Returns the names of jobs that wait for each other, the pod's own first and last; empty if there are none
    among so many. `waiting` has the names that jobs wait for, by their own."""
    own = names_of(pod)
    start = next((name for name in own if name in waiting), "")
    came_from: dict[str, str] = {}
    todo = [start] if start else []
    steps = 0
    while todo and steps < MAX_STEPS:
        name = todo.pop()
        for before in waiting.get(name, ()):
            steps += 1
            if before in own:
                path = [before, name]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return [before, *path[-2::-1]]  # `start` is another name of `before`
            if before in waiting and before not in came_from and before != start:
                came_from[before] = name
                todo.append(before)
    return []


def _reason(outcomes: dict[JobOutcome, list[str]]) -> str:
    """Returns `waits for jobs a, b to succeed; job c has failed; there is no job d`."""
    parts = []
    waits = [*outcomes.get(JobOutcome.UNKNOWN, ()), *outcomes.get(JobOutcome.RUNNING, ())]
    if waits:
        parts.append(f"waits for {_listed(waits)} to succeed")
    if failed := outcomes.get(JobOutcome.FAILED):
        parts.append(f"{_listed(failed)} failed")
    if missing := outcomes.get(JobOutcome.MISSING):
        parts.append(f"there is no {_listed(missing)} in this namespace")
    return "; ".join(parts)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    return ("job " if len(names) == 1 else "jobs ") + ", ".join(map(truncated, names[:MAX_SHOWN])) + more
