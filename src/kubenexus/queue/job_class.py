"""A job class: the waiting jobs that have one signature, oldest first. It moves between sub-queues as a whole.

A refusal of the first job is a refusal of all, and an event that may help one may help all. So 100,000 waiting jobs
with ten signatures are ten classes: a refusal, an event or the end of a backoff moves a class, not each of its jobs.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from kubenexus.base.heap import Heap, Slot
from kubenexus.framework.cluster_events import ClassBackoff
from kubenexus.framework.decision import Decision
from kubenexus.framework.verdict import Retry
from kubenexus.queue.job_signature import JobSignature
from kubenexus.queue.question_cost import QuestionCost, question_cost
from kubenexus.queue.queue_profile import ANY_PLUGIN, QueueProfile
from kubenexus.queue.queued_job import QueuedJob, QueueState

if TYPE_CHECKING:
    from kubenexus.queue.fair.job_request import JobRequest


class ClassShare(NamedTuple):
    """Classes of different shares take turns when many have to be checked for an event."""

    priority: int
    namespace: str


class JobClass:
    """Jobs with one signature, and their common state.

    decision               the last refusal
    unschedulable_plugins  the plugins that refused
    refusal_holds          no event since could change the refusal: jobs that join share it
    refused_order          the sort key of the job that was refused
    after_timeout          only time has woken the class since it was refused
    single_job             for one job by itself, after an event that does not concern others of its signature
    members, in_flight     the waiting jobs, and how many more have an attempt under way
    scope                  what the signature depends on besides the pods (`QueueProfile.scope`)
    request                what each of its jobs asks for in sum, once that is known (`queue.fair.fair_order`)
    set_aside_for          the namespace whose backlog the class waits for, although it is active
    last_event             the number of the last event that it was checked for (`queue.event_waiters`)
    was_asked              hints have parsed its sample pods
    slot, aging_slot, tried_slot, aside_slot   its slots in the heaps of `queue.sub_queues`
    """

    __slots__ = (
        "_question_cost",
        "after_timeout",
        "aging_slot",
        "aside_slot",
        "backoff_until",
        "decision",
        "error_backoff",
        "gangs",
        "in_flight",
        "last_event",
        "members",
        "pods",
        "priority",
        "profile",
        "refusal_holds",
        "refusals",
        "refused_order",
        "request",
        "scope",
        "set_aside_for",
        "share",
        "signature",
        "single_job",
        "slot",
        "state",
        "tried_slot",
        "unschedulable_plugins",
        "unschedulable_since",
        "was_asked",
    )

    def __init__(self, kind: JobSignature, profile: QueueProfile, priority: int, *, alone: bool = False) -> None:
        self.signature = kind
        self.profile = profile
        self.scope = profile.scope(kind.sample_pods[0])
        self.priority = priority
        self.share = ClassShare(priority, kind.sample_pods[0].metadata.namespace)
        self.single_job = alone
        self.request: JobRequest | None = None
        self.set_aside_for = ""
        self.aside_slot: Slot | None = None
        self.members: Heap[QueuedJob] = Heap()
        self.pods = self.gangs = 0
        self.in_flight = 0
        self.state = QueueState.ACTIVE
        self.slot: Slot | None = None
        self.aging_slot: Slot | None = None
        self.tried_slot: Slot | None = None
        self.decision: Decision | None = None
        self.unschedulable_plugins: tuple[str, ...] = ()
        self.refusal_holds = False
        self.error_backoff = self.after_timeout = False
        self.refusals = 0
        self.refused_order: tuple[Any, ...] = ()
        self.backoff_until = 0.0
        self.unschedulable_since = 0.0
        self.last_event = 0
        self.was_asked = False
        self._question_cost: QuestionCost | None = None

    @property
    def question_cost(self) -> QuestionCost:
        """What it costs to check an event for all sample pods. Counted when first needed."""
        if self._question_cost is None:
            self._question_cost = question_cost(self.signature.sample_pods)
        return self._question_cost

    def push(self, queued: QueuedJob) -> None:
        queued.job_class = self
        queued.slot = self.members.push(queued.order, queued)
        self.pods += queued.pods
        self.gangs += queued.job.is_gang

    def remove(self, queued: QueuedJob) -> None:
        self.members.remove(queued.slot)
        self.pods -= queued.pods
        self.gangs -= queued.job.is_gang
        queued.job_class = None

    @property
    def head(self) -> QueuedJob | None:
        return self.members.first()

    @property
    def tried(self) -> bool:
        """Whether its first job, or another one for it, had an attempt and was not placed."""
        head = self.head
        return self.refusals > 0 or (head is not None and head.attempts > 0)

    def urgency(self, now: float) -> int:
        """Returns the effective priority of its first job, which may rise by age."""
        head = self.head
        return self.priority if head is None else self.profile.effective_priority(self.priority, head.ready, now)

    def order(self, now: float) -> tuple[Any, ...] | None:
        """Returns the sort key of its first job, or None. All members have one priority and one boost, so the oldest is
        the first, however long each was gated."""
        head = self.head
        return None if head is None else self.order_of(head, now)

    def order_of(self, queued: QueuedJob, now: float) -> tuple[Any, ...]:
        """Returns the sort key of one of its jobs by its effective priority."""
        urgency = self.profile.effective_priority(self.priority, queued.ready, now)
        if urgency == self.priority:
            return queued.order
        return (*self.profile.order(urgency, queued.added_at, queued.boost), queued.number)

    def next_priority_increase(self, now: float) -> float | None:
        """Returns when age will raise the priority of its first job; None: never."""
        head, aging = self.head, self.profile.aging
        return None if head is None or aging is None else aging.next_increase(self.priority, head.ready, now)

    @property
    def in_scope(self) -> bool:
        """Whether signatures mean for its first job what they meant when the class was made. Its jobs may be of several
        namespaces while no term of other pods distinguishes these."""
        head = self.head
        return head is None or self.covers(head)

    def covers(self, queued: QueuedJob) -> bool:
        """Whether the signature means for this job what it meant when the class was made."""
        return bool(self.scope == self.profile.scope(queued.job.pods[0]))

    def concerns(self, queued: QueuedJob) -> bool:
        """Whether the refusal also applies to this job. Capacity reserved for a gang is kept from jobs that come after
        it. Whether that is so for a job before the refused one is not known."""
        held_back = self.decision is not None and self.decision.diagnosis.held_back
        return not held_back or queued.order >= self.refused_order

    def avoids(self, backoffs: frozenset[ClassBackoff]) -> bool:
        """Whether nodes were left out of its last decision because of one of these."""
        return self.decision is not None and not self.decision.backoffs.isdisjoint(backoffs)

    @property
    def waits_for_event(self) -> bool:
        """Whether an event may change the state of the class."""
        return bool(self.members) and (self.state is QueueState.UNSCHEDULABLE or self.refusal_holds)

    def record_refusal(self, decision: Decision) -> None:
        """Records the plugins that refused; none of them for an error, or if the decision names none."""
        failed = decision.code.retry is Retry.SOON
        self.decision = decision
        self.unschedulable_plugins = self.profile.with_hints(() if failed else decision.diagnosis.refused_by)
        self.error_backoff = self.unschedulable_plugins == (ANY_PLUGIN,)
