"""Changes of the cluster that may make a job start: nodes that accept pods again, larger nodes, more nodes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from kubenexus.api.core import Node, Pod
from kubenexus.api.gangs.levels import topology_level
from kubenexus.api.keys import network
from kubenexus.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.base.errors import Malformed
from kubenexus.cycle.class_table import ClassTable
from kubenexus.explain.counterfactual.job_changes import lasting_taints, of_kubelet, taint_text
from kubenexus.explain.counterfactual.trials import (
    Change,
    Found,
    OutOfTrials,
    Suggestion,
    Trials,
    listed,
    smallest_number,
    smallest_subset,
)
from kubenexus.framework.decision import Decision, GangDiagnosis, Shortage
from kubenexus.framework.job import Job
from kubenexus.plugins.devices.request import FIT as DEVICE_FIT
from kubenexus.plugins.devices.request import TOPOLOGY, VRAM
from kubenexus.plugins.node_resources.fit import NodeResourcesFit
from kubenexus.plugins.node_unschedulable import CORDON, NodeUnschedulable
from kubenexus.plugins.taint_toleration import TaintToleration
from kubenexus.state.view import Nodes

_MEBI = 1 << 20
_MAX_NODES = 64  # nodes that are considered for being used again
_MAX_SETS = 3  # sets of resources for which a node is suggested
_MAX_TEMPLATES = 3
_COUNTING = frozenset((NodeResourcesFit.name, DEVICE_FIT, VRAM, TOPOLOGY))  # plugins that refuse what nodes lack
_NOT_OF_COPIES = frozenset((NodeUnschedulable.name, TaintToleration.name))  # refuse what a copy may not have
replace = msgspec.structs.replace


def usable_nodes(job: Job, trials: Trials) -> list[Found]:
    """The fewest nodes that would have to be uncordoned, or to lose taints about their state."""
    pod = job.pods[0]
    changed: dict[str, Node] = {}
    for name, node in trials.nodes.items():
        taints = lasting_taints(pod, node)
        if taints or node.spec.unschedulable:
            left = [taint for taint in node.spec.taints if taint not in taints]
            changed[name] = replace(node, spec=replace(node.spec, unschedulable=False, taints=left))
    first = _with_capacity_first(job, trials, list(changed))[:_MAX_NODES]
    chosen, minimal = smallest_subset(
        first, lambda names: trials.places(Change(job, tuple(changed[name] for name in names)))
    )
    if not chosen:
        return []
    chosen.sort()
    text = listed(f"node {name} {_usable_text(pod, trials.nodes[name])}" for name in chosen)
    suggestion = Suggestion("node", text, nodes=tuple(chosen), minimal=minimal)
    return [Found(suggestion, Change(job, tuple(changed[name] for name in chosen)))]


def more_capacity(job: Job, trials: Trials, decision: Decision) -> list[Found]:
    """For each set of resources that a node lacks, the node that lacks least of them."""
    found: list[Found] = []
    for lacking, name in _shortages(job, trials, decision):
        if any(set(lacking) >= {each.resource for each in one.suggestion.amounts} for one in found):
            continue
        try:
            better = _enough_on(name, lacking, job, trials)
        except OutOfTrials:
            break  # what was found stays
        found += [] if better is None else [better]
        if len(found) == _MAX_SETS:
            break
    return found


def new_nodes(job: Job, trials: Trials, decision: Decision) -> list[Found]:
    """The fewest empty nodes, alike to one that there is, with which the job starts."""
    for template in _templates(job, trials, decision):

        def works(number: int, template: Node = template) -> bool:
            return trials.places(Change(job, copies_of(template, number)))

        if not works(job.minimum):
            continue
        number, minimal = smallest_number(0, job.minimum, works)
        name, what = template.metadata.name, "is 1 more node" if number == 1 else f"are {number} more nodes"
        text = f"there {what} like {name}, empty{_place(decision)}"
        suggestion = Suggestion("new_nodes", text, nodes=(name,), number=number, minimal=minimal)
        return [Found(suggestion, Change(job, copies_of(template, number)))]
    return []


def _usable_text(pod: Pod, node: Node) -> str:
    taints = lasting_taints(pod, node)
    others = [taint_text(each) for each in taints if each.key != CORDON.key]
    cordoned = node.spec.unschedulable or len(others) < len(taints)
    parts = [*(["is uncordoned"] if cordoned else []), *([f"loses the taint {listed(others)}"] if others else [])]
    return " and ".join(parts)


def _with_capacity_first(job: Job, trials: Trials, names: list[str]) -> list[str]:
    """Returns the nodes with capacity for members first, those for the most members before others."""
    columns = trials.ledger.nodes
    table = _table(job, trials)
    if table is None:
        return sorted(names)
    times = _times(Nodes(columns), _amounts(table))
    return sorted(names, key=lambda name: (-int(times[columns.row_of[name]]), name))


def _table(job: Job, trials: Trials) -> ClassTable | None:
    """Returns the table of the first member; None if it cannot be classified or is refused as a whole."""
    try:
        classified = trials.planner.class_cache.lookup(job.pods[0], trials.ledger.snapshot().nodes)
    except Malformed:
        return None
    return None if classified.rejection is not None else classified.table


def _amounts(table: ClassTable) -> dict[str, int]:
    """Returns what NodeResourcesFit counts of one member; nothing in a profile without it."""
    plugins: Iterable[object] = (each.plugin for each in table.filters)
    fit = next((each for each in plugins if isinstance(each, NodeResourcesFit)), None)
    return {} if fit is None else dict(fit.amounts(table.pod))


def _times(nodes: Nodes, amounts: Mapping[str, int]) -> IntColumn:
    """Returns how many members each row has free amounts for."""
    times = np.full(nodes.width, 1 << 20, np.int64)
    for resource, amount in amounts.items():
        np.minimum(times, np.maximum(nodes.alloc(resource) - nodes.used(resource), 0) // amount, out=times)
    return times


def _accepting(table: ClassTable, trials: Trials, overlooked: frozenset[str] = _COUNTING) -> BoolColumn:
    """Returns the rows that no plugin refuses but those `overlooked`."""
    columns = trials.ledger.nodes
    rows: BoolColumn = columns.alive[: columns.size] & ~columns.blocked[: columns.size]
    for column in table.filters:
        if column.bits is not None and column.plugin.name not in overlooked:
            rows &= column.bits == 0
    return rows


def _domains(rows: IntColumn, trials: Trials, closest: GangDiagnosis) -> list[str]:
    """Returns the domain of each row at the level that the gang must share, "" for none."""
    keys = topology_level(closest.level, trials.planner.levels).keys
    names = trials.ledger.nodes.names
    labels = [trials.nodes[names[row]].metadata.labels if names[row] in trials.nodes else {} for row in rows.tolist()]
    return [next((each[key] for key in keys if key in each), "") for each in labels]


def _missing(rows: IntColumn, times: IntColumn, trials: Trials, decision: Decision) -> tuple[IntColumn, BoolColumn]:
    """Returns for how many more members each row would need capacity, and which rows are in the domain that came
    closest. A gang may also start in another domain, with capacity for the members that do not fit there."""
    closest = decision.gang_diagnosis
    most = 1 if closest is None else max(1, closest.missing)
    missing, inside = np.full(len(rows), most, np.int64), np.ones(len(rows), np.bool_)
    if closest is None or not closest.domain or not len(rows):
        return missing, inside
    names, codes = np.unique(_domains(rows, trials, closest), return_inverse=True)
    fit = np.zeros(len(names), np.int64)
    np.add.at(fit, codes, times)
    missing = np.maximum(closest.needed - fit, 1)[codes]
    inside = (names == closest.domain)[codes]
    missing[inside] = most
    return missing, inside


def _shortages(job: Job, trials: Trials, decision: Decision) -> Iterator[tuple[dict[str, int], str]]:
    """Yields what a node lacks for the members that do not fit, and the node: the fewest resources first, then the
    smallest part of the request, of each set of resources the best two nodes and the best in the closest domain."""
    table = _table(job, trials)
    if table is None:
        return
    columns, amounts = trials.ledger.nodes, _amounts(table)
    rows = np.flatnonzero(_accepting(table, trials))
    nodes = Nodes(columns, rows)
    times = _times(nodes, amounts)
    missing, inside = _missing(rows, times, trials, decision)
    wanted = (times + missing)[:, None] * np.array(list(amounts.values()), np.int64)[None, :]
    free = [nodes.alloc(resource) - nodes.used(resource) for resource in amounts]
    lacking = np.maximum(wanted - np.array(free).T.reshape(wanted.shape), 0)
    units = np.array([_unit(resource) for resource in amounts], np.int64)
    lacking = -(-lacking // units) * units
    share = (lacking / np.array(list(amounts.values()))).max(axis=1, initial=0.0)
    order = np.lexsort((share, np.count_nonzero(lacking, axis=1)))
    seen: Counter[tuple[str, ...]] = Counter()
    closest: set[tuple[str, ...]] = set()
    for i in order.tolist():
        short = {name: int(amount) for name, amount in zip(amounts, lacking[i], strict=True) if amount}
        key = tuple(short)
        seen[key] += 1
        first_inside = inside[i] and key not in closest
        if short and (seen[key] <= 2 or first_inside):
            if inside[i]:
                closest.add(key)
            yield short, columns.names[rows[i]]


def _enough_on(name: str, lacking: dict[str, int], job: Job, trials: Trials) -> Found | None:
    """Returns the least that the node needs more for the job to start; None if as much does not do."""
    node, more, minimal = trials.nodes.get(name), dict(lacking), True
    if node is None or not trials.places(Change(job, (_larger(node, more, trials),))):
        return None
    for resource in list(more):
        unit = _unit(resource)

        def works(number: int, resource: str = resource, unit: int = unit) -> bool:
            return trials.places(Change(job, (_larger(node, {**more, resource: number * unit}, trials),)))

        number, known = smallest_number(-1, more[resource] // unit, works)
        more[resource] = number * unit
        minimal &= known
    amounts = tuple(Shortage(resource, amount) for resource, amount in more.items() if amount)
    text = f"node {name} has {', '.join(each.text() for each in amounts)} more"
    return Found(
        Suggestion("capacity", text, nodes=(name,), amounts=amounts, minimal=minimal),
        Change(job, (_larger(node, more, trials),)),
    )


def _larger(node: Node, more: Mapping[str, int], trials: Trials) -> Node:
    """Returns the node with more of these resources."""
    view = Nodes(trials.ledger.nodes, np.array([trials.ledger.nodes.row_of[node.metadata.name]]))
    amounts = {
        resource: f"{total}m" if resource == CPU else total
        for resource, total in ((each, int(view.alloc(each)[0]) + amount) for each, amount in more.items() if amount)
    }
    allocatable, capacity = {**node.status.allocatable, **amounts}, {**node.status.capacity, **amounts}
    return replace(node, status=replace(node.status, allocatable=allocatable, capacity=capacity))


def _unit(resource: str) -> int:
    """Returns the steps in which an amount is suggested."""
    sized = resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-")
    return _MEBI if sized else 1


def _templates(job: Job, trials: Trials, decision: Decision) -> Iterator[Node]:
    """Yields nodes of which more could help: the most members on an empty one first, each shape once."""
    table = _table(job, trials)
    if table is None:
        return
    columns, amounts = trials.ledger.nodes, _amounts(table)
    rows = np.flatnonzero(_accepting(table, trials, _COUNTING | _NOT_OF_COPIES))
    closest = decision.gang_diagnosis
    if closest is not None and closest.domain:
        rows = rows[np.array([name == closest.domain for name in _domains(rows, trials, closest)], np.bool_)]
    nodes = Nodes(columns, rows)
    times = np.full(len(rows), 1 << 20, np.int64)
    for resource, amount in amounts.items():
        np.minimum(times, nodes.alloc(resource) // amount, out=times)
    seen = set[bytes]()
    for i in np.argsort(-times, kind="stable").tolist():
        node = trials.nodes.get(columns.names[rows[i]])
        if not times[i] or node is None or len(seen) == _MAX_TEMPLATES:
            return
        shape = msgspec.json.encode((node.status.allocatable, _labels(node, "")), order="deterministic")
        if shape not in seen:
            seen.add(shape)
            yield node


def copies_of(template: Node, number: int) -> tuple[Node, ...]:
    """Returns empty nodes like the template, as they join a cluster: not cordoned, and ready."""
    taints = [taint for taint in template.spec.taints if not of_kubelet(taint)]
    copies = []
    for i in range(number):
        name = f"{template.metadata.name}-new-{i}"
        meta = replace(template.metadata, name=name, uid=name, labels=_labels(template, name))
        copies.append(replace(template, metadata=meta, spec=replace(template.spec, unschedulable=False, taints=taints)))
    return tuple(copies)


def _labels(node: Node, name: str) -> dict[str, str]:
    keys = {each.key for each in network.HOSTNAME.spellings}
    return {key: name if key in keys else value for key, value in node.metadata.labels.items()}


def _place(decision: Decision) -> str:
    closest = decision.gang_diagnosis
    return f", in {closest.level} {closest.domain}" if closest is not None and closest.domain else ""
