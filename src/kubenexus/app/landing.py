"""What follows when a commitment has landed: the ledger, the waiting room and people are told, fate by fate."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

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
from kubenexus.queue.changes import pod_forgotten
from kubenexus.queue.entry import Turn
from kubenexus.queue.room import WaitingRoom
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import Stage

CONFIRMED_WITHIN = 30.0  # seconds; then we look ourselves

log = logs.get("bind")


class Unconfirmed(NamedTuple):
    """A pod that was bound, as far as the API server's answer goes. No more than its name: there may be thousands."""

    namespace: str
    name: str
    uid: str

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
        self._dropping = False  # no bind could be sent since the last one that was answered

    def __call__(self, commitment: Commitment, outcomes: Sequence[Outcome]) -> None:
        pairs = list(zip(commitment.binds, outcomes, strict=True))
        for bind, outcome in pairs:
            if outcome.fate is Fate.BOUND:
                self._bound(commitment, bind, outcome)
            else:
                self._not_bound(commitment, bind, outcome)
        if sum(outcome.fate is Fate.BOUND for outcome in outcomes) >= commitment.token.job.minimum:
            self._complete(commitment.token)
        self._requeue(commitment, {bind.uid for bind, outcome in pairs if outcome.fate.again})
        self.landed(commitment.token.job.key)
        self.woken()

    # --- one member -----------------------------------------------------------------------------------------------

    def _bound(self, commitment: Commitment, bind: Bind, outcome: Outcome) -> None:
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
        if outcome.pod is not None:
            self.learn(outcome.pod)
        else:
            self.doubt(Unconfirmed(pod.metadata.namespace, pod.metadata.name, bind.uid))

    def _not_bound(self, commitment: Commitment, bind: Bind, outcome: Outcome) -> None:
        pod, number = bind.pod, str(commitment.token.number)
        self._forget(bind)
        if outcome.pod is not None:
            self.learn(outcome.pod)
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
        log.error("Failed to bind pod; trying again", err=outcome.message, pod=pod, node=bind.node, cycle=number)
        if self.waits(pod):
            self._herald.failed(pod, outcome.message)

    def _forget(self, bind: Bind) -> None:
        record = self._ledger.pods.get(bind.key)
        if record is not None and record.uid == bind.uid and record.stage is Stage.ASSUMED:
            self._ledger.forget(bind.key)
            self._room.on_event(pod_forgotten(bind.pod, bind.node))

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

    def doubt(self, pod: Unconfirmed) -> None:
        """Nobody could say yet: ask again later."""
        self._unconfirmed.append((self._clock.now() + CONFIRMED_WITHIN, pod))


def _without(decision: Decision, uids: set[str]) -> Decision:
    kept = tuple(each for each in decision.placements if each.uid not in uids)
    return msgspec.structs.replace(decision, placements=kept)
