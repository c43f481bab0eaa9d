"""A node of the tree of queues: a queue, or a namespace below its queue. What it uses includes all below it."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kubenexus.api.resource_names import Amounts

_NOTHING: Final[Mapping[str, int]] = {}

# The ranks of shares: below the guarantee, beyond it, and beyond it without weight.
GUARANTEED, BORROWING, WITHOUT_WEIGHT = 0, 1, 2


class Share(NamedTuple):
    """How much a queue has of what it may have: smaller ones are served first. `part` is the part of its guarantee in
    use, or its dominant share beyond the guarantee, divided by its weight."""

    rank: int
    part: float


class QueueNode:
    """A queue or a namespace. Amounts are by resource, in scheduler units. All but `guaranteed` have amounts of
    hardware tiers as well, under names of their own (`tier_resource`). Shares are of resources on all nodes.

    guaranteed          what it gets first; of an inner queue at least the sum of those below
    guaranteed_by_tier  what of that it gets on nodes of a tier
    most                what it may use at most, by its limits
    kept                the part of the guarantee that others may not use
    used                what the assumed and bound pods below it use
    held                what is kept of it and idle now: `kept` less `used`, or what is held below if that is more
    held_below          the sum of `held` over its children
    past                what it borrowed in the past, if that counts for its share (`queue.fair.past_usage`)
    current             its share, as the tree last computed it
    children            the queues below it, by name; no namespaces
    own                 of a queue with children: the leaf for its own namespaces
    """

    __slots__ = (
        "children",
        "current",
        "guaranteed",
        "guaranteed_by_tier",
        "held",
        "held_below",
        "is_namespace",
        "kept",
        "most",
        "name",
        "namespace_limit",
        "own",
        "parent",
        "past",
        "used",
        "weight",
    )

    def __init__(self, name: str, parent: "QueueNode | None" = None, *, is_namespace: bool = False) -> None:
        self.name, self.parent, self.is_namespace = name, parent, is_namespace
        self.weight = 1
        self.guaranteed: Mapping[str, int] = _NOTHING
        self.guaranteed_by_tier: Mapping[str, int] = _NOTHING
        self.most: Mapping[str, int] = _NOTHING
        self.kept: Mapping[str, int] = _NOTHING
        self.namespace_limit: Mapping[str, int] = _NOTHING
        self.used: dict[str, int] = {}
        self.held: Mapping[str, int] = _NOTHING
        self.held_below: dict[str, int] = {}
        self.children: dict[str, QueueNode] = {}
        self.own: QueueNode | None = None
        self.current = Share(BORROWING, 0.0)
        self.past: Mapping[str, float] = _NOTHING

    def __repr__(self) -> str:
        return f"{'Namespace' if self.is_namespace else 'Queue'}({self.name})"

    def path(self) -> "Iterator[QueueNode]":
        """Yields this node and all above it."""
        node: QueueNode | None = self
        while node is not None:
            yield node
            node = node.parent

    def add(self, amounts: Amounts, sign: int) -> None:
        """Adds amounts (+1), or subtracts them (-1)."""
        used = self.used
        for name, amount in amounts:
            total = used.get(name, 0) + sign * amount
            if total:
                used[name] = total
            else:
                used.pop(name, None)

    def share(self, totals: Mapping[str, float]) -> Share:
        """Returns the share of this queue, by what the whole cluster has. O(resources)."""
        used, guaranteed = self.used, self.guaranteed
        if guaranteed:
            filled = max([used.get(name, 0) / amount for name, amount in guaranteed.items() if amount], default=1.0)
            if filled < 1.0:
                return Share(GUARANTEED, filled)
        parts = [
            (amount - guaranteed.get(name, 0)) / totals[name] for name, amount in used.items() if totals.get(name, 0.0)
        ]
        borrowed = max(0.0, *parts) if parts else 0.0
        for name, before in self.past.items():
            total = totals.get(name, 0.0)
            if total:
                borrowed = max(borrowed, (before + max(used.get(name, 0) - guaranteed.get(name, 0), 0)) / total)
        return Share(BORROWING, borrowed / self.weight) if self.weight else Share(WITHOUT_WEIGHT, borrowed)

    def borrowed(self) -> dict[str, int]:
        """Returns what it uses beyond its guarantee, of resources on all nodes."""
        more = [(name, amount - self.guaranteed.get(name, 0)) for name, amount in self.used.items() if "@" not in name]
        return {name: amount for name, amount in more if amount > 0}

    def idle(self) -> dict[str, int]:
        """Returns what is held for this queue now (`held`)."""
        found = dict(self.held_below)
        for name, amount in self.kept.items():
            found[name] = max(amount - self.used.get(name, 0), found.get(name, 0))
        return {name: amount for name, amount in found.items() if amount > 0}

    def hold(self) -> bool:
        """Brings `held` up to date, and the sum of the node above. Returns whether it changed."""
        before, now = self.held, self.idle()
        if before == now:
            return False
        self.held = now
        if self.parent is not None:
            sums = self.parent.held_below
            for name in {*before, *now}:
                sums[name] = sums.get(name, 0) + now.get(name, 0) - before.get(name, 0)
                if not sums[name]:
                    del sums[name]
        return True
