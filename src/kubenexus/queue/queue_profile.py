"""The rules of a profile for waiting jobs: order, gates, signatures, and which event may help which pod.

All rules are passed in. The queue calls this class and never a plugin, so it knows no nodes and can be tested with
rules of three lines.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kubenexus.api.core import Pod
from kubenexus.framework.aging import Aging
from kubenexus.framework.cluster_events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    events_to_register,
)
from kubenexus.framework.extension_points import PreEnqueue, QueueSort
from kubenexus.framework.job import Job
from kubenexus.framework.plugin_results import (
    FAILURES,
    checked_pre_enqueue,
    checked_sort_key,
    plugin_error,
    reraise_interrupts,
)
from kubenexus.framework.profile import ProfilePlugins, is_built_in
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.queue.job_signature import JobSignature, sign_job
from kubenexus.queue.member_signatures import MemberSignatures, Sign, SignatureRule

# Stands for an unknown plugin among those that refused a job: any event that some plugin registers for may help it.
ANY_PLUGIN = ""

# What the requests of a pod are computed from.
_REQUESTS = {"spec.containers", "spec.initContainers", "spec.overhead", "spec.resources"}

Wakes = Mapping[str, Sequence[ClusterEventWithHint]]
Scope = Callable[[Pod], Hashable]
Boost = Callable[[Pod], int]
Owned = Callable[[Job], tuple[str, ...]]


def _first_come(priority: int, since: float, boost: int) -> tuple[float, ...]:
    return (-priority, -boost, since)


class QueueProfile:
    """The rules of one profile, for the whole queue.

    context    what signatures depend on besides the pod (the taints of nodes, say). When it changes each job is signed
               again before its next attempt. It wakes no job: events do.
    scope      the same for a single pod (which terms of other pods may select it, the tier of its tenant). It is part
               of what `sign` returns; jobs of other namespaces are not signed again.
    selectors  what refusals depend on without an event (the selectors of Services, where default constraints refuse).
               When it changes all refused jobs are woken.
    boost      what a pod counts more than others of its priority, for its tenant. It depends on nothing that `scope`
               does not have
    owned      the reservations that a job may use: a refusal of other jobs does not apply to it. Part of `context`
    by_content what `sign` returns depends on nothing else but the content of the pod (`SignatureRule`)
    signs_requests  jobs with the same signature ask for the same
    aging      how the priority of a job rises while it waits, if it does
    hints      counts the answers of hints by plugin, event and answer
    failures   counts errors of gates and orders by plugin
    """

    def __init__(  # noqa: PLR0913 - the rules
        self,
        sign: Sign,
        wakes: Wakes,
        gates: Iterable[PreEnqueue] = (),
        sort: QueueSort | None = None,
        context: Callable[[], Hashable] | None = None,
        aging: Aging | None = None,
        *,
        selectors: Callable[[], Hashable] | None = None,
        scope: Scope | None = None,
        boost: Boost | None = None,
        owned: Owned | None = None,
        by_content: bool = False,
    ) -> None:
        self.aging = aging
        self.signs_requests = False
        self._owned = owned
        self._boost = boost
        self._scope = scope
        self.context = context
        self.selectors = selectors
        self.hints: Counter[tuple[str, str, str]] = Counter()
        self._rule = SignatureRule(sign, by_content)
        self._wakes = wakes
        self._gates = tuple(gates)
        self._sort = sort
        self._sort_built_in = sort is not None and is_built_in(sort)
        self.failures: Counter[str] = Counter()
        self._concerned: dict[tuple[EventResource, ActionType], dict[str, tuple[QueueingHint | None, ...]]] = {}

    @staticmethod
    def of(  # noqa: PLR0913 - the rules
        profile_plugins: ProfilePlugins,
        sign: Sign,
        context: Callable[[], Hashable] | None = None,
        also: Wakes = MappingProxyType({}),
        aging: Aging | None = None,
        *,
        gates: Iterable[PreEnqueue] = (),
        selectors: Callable[[], Hashable] | None = None,
        scope: Scope | None = None,
        boost: Boost | None = None,
        owned: Owned | None = None,
        by_content: bool = False,
    ) -> "QueueProfile":
        """Returns the rules of a profile's plugins; `also` has the events of refusals that come from no plugin, and
        `gates` are called after those of plugins."""
        sort = profile_plugins.queue_sort[0] if profile_plugins.queue_sort else None
        wakes = {**events_to_register(profile_plugins.plugins), **also}
        profile = QueueProfile(
            sign,
            wakes,
            (*profile_plugins.pre_enqueue, *gates),
            sort,
            context,
            aging,
            selectors=selectors,
            scope=scope,
            boost=boost,
            owned=owned,
            by_content=by_content,
        )
        profile.signs_requests = profile_plugins.reads >= _REQUESTS
        return profile

    def order(self, priority: int, since: float, boost: int = 0) -> tuple[float, ...]:
        """Returns the sort key of a job; smaller ones go first: by priority, then by boost, then by age. A foreign
        plugin decides the whole order, without boosts. If it fails, the order is as without it: a key that cannot be
        compared would break the order of all jobs."""
        if self._sort is None or self._sort_built_in:  # PrioritySort is the only one
            return _first_come(priority, since, boost)
        try:
            return checked_sort_key(self._sort.sort_key(priority, since), self._sort.name)
        except FAILURES as error:
            self.failures[plugin_error(self._sort, error).plugin] += 1
            return _first_come(priority, since, boost)

    def boost(self, job: Job) -> int:
        """Returns what the job counts more than others of its priority. A gang counts as its first member: all members
        are of one namespace."""
        return 0 if self._boost is None else self._boost(job.pods[0])

    def effective_priority(self, priority: int, since: float, now: float) -> int:
        """Returns the priority of a job of this age, raised by aging."""
        return priority if self.aging is None else self.aging.effective_priority(priority, since, now)

    def sign_job(self, job: Job, members: MemberSignatures | None = None) -> JobSignature:
        """Returns the signature of the job: jobs with different boosts differ, since a class has one order. A job that
        cannot be signed gets a signature of its own. `members` has the signatures of its members from the last call."""
        boost, owned = self.boost(job), () if self._owned is None else self._owned(job)
        context = None if members is None else (self.context and self.context(), self.scope(job.pods[0]))
        try:
            return sign_job(job, self._rule, boost, owned, members, context)
        except Exception:
            return sign_job(job, lambda pod: f"{pod.key} {pod.metadata.uid}".encode(), boost, owned)

    def scope(self, pod: Pod) -> Hashable:
        """Returns what the signature of a pod depends on besides the pod, in its namespace."""
        return None if self._scope is None else self._scope(pod)

    def pre_enqueue(self, job: Job) -> Verdict | None:
        """Returns the first verdict that gates the job, or None. One gated pod gates its job; so does an error."""
        for pod in job.pods:
            for plugin in self._gates:
                try:
                    verdict = checked_pre_enqueue(plugin.pre_enqueue(pod), plugin.name)
                except FAILURES as error:
                    self.failures[plugin.name] += 1
                    verdict = Verdict(Code.ERROR, (plugin_error(plugin, error).problem,), plugin.name)
                if verdict is not None:
                    return verdict
        return None

    def with_hints(self, refused_by: Iterable[str]) -> tuple[str, ...]:
        """Returns those plugins that have registered events; ANY_PLUGIN for the others, and if there are none."""
        return tuple(sorted({name if name in self._wakes else ANY_PLUGIN for name in refused_by})) or (ANY_PLUGIN,)

    def plugins_for(self, event: ClusterEvent) -> Mapping[str, tuple[QueueingHint | None, ...]]:
        """Returns the plugins whose refusals an event of this kind may end, each with its hints."""
        kind = (event.resource, event.action)
        if kind not in self._concerned:
            matching = {
                name: tuple(wake.hint for wake in wakes if wake.matches(event)) for name, wakes in self._wakes.items()
            }
            self._concerned[kind] = {name: hints for name, hints in matching.items() if hints}
        return self._concerned[kind]

    def concerns(self, refused_by: Iterable[str], event: ClusterEvent) -> bool:
        """Whether one of these plugins registers for such events; False: `may_help` would return False."""
        if event.is_wildcard:
            return True
        concerned = self.plugins_for(event)
        return any(name == ANY_PLUGIN or name in concerned for name in refused_by)

    def may_help(self, blamed: Iterable[str], event: ClusterEvent, pods: Iterable[Pod]) -> bool:
        """Whether the event may help any of these pods, which these plugins refused."""
        if event.is_wildcard:
            return True
        concerned = self.plugins_for(event)
        for name in blamed:
            if name == ANY_PLUGIN:
                return True
            for hint in concerned.get(name, ()):
                if any(self._ask(name, hint, event, pod) for pod in pods):
                    return True
        return False

    def _ask(self, plugin: str, hint: QueueingHint | None, event: ClusterEvent, pod: Pod) -> bool:
        """Calls a hint. One that fails counts as yes: a useless attempt costs less than a job that is never woken."""
        answer: Any = True
        try:
            answer = hint is None or bool(hint(pod, event))
            said = "Queue" if answer else "QueueSkip"
        except FAILURES as error:
            reraise_interrupts(error)
            said = "Error"
        self.hints[plugin, event.label, said] += 1
        return bool(answer)
