"""Asking one rule about one pod, and a whole scheduler about several, on a cluster with storage."""

from collections.abc import Iterable
from typing import Any

from kubenexus.api.core import Node, Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.framework.verdict import code_of
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.harness import a_ledger
from tests.volumes.builders import only, told

SKIPPED = "not concerned"


def cluster(nodes: Iterable[Node], *storage: Any, pods: Iterable[Pod] = ()) -> Ledger:
    return told(a_ledger(nodes, pods), *storage)


def says(rule: str, pod: Pod, ledger: Ledger) -> str | dict[str, str]:
    """Why each node is refused ("" if it is not); one text if the pod is refused as a whole, or not looked at."""
    columns = ledger.nodes
    table = ClassCache(only(rule)).lookup(pod, columns).table
    if table.rejection is not None:
        return f"{table.rejection.code.label}: {', '.join(table.rejection.reasons)}"
    if not table.filters:
        return SKIPPED
    said = {}
    for name, row in columns.row_of.items():
        reasons = table.filters[0].reasons.read(table.filters[0].at(row))
        texts = ", ".join(sorted(reason.text for reason in reasons))
        said[name] = f"{code_of(reasons).label}: {texts}" if reasons else ""
    return said


def allowed(rule: str, pod: Pod, ledger: Ledger) -> list[str]:
    """The nodes a rule accepts."""
    said = says(rule, pod, ledger)
    if isinstance(said, str):
        return sorted(ledger.nodes.row_of) if said == SKIPPED else []
    return sorted(name for name, reason in said.items() if not reason)


def points(pod: Pod, ledger: Ledger, rules: ProfilePlugins | None = None) -> dict[str, int]:
    """VolumeBinding's scores."""
    (score,) = ClassCache(rules or only("VolumeBinding")).lookup(pod, ledger.nodes).table.scores
    return {name: score.at(row) for name, row in ledger.nodes.row_of.items()}


class Scheduler:
    """A whole one, with all rules."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.planner = Planner(profile_plugins())

    def decide(self, *pods: Pod, minimum: int | None = None) -> Decision:
        job = Job(pods[0].key, pods, len(pods) if minimum is None else minimum)
        return self.planner.decide(job, self.ledger.snapshot(), 0.0)

    def place(self, *pods: Pod) -> Decision:
        decision = self.decide(*pods)
        if decision.placed:
            commit(decision, Job(pods[0].key, pods, len(pods)), self.ledger, 0.0)
        return decision


def picked(decision: Decision) -> list[list[str]]:
    """For each pod that was placed, the volumes of its claims; "" is one that is to be made."""
    return [[pick.volume for pick in placement.assignment.volumes] for placement in decision.placements]
