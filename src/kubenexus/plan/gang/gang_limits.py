"""The limit on the work of one decision about a gang, counted in cells, since `decide` has no clock.

A cell is what reading one row of one table costs, about 30 ns. All work that grows with a gang is charged to one budget
(`packing_problem.WorkBudget`, about 100 ms): signing members, a table of all nodes for each class, and the search with
what is left. A gang that would need more is refused with a message that names the limit. Only a change of the gang or
the periodic flush of the queue makes the scheduler try it again: no other event would help.

Prices were measured at 1,000 and 5,000 nodes. With the plugins of kube-scheduler a table takes 0.8 ms at 5,000, with
all calls of the planner, and a member that is placed by itself 0.35 ms; a signature takes 15 us at any size. Each
further filter or score takes as long again as its share, at any number of nodes: with the shipped profile a table takes
2.4 ms, and a member 0.7 to 1.1 ms.
"""

from collections.abc import Iterator
from typing import Final

from kubenexus.api.core import NodeSelectorTerm, Pod, PodAffinity
from kubenexus.api.devices.pod_needs import stated_needs
from kubenexus.base.errors import KubeNexusError
from kubenexus.plan.gang.multi_class.packing_problem import BUDGET, WorkBudget

GANG_LIMITS: Final = "GangLimits"  # in place of a plugin name in a diagnosis
MAX_MEMBERS: Final = 5_000  # members that one decision places; to commit one takes 60 us
CLASS_BUDGET: Final = BUDGET * 2 // 3  # for grouping members and for tables; the rest is for the search
_SIGNATURE, MEMBER = 500, 50
# Of a class, of a member, of an order of classes; besides the cost of rows.
_TABLE, _PLACEMENT, ORDER = 3_000, 3_500, 2_000
_PLUGINS = 23  # filters and scores that these prices are for; further ones cost so much for a class and for a member
_TABLE_PLUGIN, _PLACEMENT_PLUGIN = 2_600, 1_700
_KEY_ROW = 4  # to read a label from a node
_DEVICE_TABLE = 5  # tables that one costs for a class that needs certain devices, or parts of them: 2 to 5 ms
_CLAIM_ROWS = 3  # rows that one costs for a class or a member with device claims
_ROW_OF_PLUGIN = 12  # cells that cost as much as a row that a plugin reports of its own work
_FREE_ROWS = 2_000  # of these, for each class
_BYTES = 256  # of a signature, for which a table costs as much again; a spread constraint has 90


class GangLimitError(KubeNexusError):
    """The gang would need more work than one decision may take. The message is for users."""


class MemberClassCosts:
    """Charges the classes of one gang to the budget, at so many rows and with so many filters and scores.

    Raises GangLimitError at the first class beyond the limit. The number of further classes is not counted, since to
    count them is the work that the limit is for.
    """

    def __init__(self, rows: int, plugins: int, budget: WorkBudget) -> None:
        self._rows, self._plugins, self._budget = rows, plugins, budget
        self._known, self._signed, self._keys = 0, 0, set[str]()
        self._left = CLASS_BUDGET

    def sign(self, signature: bytes) -> None:
        """Charges the signature of one member, whose class may be known already."""
        self._signed += 1
        if not self._spend(_SIGNATURE + len(signature)):
            raise self._beyond()

    def add(self, pod: Pod, signature: bytes) -> None:
        """Charges the table of a new class."""
        keys = {key for key in node_keys(pod) if key not in self._keys}
        self._keys |= keys
        self._left -= ORDER + self._rows  # stays in the budget, for placing the class once
        rows = self._rows * (_CLAIM_ROWS if pod.spec.resource_claims else 1)
        table = table_cells(signature, rows) * (_DEVICE_TABLE if stated_needs(pod) else 1)
        table += _further(self._plugins) * _TABLE_PLUGIN
        if not self._spend(table + _KEY_ROW * self._rows * len(keys)):
            raise self._beyond()
        self._known += 1

    def _beyond(self) -> GangLimitError:
        known, signed = self._known, self._signed - 1
        if signed > 2 * known:  # not too many classes: members alternate, with labels that plugins read
            return GangLimitError(
                f"gang has more than {signed} members to be told apart one by one, which is the limit"
            )
        more = f"gang has more than {known} different kinds of members"
        return GangLimitError(f"{more}; at {self._rows} nodes at most {known} like these can be planned together")

    def _spend(self, cells: int) -> bool:
        self._left -= cells
        return self._left >= 0 and self._budget.spend(cells)


def max_member_classes(signature: bytes, rows: int, plugins: int) -> int:
    """Returns how many classes like this one gang may have."""
    table = table_cells(signature, rows) + _further(plugins) * _TABLE_PLUGIN
    return CLASS_BUDGET // (_SIGNATURE + len(signature) + table + ORDER + rows)


def table_cells(signature: bytes, rows: int) -> int:
    """Returns the cells for the table of a class, and for all calls of the planner with it, without further plugins.

    A signature has all that plugins read (constraints, terms, tolerations, containers, resources), so its length is the
    measure of their work.
    """
    return (_TABLE + rows * 5 // 4) * (_BYTES + len(signature)) // _BYTES


def placement_cells(signature: bytes, rows: int, plugins: int, *, claims: bool = False) -> int:
    """Returns the cells for placing one member of a class, with or without device claims, after the others."""
    cells = _PLACEMENT + rows * (_CLAIM_ROWS if claims else 1)
    return cells * (8 * _BYTES + len(signature)) // (8 * _BYTES) + _further(plugins) * _PLACEMENT_PLUGIN


def _further(plugins: int) -> int:
    return max(0, plugins - _PLUGINS)


def charge_plugins(rows: int, classes: int, budget: WorkBudget) -> None:
    """Charges rows that plugins report of their own work for the tables of so many classes. At most half of the budget
    goes: what they looked at is known in the next attempt, so no gang is refused for it."""
    beyond = max(0, rows - _FREE_ROWS * classes)
    budget.left -= min(beyond * _ROW_OF_PLUGIN, max(0, budget.left) // 2)


def node_keys(pod: Pod) -> Iterator[str]:
    """Yields the node labels that a pod names. Each becomes a column over all nodes at its first use."""
    spec = pod.spec
    yield from spec.node_selector
    yield from (each.topology_key for each in spec.topology_spread_constraints)
    if spec.affinity is not None:
        for affinity in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            yield from _topology_keys(affinity)
        nodes = spec.affinity.node_affinity
        required = nodes.required.node_selector_terms if nodes is not None and nodes.required is not None else []
        for term in [*required, *(each.preference for each in nodes.preferred)] if nodes is not None else []:
            yield from _keys(term)


def _topology_keys(affinity: PodAffinity | None) -> Iterator[str]:
    if affinity is not None:
        yield from (each.topology_key for each in affinity.required)
        yield from (each.pod_affinity_term.topology_key for each in affinity.preferred)


def _keys(term: NodeSelectorTerm) -> Iterator[str]:
    return (each.key for each in term.match_expressions)


def too_many_members(needed: int) -> GangLimitError:
    return GangLimitError(f"gang needs {needed} members at once; at most {MAX_MEMBERS} can be planned together")


def too_many_requests(most: int) -> GangLimitError:
    return GangLimitError(f"gang has more than {most} different requests; with queues no more can be added up")


def too_many_placements(needed: int, most: int, rows: int) -> GangLimitError:
    asked = f"gang needs {needed} members at once that limit each other"
    return GangLimitError(f"{asked}; at {rows} nodes at most {most} like these can be planned together")
