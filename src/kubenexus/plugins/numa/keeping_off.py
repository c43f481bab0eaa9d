"""NUMA nodes that pods keep for themselves: others go where the kubelet gives them another one.

The kubelet knows nothing of it. Under `single-numa-node` and `restricted` it gives a container the first NUMA node that
has everything free; if that is kept, the row is refused. Under `none` and `best-effort`, and where a container needs
several NUMA nodes, it cannot be told, and a row with a kept NUMA node is refused.
"""

from typing import Any

import numpy as np

from kubenexus.api.numa.machine import BEST_EFFORT, NONE
from kubenexus.plugins.numa import own_policy
from kubenexus.plugins.numa.alignment import FITS
from kubenexus.plugins.numa.class_rules import ClassRules
from kubenexus.plugins.numa.request import ISOLATED
from kubenexus.state.numa.columns import NumaColumns, RowNuma
from kubenexus.state.numa.holdings import difference, zones_of
from kubenexus.state.view import Nodes


def kept_column(rules: ClassRules, nodes: Nodes) -> Any:
    """Returns the NUMA nodes of each row that are kept from the class; None if no row has any."""
    kept, keys = nodes.columns.numa.kept, rules.request.keys
    return kept.column(nodes.columns.size, keys)[nodes.where] if kept.any_from(keys) else None


def kept_off_rows(rules: ClassRules, nodes: Nodes) -> Any:
    """Returns the rows on which a container would get a NUMA node that is kept from the class, or one that an isolated
    pod would not have to itself; None if there are none for sure."""
    kept, isolated = kept_column(rules, nodes), rules.request.policy == ISOLATED
    if not rules.containers or (kept is None and not isolated):
        return None
    numa, where = nodes.columns.numa, nodes.where
    codes = numa.codes[: numa.zones, where]
    refused = np.zeros(nodes.width, np.bool_)
    aligned = numa.states.field("aligned", codes[0])
    at = np.arange(nodes.width)
    idle = (rules.policy.many(numa.states, codes) & own_policy.IDLE) > 0
    for each in rules.containers:
        bits = each.bits.many(numa.states, codes)
        settled = aligned & ((np.bitwise_or.reduce(bits, axis=0) & each.decided) == each.decided)
        first = ((bits & FITS) > 0).argmax(axis=0)
        if kept is not None:
            refused |= (kept != 0) & (~settled | (kept >> first & 1 > 0))
        if isolated:
            refused |= settled & ~idle[first, at]
    return refused


def one_is_kept_off(rules: ClassRules, numa: NumaColumns, row: int, here: RowNuma) -> bool:
    """The same for one row."""
    kept, isolated = numa.kept.of_row(row, rules.request.keys), rules.request.policy == ISOLATED
    if not rules.containers or (not kept and not isolated):
        return False
    codes, states = numa.codes_of(row), numa.states
    aligned = here.reported.kubelet.policy not in (NONE, BEST_EFFORT)
    idle = [bool(bits & own_policy.IDLE) for bits in rules.policy.row(states, codes)]
    for each in rules.containers:
        found = each.bits.row(states, codes)
        union = 0
        for bits in found:
            union |= bits
        settled = aligned and union & each.decided == each.decided
        first = next((zone for zone, bits in enumerate(found) if bits & FITS), 0)
        if kept and (not settled or kept >> first & 1):
            return True
        if isolated and settled and not idle[first]:
            return True
    return False


def all_keep_off(rules: ClassRules, numa: NumaColumns, row: int, here: RowNuma, members: int) -> bool:
    """Returns whether so many members, admitted one after the other, all get NUMA nodes that are not kept from them."""
    kept = numa.kept.of_row(row, rules.request.keys)
    if rules.demand is None or (not kept and not rules.request.alone):
        return True
    usage, machine = here.usage, here.reported.machine
    for _ in range(members):
        after = numa.after(here, usage, rules.demand)
        if after is None:
            return False
        zones = zones_of(machine, difference(usage, after, ()))
        if zones & kept:
            return False
        if rules.request.alone:
            kept |= zones
        usage = after
    return True


def limited_room(rules: ClassRules, nodes: Nodes, room: Any) -> Any:
    """Returns how many members each NUMA node of each row takes, where some are kept from the class or members keep off
    each other. A kubelet fills NUMA nodes in order, so that what comes after such a one has none."""
    kept = kept_column(rules, nodes)
    if kept is not None:
        zones = np.arange(len(room))[:, None]
        room = np.where(np.logical_or.accumulate((kept >> zones & 1 > 0) & (room > 0), axis=0), 0, room)
    if rules.request.alone:
        return _at_most(room, 1)
    most = 1
    while rules.request.minimum and most < rules.request.minimum:
        lower = _at_most(room, most)
        if int(lower.sum(dtype=np.int64)) >= rules.request.minimum:
            return lower
        most *= 2
    return room


def _at_most(room: Any, most: int) -> Any:
    """Returns the room if no NUMA node may have more members: the first with room for more gets no further ones, nor do
    those after it."""
    more = np.logical_or.accumulate(room > most, axis=0)
    after = np.vstack([np.zeros((1, room.shape[1]), np.bool_), more[:-1]])
    return np.where(after, 0, np.minimum(room, most))
