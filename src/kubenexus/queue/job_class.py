"""A line: jobs that are alike stand in one, oldest first, and it moves as a whole.

Whatever refuses the first of them refuses them all, and whatever may help one may help all. So 100,000 waiting jobs of
ten kinds are ten lines: a refusal, an event, the end of a backoff each move a line, not its jobs.
"""

from typing import Any, NamedTuple

from kubenexus.base.heap import Heap, Slot
from kubenexus.framework.decision import Decision
from kubenexus.framework.verdict import Retry
from kubenexus.queue.job_signature import JobSignature
from kubenexus.queue.question_cost import QuestionCost, question_cost
from kubenexus.queue.queue_profile import ANY_PLUGIN, QueueProfile
from kubenexus.queue.queued_job import QueuedJob, QueueState


class ClassShare(NamedTuple):
    """Whose lines take turns when many are to be asked about an event."""

    priority: int
    namespace: str


class JobClass:
    """`decision` is the last refusal and `unschedulable_plugins` the plugins behind it; while it `refusal_holds`,
    nothing has happened since that could change it, and whoever joins shares it. `single_job`: a line for a single job
    that something befell which does not concern its kind. `in_flight` counts the members that are in flight; they are
    not among `members`. `aging_slot` is its slot among those that gain urgency, `tried_slot` among those that have been
    tried or have not. `refused_order` is the order of the job that was refused. `after_timeout`: nothing but time has
    woken it since it was refused. `scope` is what its jobs were signed in. `set_aside_for` is the namespace for which
    it waits, although it is active; `aside_slot` its slot there. `last_event` is the number of the last event that it
    was asked about (`queue.event_waiters`); `was_asked`: hints have parsed its sample pods.
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
        """What it costs to ask about an event: each of its sample pods is asked about. Counted when first needed."""
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
        """Whether its first job has had a turn, by itself or as one of its kind, and has not been placed."""
        head = self.head
        return self.refusals > 0 or (head is not None and head.attempts > 0)

    def urgency(self, now: float) -> int:
        """The priority that its first job counts with now."""
        head = self.head
        return self.priority if head is None else self.profile.effective_priority(self.priority, head.ready, now)

    def order(self, now: float) -> tuple[Any, ...] | None:
        """Its place among the lines: that of its first job. All of them have one priority, and the oldest is the first
        of them, however long each may have been behind a gate."""
        head = self.head
        return None if head is None else self.order_of(head, now)

    def order_of(self, queued: QueuedJob, now: float) -> tuple[Any, ...]:
        """The place of one of its jobs among all, by the priority that it counts with now."""
        urgency = self.profile.effective_priority(self.priority, queued.ready, now)
        return (
            queued.order if urgency == self.priority else (*self.profile.order(urgency, queued.added_at), queued.number)
        )

    def next_priority_increase(self, now: float) -> float | None:
        """When its place among the lines will be another one though nothing happens; None: never."""
        head, aging = self.head, self.profile.aging
        return None if head is None or aging is None else aging.next_increase(self.priority, head.ready, now)

    @property
    def in_scope(self) -> bool:
        """Whether signatures mean for its first job what they meant when the line was made. The jobs in it may be of
        several namespaces, as long as none of these has anything that sets it apart."""
        head = self.head
        return head is None or self.scope == self.profile.scope(head.job.pods[0])

    def concerns(self, queued: QueuedJob) -> bool:
        """Whether the refusal that stands goes for this job, too. Room that is kept for a gang is kept from those that
        come after it: of a job before the refused one that is not known."""
        held_back = self.decision is not None and self.decision.diagnosis.held_back
        return not held_back or queued.order >= self.refused_order

    @property
    def waits_for_event(self) -> bool:
        """Whether an event may change how things stand with it."""
        return bool(self.members) and (self.state is QueueState.UNSCHEDULABLE or self.refusal_holds)

    def record_refusal(self, decision: Decision) -> None:
        """Remember who refused. Nobody is blamed for a failure, nor when there was nothing to refuse."""
        failed = decision.code.retry is Retry.SOON
        self.decision = decision
        self.unschedulable_plugins = self.profile.with_hints(() if failed else decision.diagnosis.refused_by)
        self.error_backoff = self.unschedulable_plugins == (ANY_PLUGIN,)
