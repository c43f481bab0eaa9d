"""What queues use, as data and as a table, from a dump of the cluster: `kubenexus top queues`."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.resource_names import PODS
from kubenexus.explain.text_table import text_table
from kubenexus.framework.decision import Shortage
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import is_finished
from kubenexus.state.queues.queue_node import GUARANTEED, QueueNode

_NONE = "-"


class ResourceUse(msgspec.Struct, frozen=True, gc=False):
    """What a queue uses of a resource, in scheduler units (cpu in thousandths). `limit` is None if it has none."""

    used: int
    guaranteed: int
    borrowed: int
    limit: int | None = None


class QueueReport(msgspec.Struct, frozen=True):
    """A queue. `share` is the part of its guarantee in use while it is below that (`below_guarantee`), else its
    dominant share beyond the guarantee, divided by its weight. `level` is the number of queues above it."""

    queue: str
    level: int
    weight: int
    share: float
    below_guarantee: bool
    running: int
    waiting: int
    resources: dict[str, ResourceUse]


def queue_reports(ledger: Ledger, pods: Mapping[str, Pod]) -> list[QueueReport]:
    """Returns a report for each queue, each after the one above it. Empty without queues."""
    tree = ledger.queues
    if not tree.is_active:
        return []
    tree.settle()
    tree.refresh_all_shares()
    waiting: dict[str, int] = {}
    for key, pod in pods.items():
        if key not in ledger.pods and not is_finished(pod):
            for node in tree.queue_of(pod.metadata.namespace).path():
                if node.parent is None or node.parent.own is not node:
                    waiting[node.name] = waiting.get(node.name, 0) + 1
    found: list[QueueReport] = []

    def add(node: QueueNode, level: int) -> None:
        found.append(_report(node, level, waiting.get(node.name, 0)))
        for name in sorted(node.children):
            add(node.children[name], level + 1)

    for name in sorted(tree.root.children):
        add(tree.root.children[name], 0)
    return found


def _report(node: QueueNode, level: int, waiting: int) -> QueueReport:
    guarantees = {**node.guaranteed, **node.guaranteed_by_tier}
    names = sorted({*node.used, *guarantees, *node.most} - {PODS}) + [PODS] * (PODS in node.most)
    resources = {}
    for name in names:
        used, guaranteed = node.used.get(name, 0), guarantees.get(name, 0)
        resources[name] = ResourceUse(used, guaranteed, max(0, used - guaranteed), node.most.get(name))
    rank, part = node.current
    return QueueReport(
        node.name, level, node.weight, part, rank == GUARANTEED, node.used.get(PODS, 0), waiting, resources
    )


def report_data(reports: Iterable[QueueReport]) -> Any:
    """Returns the reports for JSON."""
    return {"queues": [msgspec.to_builtins(report) for report in reports]}


def render_table(reports: Iterable[QueueReport]) -> str:
    """Returns the reports as a table with a line for each queue and resource."""
    rows = [["QUEUE", "WEIGHT", "SHARE", "RUNNING", "WAITING", "RESOURCE", "USED", "GUARANTEED", "BORROWED", "LIMIT"]]
    for report in reports:
        rows += _lines(report)
    return "no queues\n" if len(rows) == 1 else "\n".join(text_table(rows)) + "\n"


def _lines(report: QueueReport) -> list[list[str]]:
    share = f"{100 * report.share:.1f}%" + (" of guarantee" if report.below_guarantee else "")
    name = "  " * report.level + report.queue
    first = [name, str(report.weight), share, str(report.running), str(report.waiting)]
    lines = [[resource, *_amounts(resource, use)] for resource, use in report.resources.items()] or [[_NONE] * 5]
    return [[*(first if number == 0 else [""] * len(first)), *line] for number, line in enumerate(lines)]


def _amounts(resource: str, use: ResourceUse) -> list[str]:
    shown = [use.used, use.guaranteed, use.borrowed]
    cells = [_amount(resource, amount) if amount else _NONE for amount in shown]
    return [*cells, _NONE if use.limit is None else _amount(resource, use.limit)]


def _amount(resource: str, amount: int) -> str:
    return Shortage(resource.partition("@")[0], amount).text().partition(" ")[0]
