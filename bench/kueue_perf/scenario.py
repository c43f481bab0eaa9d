"""Reads a scenario of Kueue's performance tests: `generator.yaml` and, beside it, `rangespec.yaml` with its bounds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from kubenexus.api.quantity import NANO, read_quantity

MILLI = 1000


class Workloads(msgspec.Struct, rename="camel"):
    """Workloads of one class. `request` is the CPUs of each pod."""

    class_name: str
    runtime_ms: int
    priority: int
    request: int | str
    pod_count: int = 1
    tas_constraint: str = ""
    tas_level: str = ""


class WorkloadsSet(msgspec.Struct, rename="camel"):
    count: int
    creation_interval_ms: int
    workloads: list[Workloads]


class QueuesSet(msgspec.Struct, rename="camel"):
    class_name: str
    count: int
    nominal_quota: int | str
    borrowing_limit: int | str
    workloads_sets: list[WorkloadsSet]


class Cohorts(msgspec.Struct, rename="camel"):
    class_name: str
    count: int
    queues_sets: list[QueuesSet]


class Level(msgspec.Struct, rename="camel"):
    name: str
    count: int
    node_label: str
    capacity: dict[str, str] = {}


class Topology(msgspec.Struct):
    levels: list[Level] = []


class Scenario(msgspec.Struct):
    cohorts: list[Cohorts]
    topology: Topology = msgspec.field(default_factory=Topology)


class Bounds(NamedTuple):
    """What Kueue's tests allow: seconds in all, the least use of quotas in percent, and by class of workloads the mean
    of the seconds until one is admitted."""

    seconds: float
    least_use: float
    mean_wait: dict[str, float]


class Arrival(NamedTuple):
    """A workload that comes at a time, in seconds."""

    at: float
    name: str
    queue: str
    workload: Workloads


def read_scenario(folder: Path) -> tuple[Scenario, Bounds | None]:
    """Returns the scenario of a folder, and Kueue's bounds if the folder has them."""
    scenario = msgspec.convert(_yaml(folder / "generator.yaml"), Scenario)
    ranges = folder / "rangespec.yaml"
    if not ranges.exists():
        return scenario, None
    given = _yaml(ranges)
    waits = {name: each / MILLI for name, each in given.get("wlClassesMaxAvgTimeToAdmissionMs", {}).items()}
    use = min(given.get("clusterQueueClassesMinUsage", {"": 0.0}).values())
    return scenario, Bounds(given["cmd"]["maxWallMs"] / MILLI, float(use), waits)


def arrivals(scenario: Scenario, part: float = 1.0) -> Iterator[Arrival]:
    """Yields the workloads of all queues, in no order. `part`: how many of each set, one at least."""
    for cohort, queue, queues in queues_of(scenario):
        for s, each in enumerate(queues.workloads_sets):
            for i in range(max(1, round(each.count * part))):
                workload = each.workloads[i % len(each.workloads)]
                at = i * each.creation_interval_ms / MILLI
                yield Arrival(at, f"{cohort}-{queue}-{s}-{i}", f"{cohort}-{queue}", workload)


def queues_of(scenario: Scenario) -> Iterator[tuple[str, str, QueuesSet]]:
    """Yields cohort, queue and settings of each queue."""
    for cohorts in scenario.cohorts:
        for c in range(cohorts.count):
            for queues in cohorts.queues_sets:
                for q in range(queues.count):
                    yield f"{cohorts.class_name}-{c}", f"{queues.class_name}-{q}", queues


def milli_cpu(quantity: int | str) -> int:
    return read_quantity(str(quantity)).nano * MILLI // NANO


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))
