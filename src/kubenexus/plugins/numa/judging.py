"""A pod class against rows: would their kubelets admit the pod, and can its own policy be kept?"""

from typing import Any, NamedTuple

import numpy as np

from kubenexus.api.numa.many_nodes import NO_AFFINITY
from kubenexus.api.numa.pod_demand import ContainerDemand
from kubenexus.api.numa.quick_judgement import refusals
from kubenexus.api.numa.refusal import TOPOLOGY
from kubenexus.base.arrays import any_true
from kubenexus.plugins.numa import own_policy
from kubenexus.plugins.numa.alignment import FITS
from kubenexus.plugins.numa.class_rules import ClassRules, ContainerRules
from kubenexus.plugins.numa.points import several_points
from kubenexus.plugins.numa.request import ISOLATED, RESTRICTED
from kubenexus.plugins.numa.zone_sets import at_least, exceeds_needed
from kubenexus.state.numa.columns import NumaColumns, RowNuma
from kubenexus.state.view import Nodes


class Refusals(NamedTuple):
    """For each row, or for one: no NUMA nodes to align the pod on, too little of something, its own policy broken."""

    unaligned: Any
    lacking: Any
    broken: Any


def judge_rows(rules: ClassRules, nodes: Nodes) -> Refusals:
    """Returns which rows of a view refuse the class."""
    numa, where = nodes.columns.numa, nodes.where
    codes = numa.codes[: numa.zones, where]
    unaligned = np.zeros(nodes.width, np.bool_)
    lacking, broken = unaligned.copy(), unaligned.copy()
    reporting = numa.layouts[where] >= 0
    judged = reporting & numa.judged[where] if numa.unjudged else reporting
    for each in rules.containers:
        bits = np.bitwise_or.reduce(each.bits.many(numa.states, codes), axis=0)
        settled = (bits & each.decided) == each.decided
        fits = (bits & FITS) > 0
        unaligned |= settled & ~fits
        lacking |= settled & fits & _lacks(each.demand, numa, where)
        open_rows = judged & ~settled
        if any_true(open_rows):
            at = np.flatnonzero(open_rows)
            rows = nodes.table_rows()[at]
            unaligned[at], lacking[at] = _in_full(each.demand, numa, rows, unaligned[at], lacking[at])
    if rules.own:
        broken = reporting & _broken(rules, numa, codes)
    if numa.unjudged:
        unaligned &= judged
        lacking &= judged
    return Refusals(unaligned, lacking & ~unaligned, broken)


def judge_one(rules: ClassRules, numa: NumaColumns, row: int, here: RowNuma) -> Refusals:
    """The same for one row."""
    codes, states = numa.codes_of(row), numa.states
    unaligned = lacking = False
    for each in rules.containers if here.reported.judged else ():
        bits = 0
        for value in each.bits.row(states, codes):
            bits |= value
        if bits & each.decided != each.decided:
            reason = numa.refusal(here, each.alone)
            unaligned |= reason == TOPOLOGY
            lacking |= reason not in ("", TOPOLOGY)
        elif not bits & FITS:
            unaligned = True
        else:
            lacking |= lacks_totals(each.demand, here)
    return Refusals(unaligned, lacking and not unaligned, rules.own and _one_broken(rules, numa, codes))


def score_rows(rules: ClassRules, nodes: Nodes, unknown: int) -> Any:
    """Returns the score of each row; `unknown` without a report."""
    numa, where = nodes.columns.numa, nodes.where
    codes = numa.codes[: numa.zones, where]
    best = rules.score.many(numa.states, codes).max(axis=0)
    reporting = numa.layouts[where] >= 0
    several = reporting & (best < 0)
    if nodes.feasible is not None:
        several &= nodes.feasible[where]
    scores = np.where(reporting, best, unknown).astype(np.int64)
    if any_true(several):
        at = np.flatnonzero(several)
        scores[at] = several_points(at_least(rules.request, rules.wanted, numa.states, codes[:, at]))
    if numa.contradicted:
        scores[nodes.at(numa.contradicted)] = 0
    return np.maximum(scores, 0, out=scores)


def score_one(rules: ClassRules, numa: NumaColumns, row: int) -> int:
    """The same for one row, which has a report."""
    if row in numa.contradicted:
        return 0
    codes = numa.codes_of(row)
    best = max(rules.score.row(numa.states, codes))
    if best >= 0:
        return best
    needed = at_least(rules.request, rules.wanted, numa.states, np.array(codes)[:, None])
    return int(several_points(needed)[0])


def is_settled(each: ContainerRules, numa: NumaColumns, codes: list[int]) -> bool:
    """Returns whether single NUMA nodes, or totals, decide about a container on a row with these states."""
    bits = 0
    for value in each.bits.row(numa.states, codes):
        bits |= value
    return bits & each.decided == each.decided


def _in_full(demand: ContainerDemand, numa: NumaColumns, rows: Any, unaligned: Any, lacking: Any) -> tuple[Any, Any]:
    """Looks at all sets of NUMA nodes of some rows, once for rows that are in the same state."""
    first, which = numa.alike(rows)
    layouts = numa.layouts[rows[first]]
    found = np.zeros(len(first), np.int8)
    for layout in np.unique(layouts).tolist():
        of = np.flatnonzero(layouts == layout)
        found[of] = refusals(demand, numa.table(layout, rows[first[of]]))
    found = found[which]
    return unaligned | (found == NO_AFFINITY), lacking | ((found != 0) & (found != NO_AFFINITY))


def _lacks(demand: ContainerDemand, numa: NumaColumns, where: Any) -> Any:
    """Returns the rows that have too little in all."""
    lacks: Any = False
    if demand.cpus:
        lacks = numa.free_cpus[where] < demand.cpus
        lacks |= (numa.whole_cores[where] < demand.cpus) | (demand.cpus % numa.threads[where] != 0)
    for resource, number in demand.devices:
        free = numa.free_devices(resource)
        if free is not None:
            lacks = lacks | (free[where] < number)
    return lacks


def lacks_totals(demand: ContainerDemand, here: RowNuma) -> bool:
    """Returns whether a row has too little in all."""
    totals = here.totals
    if demand.cpus and (
        totals.cpus < demand.cpus or totals.whole_cores < demand.cpus or demand.cpus % here.frame.threads
    ):
        return True
    for resource, number in demand.devices:  # noqa: SIM110  # a generator takes longer
        if totals.devices.get(resource, number) < number:
            return True
    return False


def _broken(rules: ClassRules, numa: NumaColumns, codes: Any) -> Any:
    """Returns the rows on which the pod's own policy cannot be kept."""
    if rules.request.policy == RESTRICTED:
        return exceeds_needed(rules.request, rules.wanted, numa.states, codes)
    return _breaks(rules, np.bitwise_or.reduce(rules.policy.many(numa.states, codes), axis=0))


def _one_broken(rules: ClassRules, numa: NumaColumns, codes: list[int]) -> bool:
    if rules.request.policy == RESTRICTED:
        return bool(exceeds_needed(rules.request, rules.wanted, numa.states, np.array(codes)[:, None])[0])
    bits = 0
    for value in rules.policy.row(numa.states, codes):
        bits |= value
    return bool(_breaks(rules, bits))


def _breaks(rules: ClassRules, bits: Any) -> Any:
    """Returns whether the union of the bits of a row's NUMA nodes breaks the policy. A policy that was only inferred
    does not refuse machines whose NUMA nodes are all too small."""
    if rules.request.policy == ISOLATED:
        return (bits & own_policy.IDLE) == 0
    refused = (bits & own_policy.FITS) == 0
    return refused if rules.request.stated else refused & ((bits & own_policy.COULD) > 0)
