"""Makes the model of a queue from the columns: what is free, which pods end, and what the first jobs ask for."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import numpy as np

from kubenexus.api.gangs.levels import TopologyLevel
from kubenexus.api.runtimes import DeclaredRuntime, WorkloadIdentity, declared_runtime, workload_identity
from kubenexus.base.errors import KubeNexusError
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.job import Job
from kubenexus.plan.backfill.capacity_over_time import open_rows
from kubenexus.plan.eta.queue_limits import QueueLimits
from kubenexus.plan.eta.queue_model import NO_LEVEL, Members, ModelJob, QueueModel, RunningJob, RunningPod
from kubenexus.plan.gang.gang_limits import GangLimitError
from kubenexus.plan.gang.member_classes import MemberClass, allocatable_rows, group_members, member_amounts
from kubenexus.plan.gang.multi_class.packing_problem import BUDGET, WorkBudget
from kubenexus.plan.gang.reservation import MAX_CLASSES
from kubenexus.plan.gang.topology import candidate_levels
from kubenexus.plugins.devices.request import requests_of
from kubenexus.state.devices.hardware_tiers import hardware_tiers
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord
from kubenexus.state.runtimes.memory import KnownRuns, RuntimeMemory
from kubenexus.state.view import Nodes

MAX_PODS: Final = 5000  # that run: the first to end, then those whose end is not known
MAX_CELLS: Final = 30 * BUDGET  # for the classes of all jobs (`plan.gang.gang_limits`): 3 s
TOO_MUCH_WORK: Final = "the jobs before it are too many different ones"
_WHOLE: Final = 1000


GangOf = Callable[[PodRecord], str]


class Workload(NamedTuple):
    """Whose runs tell how long something runs, and by what name it is drawn. No runs: nothing is known. `is_typical`:
    nothing is known of this workload, so the runs are those of others."""

    name: str
    identity: str
    runs: KnownRuns | None
    elapsed: float = 0.0
    is_typical: bool = False
    is_declared: bool = False


class QueueSnapshot(NamedTuple):
    """A model, the workload of each running and each waiting job in it, and the jobs that are not in it, by the place
    in the order, each with the reason."""

    model: QueueModel
    running: list[Workload]
    waiting: list[Workload]
    left_out: dict[int, str]


class History(NamedTuple):
    """Earlier runs. `typical`: of the whole cluster; `untried`: how many times its declared runtime a workload takes of
    which no run is known."""

    memory: RuntimeMemory
    typical: KnownRuns | None
    untried: tuple[float, ...]

    @classmethod
    def of(cls, columns: NodeColumns, now: float) -> "History":
        ends = columns.pods.expected_ends
        return cls(ends.memory, ends.memory.typical(), ends.untried(now))

    def runs(self, identity: WorkloadIdentity, declared: DeclaredRuntime | None) -> KnownRuns | None:
        """Returns the earlier runs of a workload, None if nothing is known."""
        return self.memory.runs(identity, declared, self.untried)


class PodDemand(NamedTuple):
    """What a pod of a kind takes of resources and of cards (a number, and thousandths of each), and its rows."""

    amounts: dict[str, int]
    cards: tuple[tuple[int, int], ...]
    rows: Any


class _Kinds:
    """The kinds of pods, each once."""

    def __init__(self, columns: NodeColumns) -> None:
        self._columns, self._view = columns, Nodes(columns)
        self._index: dict[tuple[int, frozenset[str] | None], int] = {}
        self._tables: list[Any] = []  # held, so that no other table gets the identity of one
        self._alike: dict[Any, int] = {}
        self.demands: list[PodDemand] = []

    def of(self, member_class: MemberClass) -> int:
        key = (id(member_class.classified.table), member_class.classified.node_names)
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = self._like(member_class)
            self._tables.append(member_class.classified.table)
        return found

    def _like(self, member_class: MemberClass) -> int:
        """Returns the kind with the same demand and the same rows: classes differ by more than that."""
        amounts, rows = member_amounts(member_class, self._columns), open_rows(member_class, self._columns)
        cards = tuple([(each.number, each.share) for each in requests_of(member_class.classified.table.pod)[:1]])
        for name, amount in amounts.items():
            rows = rows & (allocatable_rows(name, self._view) >= amount)
        if not rows.any():  # no node is large enough: 500 jobs may ask for a hundred resources each that no node has
            amounts, cards = {}, ()
        key = (tuple(sorted(amounts.items())), cards, rows.tobytes())
        found = self._alike.get(key)
        if found is None:
            found = self._alike[key] = len(self.demands)
            self.demands.append(PodDemand(amounts, cards, rows))
        return found


class ProfileParts(Protocol):
    """What is needed of a profile's planner."""

    class_cache: ClassCache
    levels: Sequence[TopologyLevel]


class QueueSnapshots:
    """Makes snapshots. `planners` are by profile. `gang_of` returns the name under which pods end together."""

    def __init__(self, planners: Mapping[str, ProfileParts], gang_of: GangOf | None = None) -> None:
        self._planners = planners
        self._gang_of = gang_of or _declared_gang

    def take(
        self, jobs: Sequence[Job], columns: NodeColumns, now: float, limits: QueueLimits | None = None
    ) -> QueueSnapshot:
        """Returns the model of the cluster and of these jobs, which are in the order of the queue."""
        limits = limits or QueueLimits(None)
        kinds, levels, left_out = _Kinds(columns), list[Any](), dict[int, str]()
        found, waiting = list[ModelJob](), list[Workload]()
        history = History.of(columns, now)
        budget = WorkBudget(left=MAX_CELLS)
        for place, job in enumerate(jobs):
            try:
                made = self._job(place, job, kinds, levels, columns, budget)
                uses, tiers = limits.of_job(job)
            except KubeNexusError as error:
                left_out[place] = str(error)
                continue
            found.append(msgspec.structs.replace(made, uses=uses, tiers=tiers) if uses or tiers else made)
            waiting.append(_waiting_workload(job, history))
        arrays = _Arrays(kinds.demands, columns)
        running, workloads = self._running(arrays, columns, now, limits, history)
        model = arrays.model(tuple(found), tuple(running), tuple(levels), tuple(limits.left))
        return QueueSnapshot(model, workloads, waiting, left_out)

    def _job(
        self, place: int, job: Job, kinds: _Kinds, levels: list[Any], columns: NodeColumns, budget: WorkBudget
    ) -> ModelJob:
        planner = self._planners[job.profile]
        classes = _classes(job, planner.class_cache, columns, budget)
        if len(classes) > MAX_CLASSES:
            raise KubeNexusError(f"its members are of more than {MAX_CLASSES} classes")
        single = len(classes) == 1
        members = tuple([Members(kinds.of(each), job.minimum if single else each.size, each.size) for each in classes])
        level = NO_LEVEL
        if job.topology.required and len(job.pods) > 1:
            level = len(levels)
            levels.append(candidate_levels(job.topology, (), planner.levels, columns)[-1].codes)
        return ModelJob(members, (float(place),), _believed(job, columns), level)

    def _running(
        self, arrays: "_Arrays", columns: NodeColumns, now: float, limits: QueueLimits, history: "History"
    ) -> tuple[list[RunningJob], list[Workload]]:
        groups: dict[str, list[tuple[PodRecord, RunningPod | None]]] = {}
        for record, pod in arrays.ending_pods(columns, now, everywhere=bool(limits.left)):
            groups.setdefault(self._gang_of(record) or record.uid, []).append((record, pod))
        running, workloads = list[RunningJob](), list[Workload]()
        ends = columns.pods.expected_ends
        for name, members in groups.items():
            first = members[0][0]
            since = min(float(ends.since[record.slot]) for record, _ in members)
            since = min(since, now)  # another machine's clock may be ahead
            believed = max(float(ends.runtime[record.slot]) for record, _ in members)
            known = None if first.identity is None else history.runs(first.identity, first.declared)
            runs = known or history.typical
            if first.terminating:
                runs, believed = KnownRuns((1.0,), limit=0.0), 1.0
            uses, pods = limits.of_pods(record for record, _ in members), [pod for _, pod in members if pod is not None]
            if not pods and not uses:
                continue
            running.append(RunningJob(tuple(pods), since, believed, uses))
            elapsed, declared = max(now - since, 0.0), first.declared is not None
            workloads.append(Workload(name, str(first.identity), runs, elapsed, known is None, declared))
        return running, workloads


def _classes(job: Job, class_cache: ClassCache, columns: NodeColumns, budget: WorkBudget) -> list[MemberClass]:
    """Returns the classes of a job. Raises KubeNexusError if it has too many, or all jobs together have."""
    if budget.left <= 0:
        raise KubeNexusError(TOO_MUCH_WORK)
    try:
        return group_members(job.pods, class_cache, columns, budget)
    except GangLimitError:
        if budget.left <= 0:
            raise KubeNexusError(TOO_MUCH_WORK) from None
        raise


def _declared_gang(record: PodRecord) -> str:
    return record.traits.gang.key if record.traits.gang is not None else ""


def _waiting_workload(job: Job, history: History) -> Workload:
    """Returns the runs of the member that takes longest in the median."""
    best: Workload | None = None
    longest = -1.0
    for pod in job.pods[:64]:
        identity, declared = workload_identity(pod), declared_runtime(pod)
        runs = history.runs(identity, declared)
        if runs is None:
            return Workload(job.key, str(identity), history.typical, is_typical=True)
        middle = runs.seconds[len(runs.seconds) // 2]
        if middle > longest:
            best, longest = Workload(job.key, str(identity), runs), middle
    return best or Workload(job.key, "", None)


def _believed(job: Job, columns: NodeColumns) -> float:
    longest = 0.0
    for pod in job.pods[:64]:
        estimate = columns.pods.expected_ends.estimate(pod)
        if estimate is None:
            return math.inf
        longest = max(longest, estimate.high)
    return longest


class _Arrays:
    """The arrays of a model. Rows that no kind may go to are left out."""

    def __init__(self, demands: list[PodDemand], columns: NodeColumns) -> None:
        self._demands, self._view = demands, Nodes(columns)
        self._names = sorted({name for each in demands for name in each.amounts})
        every = np.array([each.rows for each in demands], np.bool_).reshape(len(demands), columns.size)
        self.rows = np.flatnonzero(every.any(axis=0))
        self._place = np.full(columns.size, -1, np.int64)
        self._place[self.rows] = np.arange(len(self.rows))
        self._open = every[:, self.rows]
        amounts = [[each.amounts.get(name, 0) for name in self._names] for each in demands]
        self._demand = np.array(amounts, np.int64).reshape(len(demands), len(self._names))
        self._devices = columns.devices

    def ending_pods(
        self, columns: NodeColumns, now: float, *, everywhere: bool = False
    ) -> list[tuple[PodRecord, RunningPod | None]]:
        """Returns the pods that may end by themselves, on rows of the model. `everywhere`: also on other rows, None for
        what they free there: they use limits."""
        pods = columns.pods
        there = pods.rows
        ends = pods.with_terminating(pods.expected_ends.ends(now), now)
        slots = np.flatnonzero((there >= 0) & ((self._place[there] >= 0) | everywhere))
        slots = slots[np.argsort(ends[slots], kind="stable")][:MAX_PODS]
        kinds = pods.victims.kind[slots]
        amounts = (
            np.stack([pods.victims.kinds.amounts(name)[kinds] for name in self._names], axis=1).astype(np.int64)
            if self._names
            else np.zeros((len(slots), 0), np.int64)
        )
        found: list[tuple[PodRecord, RunningPod | None]] = []
        for place, slot in enumerate(slots.tolist()):
            record, row = pods.victims.records[slot], int(there[slot])
            if record is not None and (record.identity is not None or record.terminating):
                here = int(self._place[row])
                pod = RunningPod(here, amounts[place], self._cards(record, row)) if here >= 0 else None
                found.append((record, pod))
        return found

    def _cards(self, record: PodRecord, row: int) -> tuple[tuple[int, int], ...]:
        if not record.device_shares:
            return ()
        slots = self._devices.of_row(row).slots
        return tuple([(slots[each.device], each.share) for each in record.device_shares if each.device in slots])

    def model(
        self,
        jobs: tuple[ModelJob, ...],
        running: tuple[RunningJob, ...],
        levels: tuple[Any, ...],
        limits: tuple[int, ...] = (),
    ) -> QueueModel:
        free = [(allocatable_rows(name, self._view) - self._view.used(name))[self.rows] for name in self._names]
        cards = [each.cards[0] if each.cards else (0, 0) for each in self._demands]
        return QueueModel(
            free=np.stack(free, axis=1).astype(np.int64) if free else np.zeros((len(self.rows), 0), np.int64),
            demand=self._demand,
            open=self._open,
            cards=self._devices.share[:, self.rows].T.astype(np.int64),
            card_number=np.array([number for number, _ in cards], np.int64),
            card_share=np.array([share or _WHOLE for _, share in cards], np.int64),
            jobs=jobs,
            running=running,
            levels=tuple([codes[self.rows] for codes in levels]),
            limits=limits,
            tiers=hardware_tiers(self._view)[self.rows] if limits else None,
        )
