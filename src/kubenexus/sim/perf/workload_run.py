"""Runs one workload, from the check of its features to its result. Every workload has a simulation and a loop of its
own."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from kubenexus.base.clock import Clock
from kubenexus.base.errors import KubeNexusError
from kubenexus.config import Configuration, load
from kubenexus.framework.profile import Factory
from kubenexus.sim.apiserver.kinds import Registry
from kubenexus.sim.apiserver.optional_kinds import GENERIC_WORKLOAD, POD_GROUP_CLAIMS
from kubenexus.sim.perf.files import Case, InvalidWorkload, PerfWorkload
from kubenexus.sim.perf.ops import AnyOp, CreatePods, CreatePodSets
from kubenexus.sim.perf.params import Params
from kubenexus.sim.perf.required_features import missing, pod_count
from kubenexus.sim.perf.template_cache import TemplateCache
from kubenexus.sim.perf.workload_runner import WorkloadRunner
from kubenexus.sim.virtual import loop
from kubenexus.sim.virtual.decisions import DecisionLog, Write
from kubenexus.sim.virtual.pod_tracker import Placed
from kubenexus.sim.virtual.simulation import Simulation, SimulationOptions, run_scenario

# What kube-scheduler's integration tests disable: pods set their priority as a number, and nodes are ready.
WITHOUT = ("Priority", "TaintNodesByCondition", "StorageObjectInUseProtection")
DEFAULT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
"""


class WorkloadRun(msgspec.Struct, frozen=True):
    """A workload to run."""

    case: Case
    workload: PerfWorkload

    @property
    def name(self) -> str:
        return f"{self.case.name}/{self.workload.name}"

    @property
    def weight(self) -> int:
        """The approximate amount of work: its pods, and one for the start."""
        params = Params(self.workload.params, self.name)
        with contextlib.suppress(InvalidWorkload):  # reported when the workload runs
            return 1 + sum(_pods(each, params) for each in self.case.ops)
        return 1


class Result(msgspec.Struct, frozen=True):
    """`lacking`: why it did not run. `problem`: why it failed. If both are empty, it passed."""

    name: str
    lacking: tuple[str, ...] = ()
    problem: str = ""
    nodes: int = 0
    wanted: int = 0
    got: int = 0
    placed: int = 0
    virtual: float = 0.0
    real: float = 0.0
    fingerprint: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.problem)


class WorkloadFilter(msgspec.Struct, frozen=True):
    """Selects workloads with any of the labels and any of these names. An empty filter selects all."""

    labels: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()

    def chosen(self, cases: list[Case]) -> Iterator[WorkloadRun]:
        for case in cases:
            for workload in case.workloads:
                labels = {*case.labels, *workload.labels}
                if self.labels and not labels.intersection(self.labels):
                    continue
                if self.cases and case.name not in self.cases:
                    continue
                if self.workloads and workload.name not in self.workloads:
                    continue
                yield WorkloadRun(case, workload)


def run(
    trial: WorkloadRun,
    plugins: Mapping[str, Factory],
    *,
    seed: int,
    stopwatch: Clock,
    write: Write | None = None,
    placed: Placed | None = None,
) -> Result:
    """Runs the workload if we have its features. Errors go into the result, so that other workloads still run.

    `write` takes the lines of the decision log. `placed` is called from time to time with the number of newly placed
    pods.
    """
    try:
        lacking = missing(trial.case, trial.workload, TemplateCache(Registry()), plugins)
        configuration = _configuration(trial.case.scheduler_config, plugins)
    except KubeNexusError as error:
        return Result(trial.name, problem=" ".join(str(error).split()))
    if lacking:
        return Result(trial.name, lacking=tuple(lacking))
    log = DecisionLog(write)
    began = stopwatch.now()
    gates = tuple(gate for gate in (GENERIC_WORKLOAD, POD_GROUP_CLAIMS) if _gates(trial).get(gate))
    options = SimulationOptions(seed=seed, without=WITHOUT, gates=gates)
    result = loop.run(_played(trial, configuration, plugins, options, log, placed))
    return msgspec.structs.replace(result, real=stopwatch.now() - began)


async def _played(
    trial: WorkloadRun,
    configuration: Configuration,
    plugins: Mapping[str, Factory],
    options: SimulationOptions,
    log: DecisionLog,
    placed: Placed | None,
) -> Result:
    simulation = Simulation(configuration, plugins, options, log)
    if placed is not None:
        simulation.tracker.told = placed
    player = WorkloadRunner(trial.case, trial.workload, simulation, TemplateCache(simulation.server.core.registry))
    problem = ""
    try:
        await run_scenario(simulation, lambda _: player.play())
    except KubeNexusError as error:
        problem = " ".join(str(error).split())
    waits = player.waits
    return Result(
        trial.name,
        problem=problem or waits.problem,
        nodes=player.nodes,
        wanted=waits.wanted,
        got=waits.got,
        placed=simulation.tracker.placed,
        virtual=simulation.seconds,
        fingerprint=log.fingerprint,
    )


def _pods(op: AnyOp, params: Params) -> int:
    if isinstance(op, CreatePodSets):
        return params.number(op.count, op.count_param) * pod_count(op.create_pods_op, params)
    return pod_count(op, params) if isinstance(op, CreatePods) else 0


def _gates(trial: WorkloadRun) -> dict[str, bool]:
    return {**trial.case.feature_gates, **trial.workload.feature_gates}


def _configuration(file: Path | None, plugins: Mapping[str, Factory]) -> Configuration:
    return load(DEFAULT if file is None else file, plugins)
