"""What follows when a commitment has landed: the ledger, the waiting room and people are told, fate by fate."""

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.app.herald import Herald
from kubenexus.base.clock import Clock
from kubenexus.bind.commitment import Bind, Commitment
from kubenexus.bind.outcome import Fate, Outcome
from kubenexus.framework.decision import Decision
from kubenexus.observe import events, logs
from kubenexus.observe.metrics import ERROR, SCHEDULED, Metrics
from kubenexus.observe.recorder import EventRecorder
from kubenexus.observe.throttle import Throttle
from kubenexus.queue.changes import pod_forgotten
from kubenexus.queue.entry import Turn
from kubenexus.queue.room import WaitingRoom
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import Stage

CONFIRMED_WITHIN = 30.0  # seconds; then we look ourselves
BOUND = 16_384  # pods that we bound last; a kubelet that refuses one does so within seconds

log = logs.get("bind")


class Unconfirmed(NamedTuple):
    """A pod that was bound, as far as the API server's answer goes. No more than its name: there may be thousands."""

    namespace: str
    name: str
    uid: str

    @staticmethod
    def of(pod: Pod) -> "Unconfirmed":
        return Unconfirmed(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Landing:
    """A `bind.commitment.Landing`. `learn` takes a pod that a look found, newer than the watch; `landed` hears of jobs
    that are no longer in flight; `waits` says whether a pod still is in one."""

    def __init__(
        self,
        ledger: Ledger,
        room: WaitingRoom,
        herald: Herald,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._ledger, self._room, self._herald, self._recorder = ledger, room, herald, recorder
        self._metrics, self._clock = metrics, clock
        self.learn: Callable[[Pod], None] = lambda pod: None
        self.landed: Callable[[str], None] = lambda job: None
        self.waits: Callable[[Pod], bool] = lambda pod: self._room.job(pod.key) is not None
        self.woken: Callable[[], None] = lambda: None
        self._unconfirmed: deque[tuple[float, Unconfirmed]] = deque()
        self._bound_here: OrderedDict[str, None] = OrderedDict()  # UIDs
        self._failures = Throttle(clock)
        self._dropping = False  # no bind could be sent since the last one that was answered

    def __call__(self, commitment: Commitment, outcomes: Sequence[Outcome]) -> None:
        """Each step fails alone: a job that has landed is no longer in flight, and a pod of which it could not be said
        what became of it is looked up."""
        job, pairs = commitment.token.job, list(zip(commitment.binds, outcomes, strict=True))
        for bind, outcome in pairs:
            if not self._done(self._settled, bind, outcome):
                self.doubt(Unconfirmed.of(bind.pod))
        again = {bind.uid for bind, outcome in pairs if outcome.fate.again}
        if not self._done(self._requeue, commitment, again):
            self._done(self._enter_anew, commitment.token, again)
        self._done(self.landed, job.key)
        for bind, outcome in pairs:
            self._done(self._told, commitment, bind, outcome)
        if sum(outcome.fate is Fate.BOUND for outcome in outcomes) >= job.minimum:
            self._done(self._complete, commitment.token)
        self._done(self.woken)

    def _done(self, step: Callable[..., None], *arguments: Any) -> bool:
        """Whether a step was taken to its end."""
        try:
            step(*arguments)
        except Exception as error:
            log.error("Failed to draw the consequences of a bind", error, step=step.__name__)  # noqa: PLE1205 - our own log
            return False
        return True

    # --- one member -----------------------------------------------------------------------------------------------

    def _settled(self, bind: Bind, outcome: Outcome) -> None:
        """Whether its room stays taken."""
        if outcome.fate is not Fate.BOUND:
            self._forget(bind.pod)
        if outcome.pod is not None:
            self.learn(outcome.pod)
        elif outcome.fate is Fate.BOUND:
            self.doubt(Unconfirmed.of(bind.pod))
        if outcome.fate is Fate.BOUND:
            self._remember(bind.uid)

    def _remember(self, uid: str) -> None:
        self._bound_here[uid] = None
        if len(self._bound_here) > BOUND:
            self._bound_here.popitem(last=False)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._bound_here.pop(uid, None)

    def bound_here(self, uid: str) -> bool:
        """Whether this process bound the pod, as far as it remembers."""
        return uid in self._bound_here

    def _told(self, commitment: Commitment, bind: Bind, outcome: Outcome) -> None:
        if outcome.fate is Fate.BOUND:
            self._bound(commitment, bind)
        else:
            self._not_bound(commitment, bind, outcome)

    def _bound(self, commitment: Commitment, bind: Bind) -> None:
        pod, now = bind.pod, self._clock.now()
        turn: Turn = commitment.token
        self._dropping = False
        self._recorder.record(events.scheduled(pod, bind.node), pod.spec.scheduler_name)
        self._metrics.attempt(SCHEDULED, pod.spec.scheduler_name, now - commitment.began)
        self._metrics.bound(turn.attempt, max(0.0, now - turn.since))
        if turn.flushed:
            self._metrics.after_flush.at().add()
        if log.on(2):
            log.v(2, "Successfully bound pod to node", pod=pod, node=bind.node, cycle=str(turn.number))

    def _not_bound(self, commitment: Commitment, bind: Bind, outcome: Outcome) -> None:
        pod, number = bind.pod, str(commitment.token.number)
        if not outcome.fate.again:
            log.v(2, "Pod is no longer ours to bind", pod=pod, why=outcome.fate.value, cycle=number)
            return
        self._metrics.attempt(ERROR, pod.spec.scheduler_name, self._clock.now() - commitment.began)
        if outcome.fate is Fate.NEVER:  # nothing was asked, so nothing has failed: at the end there may be hundreds
            if outcome.dropped and not self._dropping:
                self._dropping = True  # of a leader that can send nothing there has to be one line without -v
                log.error("Failed to send a bind; later ones are logged with -v 2", err=outcome.message, pod=pod)
            log.v(2, "Pod was not bound", why=outcome.message, pod=pod, node=bind.node, cycle=number)
            return
        self._log_failed(bind, outcome.message, number)
        if self.waits(pod):
            self._herald.failed(pod, outcome.message)

    def _log_failed(self, bind: Bind, why: str, number: str) -> None:
        """One error a minute for each namespace, with how many there were besides: what the server refuses is often the
        doing of a tenant. All of them with -v 2; events and `schedule_attempts_total` have all of them anyhow."""
        more = self._failures.left_out(bind.pod.metadata.namespace)
        if more is not None:
            message = "Failed to bind pod; trying again; others of its namespace are logged with -v 2 for a minute"
            log.error(message, err=why, pod=bind.pod, node=bind.node, cycle=number, leftOut=more)
        else:
            log.v(2, "Failed to bind pod; trying again", err=why, pod=bind.pod, node=bind.node, cycle=number)

    def _forget(self, pod: Pod) -> bool:
        """Whether it was counted on a node by our own word alone, and is no longer."""
        record = self._ledger.pods.get(pod.key)
        if record is None or record.uid != pod.metadata.uid or record.stage is not Stage.ASSUMED:
            return False
        self._ledger.forget(pod.key)
        self._room.on_event(pod_forgotten(pod, record.node))
        return True

    # --- the job --------------------------------------------------------------------------------------------------

    def _complete(self, turn: Turn) -> None:
        """As many as it needs are bound."""
        self._herald.scheduled(turn.job)
        if turn.job.gang and not turn.job.anchors:
            self._metrics.gang_completion.at().observe(max(0.0, self._clock.now() - turn.since))

    def _requeue(self, commitment: Commitment, again: set[str]) -> None:
        """Members that still need a node go back; if that is all of them, so does the job as it is."""
        turn: Turn = commitment.token
        if len(again) == len(commitment.binds):
            self._room.failed(turn)
            return
        self._room.done(turn, _without(commitment.decision, again) if again else commitment.decision)

    def _enter_anew(self, turn: Turn, again: set[str]) -> None:
        """The waiting room failed: the job leaves it, and comes in as a new one. Gangs do so when they have landed."""
        pods, there = turn.job.pods, self._room.job(turn.job.key)
        if there is None or there.pods[0].metadata.uid != pods[0].metadata.uid:
            return  # another has its name by now
        self._room.delete(turn.job.key)
        if not turn.job.gang and again:
            self._room.add(turn.job, turn.since)

    # --- what the watch has yet to say ----------------------------------------------------------------------------

    def overdue(self) -> list[Unconfirmed]:
        """Pods that were bound, but of which the watch has not spoken for too long; each is named once."""
        now, late = self._clock.now(), []
        while self._unconfirmed and self._unconfirmed[0][0] <= now:
            _, pod = self._unconfirmed.popleft()
            record = self._ledger.pods.get(pod.key)
            if record is not None and record.uid == pod.uid and record.stage is Stage.ASSUMED:
                late.append(pod)
        return late

    def never_bound(self, pod: Pod) -> None:
        """A look found that a pod does not have the node on which it is counted."""
        if self._forget(pod):
            self.landed(pod.key)

    def doubt(self, pod: Unconfirmed) -> None:
        """Nobody could say yet: ask again later."""
        self._unconfirmed.append((self._clock.now() + CONFIRMED_WITHIN, pod))


def _without(decision: Decision, uids: set[str]) -> Decision:
    kept = tuple(each for each in decision.placements if each.uid not in uids)
    return msgspec.structs.replace(decision, placements=kept)
