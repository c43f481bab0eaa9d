"""Groups the members of a gang by pod class, and counts how many of each class every node takes."""

from collections.abc import Hashable, Mapping
from typing import Any, Protocol, TypeGuard

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import BoolColumn, IntColumn, any_true
from kubenexus.cycle.class_cache import ClassCache, ClassifiedPod
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.cycle.plugin_output import lowered
from kubenexus.framework.extension_points import Capacity, Plugin
from kubenexus.framework.job import SINGLE_POD_VIEW, JobView
from kubenexus.framework.member_constraints import ConstrainsMembers, MemberConstraint, MemberRelation, bound
from kubenexus.framework.plugin_results import call_plugin, checked_amounts
from kubenexus.framework.pod_class import PodClass
from kubenexus.plan.gang import gang_limits
from kubenexus.plan.gang.class_matcher import ClassMatcher
from kubenexus.plan.gang.multi_class.packing_problem import WorkBudget
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

UNLIMITED = 1 << 31  # more members than any gang has
_ANY_AMOUNT = 1 << 60


class MeasuresPods(Plugin, Protocol):
    def amounts(self, pod: PodClass) -> Mapping[str, int]:
        """Called by the gang planner. Returns what a pod takes of each resource.

        For a filter that rejects rows only for lack of these resources, and of host ports: so the planner can count
        pods of several classes together. If a filter with `capacity` lacks this method, the planner places the members
        of a gang of several classes one by one.
        """


class MemberClass(msgspec.Struct, gc=False):
    """Members of one class, which can replace each other. `classified` is one of `pods`.

    `capacity` is how many more of them each row takes if no other class is placed.
    """

    classified: ClassifiedPod
    pods: list[Pod]
    capacity: Any = None

    @property
    def size(self) -> int:
        return len(self.pods)

    def limiting_plugins(self, nodes: NodeColumns) -> set[str]:
        """Returns the plugins that limit where the members go; their registered events may help."""
        if self.classified.rejection is not None:
            return {self.classified.rejection.plugin, *self.classified.node_names_by}
        alive = nodes.alive[: nodes.size]
        found = {
            column.plugin.name
            for column in self.classified.table.filters
            if has_capacity_point(column.plugin) or _has_constraints(column.plugin) or _refuses(column, alive)
        }
        return found | set(self.classified.node_names_by)


def group_members(
    pods: tuple[Pod, ...],
    class_cache: ClassCache,
    columns: NodeColumns,
    budget: WorkBudget | None = None,
    view: JobView = SINGLE_POD_VIEW,
) -> list[MemberClass]:
    """Returns the members by class, in the order of the first member of each. `view` has the members with a node.

    Raises as `ClassCache.lookup` does, and GangLimitError before it builds any table if the budget does not allow for
    so many classes.
    """
    member_classes: dict[tuple[int, frozenset[str] | None], MemberClass] = {}
    budget, before = budget or WorkBudget(), class_cache.work.reported
    for alike in _by_signature(pods, class_cache, columns, budget):
        classified = class_cache.lookup(alike[0], columns, view)
        member_class = member_classes.get(key := (id(classified.table), classified.node_names))
        if member_class is None:
            member_classes[key] = MemberClass(classified, alike)
        else:
            member_class.pods += alike
    gang_limits.charge_plugins(class_cache.work.reported - before, len(member_classes), budget)
    return list(member_classes.values())


def _by_signature(
    pods: tuple[Pod, ...], class_cache: ClassCache, columns: NodeColumns, budget: WorkBudget
) -> list[list[Pod]]:
    """Groups pods by signature and by the nodes that PinsNodes plugins name."""
    found: dict[tuple[bytes, Hashable], list[Pod]] = {}
    class_matcher, prices = (
        ClassMatcher[list[Pod]](class_cache, columns),
        gang_limits.MemberClassCosts(columns.count, class_cache.profile_plugins.per_node, budget),
    )
    budget.spend(gang_limits.MEMBER * len(pods))
    for pod in pods:
        alike = class_matcher.find(pod)
        if alike is None:
            signature = class_cache.signature(pod, columns)
            prices.sign(signature)
            kind = (signature, _pins(pod, class_cache))
            if kind not in found:
                prices.add(pod, signature)
                found[kind] = []
            alike = found[kind]
            class_matcher.add(pod, alike)
        alike.append(pod)
    return list(found.values())


def _pins(pod: Pod, class_cache: ClassCache) -> Hashable:
    """Returns the results of PinsNodes plugins for this pod. A failure is reported by the lookup of the pod."""
    if pod.spec.affinity is None or not class_cache.profile_plugins.pins:
        return None
    try:
        pins = tuple([plugin.node_names(pod) for plugin in class_cache.profile_plugins.pins])
        hash(pins)
    except Exception:
        return pod.key
    return pins


def count_capacity(member_class: MemberClass, columns: NodeColumns, freely: set[str]) -> None:
    """Sets how many more members of the class each row takes if no other class is placed.

    Rejections by the plugins in `freely` do not count: these change with every member.
    """
    table, view = member_class.classified.table, Nodes(columns)
    if member_class.classified.rejection is not None:
        member_class.capacity = np.zeros(columns.size, np.int64)
        return
    capacity: Any = np.where(_ok(table.filters, columns, freely) if freely else table.feasible, UNLIMITED, 0)
    if member_class.classified.node_names is not None:
        capacity[~view.named(member_class.classified.node_names)] = 0
    for column in table.filters:
        if has_capacity_point(column.plugin):
            capacity = _lowered(column, table.pod, view, capacity)
        elif column.traits.usage:
            np.minimum(capacity, 1, out=capacity)  # the plugin has to be called again after the first member
    member_class.capacity = capacity


def _lowered(column: FilterColumn, pod: PodClass, view: Nodes, capacity: IntColumn) -> IntColumn:
    """Returns the capacity after the plugin lowered it. A plugin that is not built in gets a copy, and is checked."""
    plugin: Any = column.plugin
    if column.traits.trusted:
        call_plugin(plugin, plugin.capacity, pod, view, capacity)
        return capacity
    left = capacity.copy()
    call_plugin(plugin, plugin.capacity, pod, view.locked(), left)
    lowered(capacity, left, plugin.name)
    return left


def _ok(filters: list[FilterColumn], columns: NodeColumns, freely: set[str]) -> BoolColumn:
    ok: BoolColumn = columns.alive[: columns.size] & ~columns.blocked[: columns.size]
    for column in filters:
        if column.bits is not None and column.plugin.name not in freely:
            ok &= column.bits == 0
    return ok


def member_amounts(member_class: MemberClass, columns: NodeColumns) -> dict[str, int]:
    """Returns what a member takes of each resource that a plugin counts; a configuration may ignore some.

    Amounts are capped at one more than any node has, so that sums cannot overflow.
    """
    found: dict[str, int] = {"pods": 1}
    for column in member_class.classified.table.filters:
        if _measures(column.plugin):
            found |= checked_amounts(
                call_plugin(column.plugin, column.plugin.amounts, member_class.classified.table.pod), column.plugin.name
            )
    index, largest = columns.resources.index, columns.resources.max_allocatable
    most = {name: largest[index[name]] + 1 if name in index else 1 for name in found}
    return {name: min(amount, most[name]) for name, amount in found.items() if amount}


def allocatable_rows(resource: str, view: Nodes) -> Any:
    """Returns the allocatable amount on each row; unlimited where device claims provide the resource instead."""
    alloc = view.alloc(resource)
    return np.where(alloc == 0, _ANY_AMOUNT, alloc) if view.is_device_class_resource(resource) else alloc


def member_constraints(member_classes: list[MemberClass], columns: NodeColumns) -> list[MemberConstraint]:
    """Returns how the members limit each other besides the capacity they take; empty: not at all."""
    found: list[MemberConstraint] = []
    peers = (
        [pod for member_class in member_classes for pod in member_class.pods]
        if len(member_classes) > 1
        else [member_class.classified.pod for member_class in member_classes]
    )
    for member_class in member_classes:
        table = member_class.classified.table
        if not all(hasattr(each, "assign_members") for each in table.plugins.assigns) or _takes_more(table.pod):
            found.append(MemberConstraint(MemberRelation.OTHER))
        for column in table.filters:
            plugin = column.plugin
            if _has_constraints(plugin):
                found += bound(call_plugin(plugin, plugin.member_constraints, table.pod, peers, columns), plugin.name)
            elif column.traits.stamped or (column.traits.usage and not _counted(plugin, len(member_classes))):
                found.append(MemberConstraint(MemberRelation.OTHER))
    return found


def _takes_more(pod: PodClass) -> bool:
    """Whether a member takes more of its node than it requests, because its status has more than its spec.

    What it leaves for others is only known when it is placed.
    """
    if pod.footprint.amounts == pod.demand.amounts:
        return False
    asked = dict(pod.demand.amounts)
    return any(amount > asked.get(name, 0) for name, amount in pod.footprint.amounts)


def _counted(plugin: Plugin, classes: int) -> bool:
    """Whether counting is enough to know what members leave of a row for each other."""
    return has_capacity_point(plugin) and (classes == 1 or _measures(plugin))


# Instead of `isinstance`, which is slow with protocols.
def has_capacity_point(plugin: Plugin) -> TypeGuard[Capacity]:
    return hasattr(plugin, "capacity")


def measures_nothing(plugin: Plugin, pod: PodClass) -> bool:
    """Returns whether the plugin refuses rows for other reasons than amounts of resources."""
    return not _measures(plugin) or not call_plugin(plugin, plugin.amounts, pod)


def _measures(plugin: Plugin) -> TypeGuard[MeasuresPods]:
    return hasattr(plugin, "amounts")


def _refuses(column: FilterColumn, alive: BoolColumn) -> bool:
    """Returns whether the plugin refuses a node now. A column also exists where it refused one earlier."""
    return column.bits is not None and any_true((column.bits[: alive.size] != 0) & alive)


def _has_constraints(plugin: Plugin) -> TypeGuard[ConstrainsMembers]:
    return hasattr(plugin, "member_constraints")
