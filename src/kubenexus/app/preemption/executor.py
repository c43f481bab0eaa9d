"""Executes the preemptions that decisions contain: nominates the members of a job to their nodes, and ends the victims.

    decision ─▶ review ─▶ nominatedNodeName of each member ─▶ each victim: evict or delete ─▶ event Preempted
                             └─ stops if the job is gone, placed or outranked, or a write fails

The nomination of a pod carries the condition that says why it waits (`StatusPatcher.carried`): one write, not two.
From `submit` on the ledger keeps the capacity for the job (`state.preemptions`). Nothing waits here for the victims'
end: the watch shows it, and `settle` then activates the job. A preemption that fails half way ends; the job is decided
again, and waits for those of its victims that are terminating already.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.job_key import namespace_of
from kubenexus.app.preemption.call_turns import CallTurn, in_portions
from kubenexus.app.preemption.capacity_check import still_fits, waits_for_others
from kubenexus.app.preemption.eviction_calls import BudgetRefusal, EvictionCalls
from kubenexus.app.preemption.execution import Execution
from kubenexus.app.preemption.preemption_rules import PreemptionRules, ProfileRules
from kubenexus.app.preemption.victim_marks import VictimMarks
from kubenexus.app.wakeup import Wakeup
from kubenexus.base.clock import Clock
from kubenexus.client.calls import Api
from kubenexus.client.fair_slots import FairSlots
from kubenexus.framework.decision import Decision, Preemption
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.observe import events, logs
from kubenexus.observe.metrics import Metrics
from kubenexus.observe.recorder import EventRecorder
from kubenexus.observe.status_patcher import StatusPatcher
from kubenexus.queue.gangs.waiting_pods import WaitingPods
from kubenexus.queue.object_events import nomination_ended
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord
from kubenexus.state.preemptions import PendingPreemption, PreemptionEnd

AT_ONCE: Final = 16  # preemptions whose calls are in flight; namespaces take turns
ADOPT_PERIOD: Final = 30.0  # seconds between two looks for nominations that this process did not make

log = logs.get("preemption")


class PreemptionExecutor:
    """Starts the calls of a preemption when the loop submits it. Never blocks the loop. `api` sends nothing while this
    process does not lead. `profiles` are the rules by profile."""

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        api: Api,
        ledger: Ledger,
        queue: SchedulingQueue,
        waiting: WaitingPods,
        profiles: Mapping[str, ProfileRules],
        *,
        recorder: EventRecorder,
        status_patcher: StatusPatcher[Pod],
        metrics: Metrics,
        clock: Clock,
        wakeup: Wakeup,
    ) -> None:
        self._calls, self._ledger, self._queue, self._waiting = EvictionCalls(api, clock), ledger, queue, waiting
        self.rules = PreemptionRules(profiles, ledger, waiting, clock)
        self._recorder, self._metrics, self._clock, self._wakeup = recorder, metrics, clock, wakeup
        self._status_patcher, self._marks = status_patcher, VictimMarks(self._calls, ledger)
        self._executions: dict[int, Execution] = {}  # by the preemption's number
        self._evictions: dict[str, asyncio.Future[None]] = {}  # under way, by the victim's UID
        self._accepted: dict[str, str] = {}  # keys of pods that were evicted, by UID, while the ledger has them
        self._adopt_at = 0.0
        self._slots = FairSlots(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def idle(self) -> bool:
        """Returns whether no call is under way."""
        return not self._tasks and self._marks.idle

    @property
    def due(self) -> float:
        """The time of the next deadline, or infinity."""
        return self._ledger.preemptions.next_deadline

    async def run(self) -> None:
        """Runs until cancelled, and then cancels what is under way."""
        try:
            if self.adopt():
                self.rules.restarted()
            await asyncio.Event().wait()
        finally:
            self._marks.stop()
            for task in self._tasks:
                task.cancel()

    # --- decisions ------------------------------------------------------------------------------------------------

    def spared(self, job: Job) -> frozenset[str]:
        """Returns the UIDs of pods that must not be victims of this job now."""
        return self.rules.spared(job.key)

    def review(self, job: Job, decision: Decision) -> Decision:
        """Returns a refused decision, without its preemption if that may not begin now.

        If the job was refused although all victims are gone, their eviction did not help, unless others share its
        nodes and their victims are still there.
        """
        pending = self._ledger.preemptions.get(job.key)
        refused = decision.code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE) and not decision.diagnosis.held_back
        if pending is not None and pending.ready and not pending.adopted and refused:
            if waits_for_others(self._ledger, pending):
                return _without_preemption(decision, "other pods have to leave its nodes as well")
            self._end(pending, PreemptionEnd.FAILED)
            self._record_ends()
        if refused and decision.preemption is None:
            self.rules.refused(job)
        problem = self.rules.problem(job, decision.preemption) if decision.preemption is not None else ""
        if not problem:
            return decision
        return _without_preemption(decision, problem)

    def waits(self, job: Job) -> bool:
        """Returns whether victims of this job are still there, or it waits for the end of another preemption."""
        pending = self._ledger.preemptions.get(job.key)
        return self.rules.is_declined(job) if pending is None else not pending.ready

    def submit(self, job: Job, preemption: Preemption) -> None:
        """Enters a preemption into the ledger, which keeps the capacity for the job from now on, and starts its
        calls."""
        now, pods = self._clock.now(), {pod.key: pod for pod in job.pods}
        members = tuple((pods[each.pod], each.node) for each in preemption.nominations if each.pod in pods)
        if not members:
            return
        victims = self.rules.victims(preemption)
        protected = {record.uid for record in victims if self._is_protected(record)}
        pending = self._ledger.begin_preemption(
            job.key,
            members,
            {record.uid for record in victims},
            minimum=min(job.minimum, len(members)),
            began=now,
            deadline=now + self.rules.of(job.profile).fence,
        )
        execution = self._executions[pending.number] = Execution(
            pending,
            members,
            tuple(each for each in victims if each.uid in protected),
            tuple(each for each in victims if each.uid not in protected),
            preemption.evicts,
            preemption.pdb_violations > 0,
            self.rules.unit_of_job(job),
        )
        self._metrics.preempted(len(victims))
        self._metrics.queues.taken_back(preemption.taken_back)
        for pod, _ in members:
            self._status_patcher.keep_back(pod.metadata.uid)
        self._start(self._execute(execution))

    def placed(self, job: Job, decision: Decision) -> None:
        """Ends preemptions of lower priority that do not fit any more beside the pods that were just placed."""
        preemptions = self._ledger.preemptions
        for placement in decision.placements if len(preemptions) else ():
            for waiting in self._ledger.nominees(placement.node):
                pending = preemptions.of_member(waiting.uid) if waiting.priority < job.priority else None
                if pending is not None and not still_fits(self._ledger, placement.node, pending.priority):
                    self._end(pending, PreemptionEnd.OUTRANKED)

    def clear_nominations(self, job: Job) -> None:
        """Clears the nominations of a job for which no preemption helps any more."""
        for pod in job.pods:
            if pod.status.nominated_node_name:
                self._start(self._clear(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid))

    # --- time -----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Handles what became ready, ended, or passed its deadline. Called before each burst of decisions."""
        preemptions, now = self._ledger.preemptions, self._clock.now()
        self._marks.write()
        if now >= self._adopt_at:
            self.adopt()
        for key in self.rules.take_helped():
            self._queue.activate(key)
        if not len(preemptions) and not preemptions.any_news:
            return
        for pending in preemptions.past_deadline(now):
            self._end(pending, PreemptionEnd.EXPIRED)
        for key in preemptions.take_ready():
            self._queue.activate(key)
        self._record_ends()

    def adopt(self) -> bool:
        """Takes over nominations that this process did not make, of jobs that wait here: after a restart, say. They are
        kept until the deadline. Returns whether victims of an earlier process are still terminating."""
        found: dict[str, list[tuple[Pod, str]]] = {}
        self._adopt_at = self._clock.now() + ADOPT_PERIOD
        self._accepted = {uid: key for uid, key in self._accepted.items() if self._has(key, uid)}
        for node in self._ledger.nominated_nodes:
            for record in self._ledger.nominees(node):
                job = self._queue.job(self._waiting.job_key(record.key))
                if job is None or self._ledger.preemptions.of_member(record.uid) is not None:
                    continue
                pod = next((each for each in job.pods if each.metadata.uid == record.uid), None)
                if pod is not None and not self.rules.of(job.profile).upstream:
                    found.setdefault(job.key, []).append((pod, node))
        adopted = [self._adopt(key, tuple(members)) for key, members in found.items()]
        return any(adopted)

    def _adopt(self, key: str, members: tuple[tuple[Pod, str], ...]) -> bool:
        if self._ledger.preemptions.get(key) is not None:
            return False  # of its other members; these are kept as long as the API server nominates them
        now, priority = self._clock.now(), max(pod.spec.priority for pod, _ in members)
        there = [each for node in {node for _, node in members} for each in self._ledger.on_node(node)]
        victims = {each.uid for each in there if each.terminating and each.priority <= priority}
        fence = self.rules.of(members[0][0].spec.scheduler_name).fence
        pending = self._ledger.begin_preemption(key, members, victims, began=now, deadline=now + fence)
        pending.adopted, pending.evicted = not victims, set(victims)
        self._executions[pending.number] = Execution(pending, members)
        return bool(victims)

    def _record_ends(self) -> None:
        for ended in self._ledger.preemptions.take_ended():
            execution = self._executions.pop(ended.preemption.number, None)
            self.rules.ended(ended, "" if execution is None else execution.profile)
            self._metrics.preemption_ended(ended.end.value)
            self._queue.victims_given_up(ended.preemption.job)
            while declined := self.rules.take_declined():
                if self._queue.activate(declined) is not QueueState.GONE:
                    break

    def _end(self, pending: PendingPreemption, how: PreemptionEnd) -> None:
        """Ends a preemption, and gives up the capacity that it kept. kube-scheduler leaves the nomination, unless the
        pod is outranked."""
        execution = self._executions[pending.number]
        pods = list(self._latest(execution.members))
        self._ledger.end_preemption(pending.job, how, pods)
        if how is PreemptionEnd.OUTRANKED or not self.rules.of(execution.profile).upstream:
            nodes = {member.key: node for member, node in execution.members}
            for pod in pods:
                self._queue.on_event(nomination_ended(pod, nodes[pod.key]))
                self._start(self._clear(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid))
        self._wakeup.set()

    def _latest(self, members: Iterable[tuple[Pod, str]]) -> Iterable[Pod]:
        """Yields the members that still wait, as they were last seen."""
        for member, _ in members:
            if member.key not in self._waiting or member.key in self._ledger.pods:
                continue
            single = self._queue.job(member.key)
            pod = self._waiting.latest_pod(member if single is None else single.pods[0])
            if pod.metadata.uid == member.metadata.uid:
                yield pod

    # --- calls ----------------------------------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _execute(self, execution: Execution) -> None:
        pending, turn = execution.pending, CallTurn(self._slots, namespace_of(execution.pending.job))
        try:
            await turn.begin()
            await in_portions(execution.members, lambda member: self._nominate(pending, *member))
            await self._outrank(execution)
            for victim in execution.protected:
                await self._evict(execution, victim, turn)
            await in_portions(execution.others, lambda victim: self._evict(execution, victim, turn))
        except BudgetRefusal as problem:
            log.warning("A disruption budget stops a preemption", job=pending.job, why=str(problem))
            self._fail(pending)
        except Exception as problem:  # all errors: none may end the process
            log.error("Preemption failed; trying the job again", problem, job=pending.job)  # noqa: PLE1205 - our own log
            self._fail(pending)
        finally:
            turn.end()
            for pod, _ in execution.members:
                self._status_patcher.send_kept(pod.metadata.uid)
            self._wakeup.set()

    def _fail(self, pending: PendingPreemption) -> None:
        if self._ledger.preemptions.is_current(pending):
            self._end(pending, PreemptionEnd.FAILED)

    async def _nominate(self, pending: PendingPreemption, pod: Pod, node: str) -> None:
        meta = pod.metadata
        if self._ledger.preemptions.is_current(pending):
            with self._status_patcher.carried(meta.uid) as condition:
                await self._calls.nominate(meta.namespace, meta.name, meta.uid, node, condition)

    async def _outrank(self, execution: Execution) -> None:
        """Ends preemptions of lower priority on the same nodes, since they may not fit there any more."""
        pending, preemptions = execution.pending, self._ledger.preemptions
        for node in dict.fromkeys(node for _, node in execution.members):
            for waiting in self._ledger.nominees(node):
                if waiting.priority >= pending.priority or not preemptions.is_current(pending):
                    continue
                other = preemptions.of_member(waiting.uid)
                if other is None:
                    await self._calls.nominate(waiting.namespace, waiting.name, waiting.uid, "")
                else:
                    self._end(other, PreemptionEnd.OUTRANKED)

    async def _evict(self, execution: Execution, victim: PodRecord, turn: CallTurn) -> None:
        """Ends a victim, unless the preemption is over or would not help any more: then nothing more is evicted."""
        pending = execution.pending
        if not self._ledger.preemptions.is_current(pending):
            return
        if not still_fits(self._ledger, victim.node, pending.priority):
            self._end(pending, PreemptionEnd.OUTRANKED)
            return
        profile, preemptor = execution.profile, execution.preemptor_on(victim.node)
        try:
            if not await self._evict_once(execution, victim, turn):
                return
        except BudgetRefusal:
            self.rules.budget_refused(pending, victim)
            raise
        self.rules.evicted(pending, victim, execution.preemptor, profile)
        log.v(2, "Preemptor Pod preempted victim Pod", preemptor=preemptor, victim=victim.key, node=victim.node)
        self._recorder.record(events.preempted(victim, preemptor.metadata.uid, victim.node), profile)

    async def _evict_once(self, execution: Execution, victim: PodRecord, turn: CallTurn) -> bool:
        """Returns whether the victim was evicted here. Two jobs may need the end of one pod: the second waits for the
        calls of the first, and evicts the pod only if the first does not want that any more."""
        while (other := self._evictions.get(victim.uid)) is not None:
            await asyncio.shield(other)
        if not self._is_wanted(execution.pending, victim):
            return False
        result = self._evictions[victim.uid] = asyncio.get_running_loop().create_future()
        try:
            if execution.evicts and not (execution.violates and self._is_protected(victim)):
                wanted = partial(self._is_wanted, execution.pending, victim)
                evicted = await self._calls.evict(victim, wanted, turn.pause)
                if evicted:
                    self._marks.evicted(victim, execution.profile)
            else:
                await self._calls.delete(victim, execution.profile)
                evicted = True
            if evicted:
                self._accepted[victim.uid] = victim.key
            return evicted
        finally:
            del self._evictions[victim.uid]
            result.set_result(None)

    async def _clear(self, namespace: str, name: str, uid: str) -> None:
        try:
            await self._calls.nominate(namespace, name, uid, "")
        except Exception as problem:
            log.error("Cannot clear a nomination", problem, pod=f"{namespace}/{name}")  # noqa: PLE1205 - our own log

    def _is_wanted(self, pending: PendingPreemption, victim: PodRecord) -> bool:
        return self._ledger.preemptions.is_current(pending) and self._is_running(victim)

    def _is_running(self, victim: PodRecord) -> bool:
        """Whether this very pod still counts on its node, and was neither evicted here nor is terminating."""
        record = self._ledger.pods.get(victim.key)
        running = record is not None and record.uid == victim.uid and not record.terminating
        return running and victim.uid not in self._accepted

    def _has(self, key: str, uid: str) -> bool:
        record = self._ledger.pods.get(key)
        return record is not None and record.uid == uid

    def _is_protected(self, victim: PodRecord) -> bool:
        return self._ledger.disruption_budgets.protects(victim)


def _without_preemption(decision: Decision, problem: str) -> Decision:
    diagnosis = msgspec.structs.replace(decision.diagnosis, post_filter=f"preemption: {problem}.")
    return msgspec.structs.replace(decision, diagnosis=diagnosis, preemption=None, clears_nomination=False, alone=True)
