"""What pods use on nodes of each hardware tier, of the resources for which some queue has an amount by tier.

A pod counts in the tier that its node has. When that changes (another label, devices that were read, a node that comes
or goes) what is used there moves to the other tier: it is kept by node and namespace, so no pod is counted again.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kubenexus.api.devices.hardware_tier import HardwareTier
from kubenexus.api.queues.settings import tier_of, tier_resource
from kubenexus.api.resource_names import Amounts
from kubenexus.state.devices.hardware_tiers import hardware_tiers
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

_LABELS = {int(tier): tier.label for tier in HardwareTier}
_NONE = HardwareTier.NONE.label


class TierChange(NamedTuple):
    """What a namespace uses more (+1) or less (-1) of the resources of tiers."""

    namespace: str
    amounts: Amounts
    sign: int


class TierUsage:
    """`names` are the resources of tiers that are counted (`tier_resource`), `tiers` the tiers among them."""

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self._resources: frozenset[str] = frozenset()
        self._tier: dict[str, str] = {}  # by node with such pods: the tier in which they count
        self._used: dict[str, dict[str, dict[str, int]]] = {}  # by node, namespace and resource
        self.names: frozenset[str] = frozenset()
        self.tiers: tuple[str, ...] = ()

    def reset(self, names: Iterable[str]) -> None:
        """Counts these names from now on, and forgets all pods."""
        self.names = frozenset(names)
        self._resources = frozenset(name.partition("@")[0] for name in self.names)
        self.tiers = tuple(sorted({tier_of(name) for name in self.names}))
        self._tier, self._used = {}, {}

    def of_node(self, node: str, amounts: Amounts) -> Amounts:
        """Returns amounts under the names that they have in the tier of a node. Others are left out."""
        tier = self._tier.get(node) or self._read(node)
        named = [(tier_resource(name, tier), amount) for name, amount in amounts if name in self._resources]
        return tuple([each for each in named if each[0] in self.names])

    def of_tier(self, tier: str, amounts: Amounts) -> Amounts:
        """Returns amounts under the names that they have in a tier. Others are left out."""
        named = [(tier_resource(name, tier), amount) for name, amount in amounts]
        return tuple([each for each in named if each[0] in self.names])

    def count(self, node: str, namespace: str, amounts: Amounts, sign: int) -> Amounts:
        """Counts a pod that comes (+1) or goes (-1), and returns what it uses of the names of tiers."""
        some = [each for each in amounts if each[0] in self._resources]
        if not some:
            return ()
        if node not in self._tier:
            self._tier[node] = self._read(node)
        found = self.of_node(node, amounts)
        by_namespace = self._used.setdefault(node, {})
        used = by_namespace.setdefault(namespace, {})
        for name, amount in some:
            used[name] = used.get(name, 0) + sign * amount
            if not used[name]:
                del used[name]
        if not used:
            del by_namespace[namespace]
            if not by_namespace:
                del self._used[node], self._tier[node]
        return found

    def moved(self) -> Iterator[TierChange]:
        """Yields what moves from tier to tier, since nodes have changed. O(nodes)."""
        columns = self._columns
        tiers, row_of = hardware_tiers(Nodes(columns)), columns.row_of
        for node, before in self._tier.items():
            row = row_of.get(node)
            now = _NONE if row is None else _LABELS[tiers.item(row)]
            if now == before:
                continue
            for namespace, used in self._used[node].items():
                amounts = tuple(used.items())
                yield TierChange(namespace, self.of_tier(before, amounts), -1)
                yield TierChange(namespace, self.of_tier(now, amounts), +1)
            self._tier[node] = now

    def totals(self) -> dict[str, float]:
        """Returns what all nodes of each tier have, by the names of tiers. O(nodes)."""
        if not self.names:
            return {}
        resources, tiers = self._columns.resources, hardware_tiers(Nodes(self._columns))
        found: dict[str, float] = {}
        for name in sorted(self._resources):
            r = resources.index.get(name)
            for code, tier in _LABELS.items() if r is not None else ():
                amount = float(resources.alloc[r, : self._columns.size][tiers == code].sum(dtype=float))
                if amount:
                    found[tier_resource(name, tier)] = amount
        return found

    def offering(self, asked: Amounts, totals: Mapping[str, float]) -> list[str]:
        """Returns the tiers whose nodes have all that is asked for, of the resources that are counted by tier."""
        names = [name for name, amount in asked if amount and name in self._resources]
        return [
            tier
            for tier in _LABELS.values()
            if all([tier_resource(name, tier) in totals for name in names])  # noqa: C419
        ]

    def _read(self, node: str) -> str:
        row = self._columns.row_of.get(node)
        return _NONE if row is None else _LABELS[hardware_tiers(Nodes(self._columns)).item(row)]
