"""Names the devices of a gang's members, after the planner has counted how many members each row takes."""

from collections.abc import Sequence
from typing import Any

from kubenexus.base.errors import KubeNexusError
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.decision import PodPlacement
from kubenexus.framework.extension_points import AssignMembers
from kubenexus.framework.job import NO_ASSIGNMENT, Assignment
from kubenexus.framework.plugin_results import call_plugin, checked_assignment, raise_contract_error
from kubenexus.framework.verdict import Verdict
from kubenexus.plan.gang.backtracking import member_record
from kubenexus.plan.gang.member_classes import MemberClass
from kubenexus.plan.gang.packing import RowShare
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.transaction import Transaction
from kubenexus.state.view import Nodes


class NotAssignable(KubeNexusError):
    """The members fit by number, but do not all get their devices where they were counted."""


class MemberAssigner:
    """Names what the members of one gang take. Restores the columns before it returns."""

    def __init__(self, class_cache: ClassCache, snapshot: Snapshot) -> None:
        self._class_cache, self._snapshot = class_cache, snapshot

    def assign(self, member_classes: list[MemberClass], shares: list[list[RowShare]]) -> list[list[Assignment]] | None:
        """Returns, for each class, an Assignment for each member in the order of its rows; None if no class takes
        anything. Raises NotAssignable."""
        taking = [i for i, each in enumerate(member_classes) if each.classified.table.plugins.assigns]
        if not taking:
            return None
        found: list[list[Assignment]] = [[] for _ in member_classes]
        with self._snapshot.attempt() as transaction:
            for i in taking:
                for row, members in shares[i]:
                    found[i] += self._on_row(member_classes[i], row, members)
                if i != taking[-1]:  # the classes after it find these devices taken
                    self._count(member_classes[i], shares[i], found[i], transaction)
        return found

    def _on_row(self, member_class: MemberClass, row: int, members: int) -> Sequence[Assignment]:
        taken: Sequence[Assignment] = ()
        for plugin in member_class.classified.table.plugins.assigns:
            more = self._ask(plugin, member_class, row, members)
            if not taken:
                taken = more
            elif more.count(NO_ASSIGNMENT) < members:  # else it only had to agree
                taken = [one + other for one, other in zip(taken, more, strict=True)]
        return taken

    def _ask(self, plugin: Any, member_class: MemberClass, row: int, members: int) -> Sequence[Assignment]:
        asked: AssignMembers = plugin
        trusted = self._class_cache.profile_plugins.traits[plugin.name].trusted
        view = Nodes(self._snapshot.nodes) if trusted else Nodes(self._snapshot.nodes).locked()
        answer: Any = call_plugin(plugin, asked.assign_members, member_class.classified.table.pod, row, view, members)
        if isinstance(answer, Verdict):
            raise NotAssignable(", ".join(answer.reasons))
        if not trusted:
            if not isinstance(answer, list) or len(answer) != members:
                raise_contract_error(plugin.name, "assign_members", answer, f"a list of {members}")
            answer = [checked_assignment(each, plugin.name) for each in answer]
        found: Sequence[Assignment] = answer
        return found

    def _count(
        self,
        member_class: MemberClass,
        shares: list[RowShare],
        assigned: list[Assignment],
        transaction: Transaction,
    ) -> None:
        rows = [row for row, members in shares for _ in range(members)]
        footprint = member_class.classified.table.pod.footprint
        for pod, row, assignment in zip(member_class.pods, rows, assigned, strict=False):
            placement = PodPlacement(pod.key, pod.metadata.uid, self._snapshot.nodes.names[row], footprint, assignment)
            transaction.add_pod(row, member_record(pod, placement, self._snapshot.nodes))
