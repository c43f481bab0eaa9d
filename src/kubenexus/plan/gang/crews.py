"""Members sorted into crews: those of one class, which can stand in for each other, and how many each node can take."""

from collections.abc import Hashable, Mapping
from typing import Any, Protocol, TypeGuard

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.numbers import BoolColumn, IntColumn
from kubenexus.cycle.bench import Bench, Member
from kubenexus.cycle.border import lowered
from kubenexus.cycle.columns import FilterColumn
from kubenexus.framework.bonds import Bond, Bonding, Tie, bound
from kubenexus.framework.contract import called, measured
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import Plugin, Room
from kubenexus.plan.gang import limits
from kubenexus.plan.gang.ground import Budget
from kubenexus.plan.gang.kinds import Kinds
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

PLENTY = 1 << 31  # more members than any gang has
_ANY_AMOUNT = 1 << 60


class Measuring(Plugin, Protocol):
    def amounts(self, pod: PodClass) -> Mapping[str, int]:
        """What a pod takes of which resource, from a filter that refuses rows for want of these alone (and of ports):
        so that pods of several classes can be counted together. Where a filter with `room` lacks this, the members of
        a gang of several classes are asked about one by one."""


class Crew(msgspec.Struct, gc=False):
    """`member` stands for all of `pods`. `room` is how many more each row can take, as if they were alone."""

    member: Member
    pods: list[Pod]
    room: Any = None

    @property
    def size(self) -> int:
        return len(self.pods)

    @property
    def refusing(self) -> set[str]:
        """The plugins that limit where its members go: what they wait for may help."""
        if self.member.refused is not None:
            return {self.member.refused.plugin, *self.member.only_by}
        columns = self.member.table.filters
        found = {c.plugin.name for c in columns if c.bits is not None or counts(c.plugin) or _binds(c.plugin)}
        return found | set(self.member.only_by)


def muster(pods: tuple[Pod, ...], bench: Bench, columns: NodeColumns, budget: Budget | None = None) -> list[Crew]:
    """All members, by class, in the order in which the first of each comes. Raises as `Bench.look` does, and
    BeyondLimitError before any table is made if there are more kinds than the budget allows."""
    crews: dict[tuple[int, frozenset[str] | None], Crew] = {}
    for alike in _sorted(pods, bench, columns, budget or Budget()):
        member = bench.look(alike[0], columns)
        crew = crews.get(key := (id(member.table), member.only))
        if crew is None:
            crews[key] = Crew(member, alike)
        else:
            crew.pods += alike
    return list(crews.values())


def _sorted(pods: tuple[Pod, ...], bench: Bench, columns: NodeColumns, budget: Budget) -> list[list[Pod]]:
    """By what they are signed with, and the nodes they are pinned to."""
    found: dict[tuple[bytes, Hashable], list[Pod]] = {}
    kinds, prices = Kinds[list[Pod]](bench, columns), limits.KindPrices(columns.count, budget)
    budget.spend(limits.MEMBER * len(pods))
    for pod in pods:
        alike = kinds.of(pod)
        if alike is None:
            signature = bench.signature(pod, columns)
            prices.sign(signature)
            kind = (signature, _pins(pod, bench))
            if kind not in found:
                prices.add(pod, signature)
                found[kind] = []
            alike = found[kind]
            kinds.add(pod, alike)
        alike.append(pod)
    return list(found.values())


def _pins(pod: Pod, bench: Bench) -> Hashable:
    """What plugins say of this very pod. One that fails says so again when the pod is looked at."""
    if pod.spec.affinity is None or not bench.lineup.pins:
        return None
    try:
        pins = tuple([plugin.pins(pod) for plugin in bench.lineup.pins])
        hash(pins)
    except Exception:
        return pod.key
    return pins


def count_room(crew: Crew, columns: NodeColumns, freely: set[str]) -> None:
    """How many more of the class each row can take, were its members the only ones to come. What the plugins named in
    `freely` have against a row now does not count: that changes with every member."""
    table, view = crew.member.table, Nodes(columns)
    if crew.member.refused is not None:
        crew.room = np.zeros(columns.size, np.int64)
        return
    room: Any = np.where(_ok(table.filters, columns, freely) if freely else table.ok, PLENTY, 0)
    if crew.member.only is not None:
        room[~view.named(crew.member.only)] = 0
    for column in table.filters:
        if counts(column.plugin):
            room = _lowered(column, table.pod, view, room)
        elif column.traits.usage:
            np.minimum(room, 1, out=room)  # the second one is asked about when the first is there
    crew.room = room


def _lowered(column: FilterColumn, pod: PodClass, view: Nodes, room: IntColumn) -> IntColumn:
    """What a filter leaves of the room; one from outside is given a copy, and checked."""
    plugin: Any = column.plugin
    if column.traits.trusted:
        called(plugin, plugin.room, pod, view, room)
        return room
    left = room.copy()
    called(plugin, plugin.room, pod, view.locked(), left)
    lowered(room, left, plugin.name)
    return left


def _ok(filters: list[FilterColumn], columns: NodeColumns, freely: set[str]) -> BoolColumn:
    ok: BoolColumn = columns.alive[: columns.size] & ~columns.fenced[: columns.size]
    for column in filters:
        if column.bits is not None and column.plugin.name not in freely:
            ok &= column.bits == 0
    return ok


def asked_by(crew: Crew, columns: NodeColumns) -> dict[str, int]:
    """What a member takes of each resource that a rule counts; a configuration may have some ignored. Who asks for more
    than any node has may as well ask for one more than that: such numbers can be added up."""
    found: dict[str, int] = {"pods": 1}
    for column in crew.member.table.filters:
        if _measures(column.plugin):
            found |= measured(called(column.plugin, column.plugin.amounts, crew.member.table.pod), column.plugin.name)
    index, largest = columns.resources.index, columns.resources.largest
    most = {name: largest[index[name]] + 1 if name in index else 1 for name in found}
    return {name: min(amount, most[name]) for name, amount in found.items() if amount}


def offered(resource: str, view: Nodes) -> Any:
    """What each row has of a resource, whoever uses it: any amount where claims stand in for it, which others judge."""
    alloc = view.alloc(resource)
    return np.where(alloc == 0, _ANY_AMOUNT, alloc) if view.delegated(resource) else alloc


def bonds(crews: list[Crew], columns: NodeColumns) -> list[Bond]:
    """How the members limit each other, besides the room they take. Empty: not at all."""
    found: list[Bond] = []
    peers = [pod for crew in crews for pod in crew.pods] if len(crews) > 1 else [crew.member.pod for crew in crews]
    for crew in crews:
        table = crew.member.table
        if table.cast.assigns or _takes_more(table.pod):
            found.append(Bond(Tie.OTHER))
        for column in table.filters:
            plugin = column.plugin
            if _binds(plugin):
                found += bound(called(plugin, plugin.bonds, table.pod, peers, columns), plugin.name)
            elif column.traits.stamped or (column.traits.usage and not _counted(plugin, len(crews))):
                found.append(Bond(Tie.OTHER))
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
    return counts(plugin) and (crews == 1 or _measures(plugin))


# What `isinstance` would say, which takes its time with protocols.
def counts(plugin: Plugin) -> TypeGuard[Room]:
    return hasattr(plugin, "room")


def _measures(plugin: Plugin) -> TypeGuard[Measuring]:
    return hasattr(plugin, "amounts")


def _binds(plugin: Plugin) -> TypeGuard[Bonding]:
    return hasattr(plugin, "bonds")
