"""Members sorted into crews: those of one class, which can stand in for each other, and how many each node can take."""

from collections.abc import Hashable, Mapping
from typing import Any, Protocol, TypeGuard

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.cycle.class_cache import ClassCache, ClassifiedPod
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.cycle.plugin_output import lowered
from kubenexus.framework.extension_points import Capacity, Plugin
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
        """What a pod takes of which resource, from a filter that refuses rows for want of these alone (and of ports):
        so that pods of several classes can be counted together. Where a filter with `room` lacks this, the members of
        a gang of several classes are asked about one by one."""


class MemberClass(msgspec.Struct, gc=False):
    """`classified` stands for all of `pods`. `capacity` is how many more each row can take, as if they were alone."""

    classified: ClassifiedPod
    pods: list[Pod]
    capacity: Any = None

    @property
    def size(self) -> int:
        return len(self.pods)

    @property
    def limiting_plugins(self) -> set[str]:
        """The plugins that limit where its members go: what they wait for may help."""
        if self.classified.rejection is not None:
            return {self.classified.rejection.plugin, *self.classified.node_names_by}
        columns = self.classified.table.filters
        found = {
            c.plugin.name for c in columns if c.bits is not None or has_capacity_point(c.plugin) or _binds(c.plugin)
        }
        return found | set(self.classified.node_names_by)


def group_members(
    pods: tuple[Pod, ...], class_cache: ClassCache, columns: NodeColumns, budget: WorkBudget | None = None
) -> list[MemberClass]:
    """All members, by class, in the order in which the first of each comes. Raises as `ClassCache.lookup` does, and
    GangLimitError before any table is made if there are more kinds than the budget allows."""
    member_classes: dict[tuple[int, frozenset[str] | None], MemberClass] = {}
    for alike in _sorted(pods, class_cache, columns, budget or WorkBudget()):
        classified = class_cache.lookup(alike[0], columns)
        member_class = member_classes.get(key := (id(classified.table), classified.node_names))
        if member_class is None:
            member_classes[key] = MemberClass(classified, alike)
        else:
            member_class.pods += alike
    return list(member_classes.values())


def _sorted(
    pods: tuple[Pod, ...], class_cache: ClassCache, columns: NodeColumns, budget: WorkBudget
) -> list[list[Pod]]:
    """By what they are signed with, and the nodes they are pinned to."""
    found: dict[tuple[bytes, Hashable], list[Pod]] = {}
    class_matcher, prices = (
        ClassMatcher[list[Pod]](class_cache, columns),
        gang_limits.MemberClassCosts(columns.count, budget),
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
    """What plugins say of this very pod. One that fails says so again when the pod is looked at."""
    if pod.spec.affinity is None or not class_cache.profile_plugins.pins:
        return None
    try:
        pins = tuple([plugin.node_names(pod) for plugin in class_cache.profile_plugins.pins])
        hash(pins)
    except Exception:
        return pod.key
    return pins


def count_capacity(member_class: MemberClass, columns: NodeColumns, freely: set[str]) -> None:
    """How many more of the class each row can take, were its members the only ones to come. What the plugins named in
    `freely` have against a row now does not count: that changes with every member."""
    table, view = member_class.classified.table, Nodes(columns)
    if member_class.classified.rejection is not None:
        member_class.capacity = np.zeros(columns.size, np.int64)
        return
    room: Any = np.where(_ok(table.filters, columns, freely) if freely else table.feasible, UNLIMITED, 0)
    if member_class.classified.node_names is not None:
        room[~view.named(member_class.classified.node_names)] = 0
    for column in table.filters:
        if has_capacity_point(column.plugin):
            room = _lowered(column, table.pod, view, room)
        elif column.traits.usage:
            np.minimum(room, 1, out=room)  # the second one is asked about when the first is there
    member_class.capacity = room


def _lowered(column: FilterColumn, pod: PodClass, view: Nodes, capacity: IntColumn) -> IntColumn:
    """What a filter leaves of the room; one from outside is given a copy, and checked."""
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
    """What a member takes of each resource that a rule counts; a configuration may have some ignored. Who asks for more
    than any node has may as well ask for one more than that: such numbers can be added up."""
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
    """What each row has of a resource, whoever uses it: any amount where claims stand in for it, which others judge."""
    alloc = view.alloc(resource)
    return np.where(alloc == 0, _ANY_AMOUNT, alloc) if view.is_device_class_resource(resource) else alloc


def member_constraints(member_classes: list[MemberClass], columns: NodeColumns) -> list[MemberConstraint]:
    """How the members limit each other, besides the room they take. Empty: not at all."""
    found: list[MemberConstraint] = []
    peers = (
        [pod for member_class in member_classes for pod in member_class.pods]
        if len(member_classes) > 1
        else [member_class.classified.pod for member_class in member_classes]
    )
    for member_class in member_classes:
        table = member_class.classified.table
        if table.plugins.assigns or _takes_more(table.pod):
            found.append(MemberConstraint(MemberRelation.OTHER))
        for column in table.filters:
            plugin = column.plugin
            if _binds(plugin):
                found += bound(call_plugin(plugin, plugin.member_constraints, table.pod, peers, columns), plugin.name)
            elif column.traits.stamped or (column.traits.usage and not _counted(plugin, len(member_classes))):
                found.append(MemberConstraint(MemberRelation.OTHER))
    return found


def _takes_more(pod: PodClass) -> bool:
    """Whether a member takes more of its node than it asks for, as one whose status tells of more than its spec does:
    what it leaves to the others is only known when it is there."""
    if pod.footprint.amounts == pod.demand.amounts:
        return False
    asked = dict(pod.demand.amounts)
    return any(amount > asked.get(name, 0) for name, amount in pod.footprint.amounts)


def _counted(plugin: Plugin, crews: int) -> bool:
    """Whether counting tells what members leave of a row to each other."""
    return has_capacity_point(plugin) and (crews == 1 or _measures(plugin))


# What `isinstance` would say, which takes its time with protocols.
def has_capacity_point(plugin: Plugin) -> TypeGuard[Capacity]:
    return hasattr(plugin, "capacity")


def _measures(plugin: Plugin) -> TypeGuard[MeasuresPods]:
    return hasattr(plugin, "amounts")


def _binds(plugin: Plugin) -> TypeGuard[ConstrainsMembers]:
    return hasattr(plugin, "member_constraints")
