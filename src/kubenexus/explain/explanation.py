"""Explains why a pod goes to a node, or waits, as data and as text.

The source is the planner's Decision; this module adds the table of the best nodes and the rendering. A member of a gang
is decided together with its gang.
"""

from collections.abc import Callable, Mapping

import msgspec
import numpy as np

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.device_share import DeviceShare, held_shares
from kubenexus.api.keys import SECTIONS
from kubenexus.api.keys.unknown import UnknownKeys
from kubenexus.app.report.key_warnings import pod_warnings
from kubenexus.base.errors import Malformed, truncated
from kubenexus.config.gang_settings import GangSettings, gang_settings
from kubenexus.config.tenant_settings import TenantSettings, tenant_settings
from kubenexus.cycle.select import score_rows
from kubenexus.cycle.tie_break import TIE_BREAK_BITS
from kubenexus.explain.claim_section import claim_section, claimed_text
from kubenexus.explain.counterfactual.suggest import Counterfactuals, counterfactuals, render_counterfactuals
from kubenexus.explain.counterfactual.trials import Trials
from kubenexus.explain.demand_line import demand_line
from kubenexus.explain.device_section import DeviceSection, cards_text, device_section, is_plan, render_section
from kubenexus.explain.eviction_section import Evictions, evictions, render_evictions, without_other_names
from kubenexus.explain.gather_job import GatheredJob, job_of_pod
from kubenexus.explain.numa_section import NumaFacts, numa_section, render_numa
from kubenexus.explain.reservation_ahead import reservation_ahead_of
from kubenexus.explain.text_table import text_table
from kubenexus.framework.decision import Decision, Diagnosis, GangDiagnosis, PluginScore, PodPlacement
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.observe.conditions import BEHIND_GATES, GATED, POD_SCHEDULED, UNSCHEDULABLE
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.reservation import Reservation
from kubenexus.plugins.workload.signed import workload_of
from kubenexus.state.ledger import Ledger


class NodeRating(msgspec.Struct, frozen=True, gc=False):
    """A feasible node: its total score and the score of each plugin."""

    node: str
    total: int
    scores: tuple[PluginScore, ...]


class GangFacts(msgspec.Struct, frozen=True, gc=False):
    """The pod's gang: members that wait, members with a node (this pod among either), and how many must start together.

    `held` is the reason why the gang is not tried yet, or "".
    """

    name: str
    waiting: int
    bound: int
    minimum: int
    held: str = ""


class WorkloadFacts(msgspec.Struct, frozen=True, gc=False):
    """The pod's kind of work and what showed it. `preemptible`: the pod agrees to be preempted."""

    type: str
    reason: str
    preemptible: bool = False


class TenantFacts(msgspec.Struct, frozen=True, gc=False):
    """The pod's tenant, its tier, and where the tier comes from."""

    name: str
    tier: str
    source: str


class Explanation(msgspec.Struct, frozen=True, gc=False):
    """A decision about one pod, with the best nodes at that time, or about its gang.

    `bound` is the node that the pod has already. The decision is then what it would be if the pod waited. `devices` is
    what it needs of devices, None if nothing. `cards` are those of placed members in words, by pod, and
    `bound_cards` those that the pod has already. `workload` and `tenant` are those of this pod. `evictions` are the
    pods that would have to go. `claims` is what keeps its device claims from being allocated. `unclear` are values of
    the pod that cannot be read, and keys that are not known. `numa` is what the kubelet of its node, or of nodes that
    refuse it, would say about NUMA nodes. `starts_if` is what would make a refused job start at once. `keeps` is what
    the placement keeps for pods that are expected, if that put its node before the next. `held` is why the job is not
    tried: no node refused it.
    """

    pod: str
    decision: Decision
    best: tuple[NodeRating, ...] = ()
    gang: GangFacts | None = None
    bound: str = ""
    devices: DeviceSection | None = None
    cards: dict[str, str] = {}
    bound_cards: str = ""
    workload: WorkloadFacts | None = None
    tenant: TenantFacts | None = None
    evictions: Evictions | None = None
    claims: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    numa: tuple[NumaFacts, ...] = ()
    starts_if: Counterfactuals | None = None
    keeps: str = ""
    held: str = ""

    @property
    def placement(self) -> PodPlacement | None:
        """Where this pod goes, or None. A gang may start without it."""
        return next((each for each in self.decision.placements if each.pod == self.pod), None)


def explain(  # noqa: PLR0913 - what a decision needs, and how much to say about it
    pod: Pod,
    pods: Mapping[str, Pod],
    ledger: Ledger,
    planner: Planner,
    now: float,
    *,
    nodes: int = 5,
    gangs: GangSettings | None = None,
    settings: TenantSettings | None = None,
    node_objects: Mapping[str, Node] | None = None,
    visible: Callable[[str], bool] = lambda namespace: True,
) -> Explanation:
    """Decides for this pod as if it waited now; if it is in a gang, for all waiting members among `pods`.

    A bound or assumed pod is first removed from its node in `ledger`; the other pods stay. `gangs` and
    `settings` are the gang and tenant settings of its profile: a waiting pod must leave the capacity that is reserved
    for a gang before it in the queue. With `node_objects`, those that `ledger` was made of, it also computes what would
    make a refused job start; the ledger is changed meanwhile and changed back. `visible` says whether jobs of a
    namespace may be named there.
    """
    gangs = gangs or gang_settings({}, pod.spec.scheduler_name)
    settings = settings or tenant_settings({}, pod.spec.scheduler_name)
    ledger.remove_pod(pod.key)
    spec = msgspec.structs.replace(pod.spec, node_name="", scheduling_gates=[])
    pending = msgspec.structs.replace(pod, spec=spec)
    found = job_of_pod(pending, pods, ledger.groups, lambda member: gangs.default_topology(member.metadata.namespace))
    held = found.held or gate_reason(pod)
    reserved = None
    if held:
        decision = _held_decision(found.job.key, held, ledger, now)
    else:
        reserved = None if pod.spec.node_name else reservation_ahead_of(found, pods, ledger, planner, gangs, settings)
        decision = planner.decide(found.job, ledger.snapshot(), now, reserved)
    alone = decision.placed and not found.gang
    best = _best(pending, ledger, planner, nodes) if alone else ()
    bound = _cards(pod.spec.node_name, held_shares(pod), ledger) if pod.spec.node_name else ""
    devices = _devices(pending, decision, ledger, planner)
    namespace = pod.metadata.namespace
    starts_if = None
    if node_objects is not None and not (decision.placed or held or decision.error):

        def left_to_others(job: Job) -> Reservation | None:
            if reserved is None or job.priority == found.job.priority:
                return reserved
            outranking = msgspec.structs.replace(found, job=job)
            return reservation_ahead_of(outranking, pods, ledger, planner, gangs, settings)

        trials = Trials(ledger, planner, node_objects, pods, left_to_others, now)
        starts_if = counterfactuals(found.job, decision, trials, visible)
    return Explanation(
        pod.key,
        without_other_names(decision, namespace),
        best,
        _facts(found, has_node=bool(pod.spec.node_name)),
        pod.spec.node_name,
        devices,
        _cards_of_members(decision, ledger),
        bound,
        _workload(pod),
        TenantFacts(*ledger.nodes.tenants.of(pod), ledger.nodes.tenants.tier_source(pod)),
        evictions(decision, namespace),
        () if decision.placed or held else claim_section(pending, ledger.nodes),
        _unclear(pod),
        () if held else numa_section(pending, decision, ledger),
        starts_if,
        demand_line(pending, best, ledger, planner),
        held,
    )


def _held_decision(job: str, reason: str, ledger: Ledger, now: float) -> Decision:
    diagnosis = Diagnosis(ledger.nodes.count, message=reason)
    return Decision(job, Code.UNRESOLVABLE, ledger.generation, now, diagnosis=diagnosis)


def _cards_of_members(decision: Decision, ledger: Ledger) -> dict[str, str]:
    """Returns the cards and claimed devices of each member that has some."""
    cards = {
        each.pod: _cards(each.node, each.assignment.device_shares, ledger)
        for each in decision.placements
        if each.assignment.device_shares
    }
    return cards | {each.pod: claimed_text(each.assignment) for each in decision.placements if each.assignment.claims}


def _unclear(pod: Pod) -> tuple[str, ...]:
    """Returns what the scheduler warns the pod of, and keys in KubeNexus's domains that are not known."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    entries = [entry for section in SECTIONS for entry in section.entries]
    return (*(each.text for each in pod_warnings(pod)), *UnknownKeys(entries, "Pod").sentences(labels, annotations))


def _workload(pod: Pod) -> WorkloadFacts:
    found = workload_of(pod)
    return WorkloadFacts(str(found.type), found.reason, found.preemptible)


def _devices(pending: Pod, decision: Decision, ledger: Ledger, planner: Planner) -> DeviceSection | None:
    if decision.error:
        return None
    try:
        classified = planner.class_cache.lookup(pending, ledger.nodes)
    except Malformed:  # the decision has the reason
        return None
    if classified.rejection is not None:
        return None
    placed = any(each.pod == pending.key for each in decision.placements)
    return device_section(classified.table, ledger, placed=placed)


def _cards(node: str, shares: tuple[DeviceShare, ...], ledger: Ledger) -> str:
    if not shares:
        return ""
    plan = "; a plan: the kubelet's device plugin picks" if is_plan(node, shares, ledger) else ""
    return cards_text(node, shares, ledger) + plan


def last_refusal(pod: Pod) -> str:
    """Returns what the scheduler wrote when it refused the pod last, or ""."""
    said = [each for each in pod.status.conditions if (each.type, each.reason) == (POD_SCHEDULED, UNSCHEDULABLE)]
    return said[0].message if said and not pod.spec.node_name else ""


def gate_reason(pod: Pod) -> str:
    """Returns why a gated pod is not tried; "" if it is, or has a node.

    A pod without gates is gated by the scheduler: its queue is at a limit, or it waits for other jobs. Its condition
    has the reason. A condition about gates is one from before they were removed.
    """
    if pod.spec.node_name:
        return ""
    if pod.spec.scheduling_gates:
        names = " ".join(truncated(gate.name) for gate in pod.spec.scheduling_gates)
        return f"{BEHIND_GATES}: [{names}]"
    said = [each.message for each in pod.status.conditions if (each.type, each.reason) == (POD_SCHEDULED, GATED)]
    return next((each for each in said if not each.startswith(BEHIND_GATES)), "")


def _facts(found: GatheredJob, *, has_node: bool) -> GangFacts | None:
    """`has_node`: the pod has a node, though the job counts it as waiting."""
    if not found.gang and not found.held:
        return None
    bound = len(found.job.bound_nodes)
    minimum = found.job.minimum + bound
    return GangFacts(found.gang, len(found.job.pods) - has_node, bound + has_node, minimum, found.held)


def _best(pod: Pod, ledger: Ledger, planner: Planner, nodes: int) -> tuple[NodeRating, ...]:
    table = planner.class_cache.lookup(pod, ledger.nodes).table
    rows = np.flatnonzero(table.feasible)
    scores = score_rows(table, rows, ledger.nodes)
    totals = np.zeros(len(rows), np.int64)
    for score in scores:
        totals += score.weight * score.normalized
    order = np.argsort((totals << TIE_BREAK_BITS) + table.tie_breaker.for_rows(ledger.nodes, rows))[::-1][:nodes]
    return tuple(
        NodeRating(
            ledger.nodes.names[rows[i]],
            int(totals[i]),
            tuple(PluginScore(s.plugin, s.shown(i), int(s.normalized[i]), s.weight) for s in scores),
        )
        for i in order.tolist()
    )


def render_text(explanation: Explanation) -> str:
    """Returns the explanation as plain text, in lines suited to pipes."""
    decision, gang = explanation.decision, explanation.gang
    lines = [f"{explanation.pod}"]
    if explanation.bound:
        lines.append(f"BOUND    {explanation.bound}   below: where it would go if it waited now")
    lines += _identity(explanation)
    if explanation.bound_cards:
        lines.append(f"HAS      {explanation.bound_cards}")
    if gang is not None and gang.name:
        lines.append(_gang_line(gang))
    if explanation.held:
        lines.append(f"WHY      {explanation.held}")
    elif not decision.placed:
        lines.append(f"WHY      {decision.full_sentence()}")
        lines += _refused(decision)
        lines += render_evictions(explanation.evictions)
        lines += render_section(explanation.devices)
        lines += (f"CLAIMS   {each}" for each in explanation.claims)
        lines += render_numa(explanation.numa)
        lines += render_counterfactuals(explanation.starts_if)
    elif gang is None:
        lines += _placed(explanation)
    else:
        lines += _started(explanation)
    return "\n".join(lines) + "\n"


def _identity(explanation: Explanation) -> list[str]:
    """The lines about what the pod is and which tenant it belongs to."""
    lines, workload, tenant = list[str](), explanation.workload, explanation.tenant
    if workload is not None:
        lines.append(
            f"KIND     {workload.type} ({workload.reason})" + (", preemptible" if workload.preemptible else "")
        )
    if tenant is not None:
        lines.append(f"TENANT   {tenant.name}, {tenant.tier} ({tenant.source})")
    return [*lines, *(f"UNCLEAR  {each}" for each in explanation.unclear)]


def _gang_line(gang: GangFacts) -> str:
    if gang.held:
        return f"GANG     {gang.name}"
    return f"GANG     {gang.name}   {gang.waiting} wait, {gang.bound} have a node, at least {gang.minimum} run together"


def _started(explanation: Explanation) -> list[str]:
    """The lines for a gang that starts, with this pod or (beyond its minimum) without."""
    own, placements = explanation.placement, explanation.decision.placements
    if own is None:
        first = [f"WHY      {len(placements)} others of the gang start; there is no room for this one beside them"]
        first += render_section(explanation.devices)
    else:
        first = [f"NODE     {own.node}", *render_numa(explanation.numa)]
    header, rows = ["MEMBER", "NODE"], [[each.pod, each.node] for each in placements]
    if explanation.cards:
        header.append("CARDS")
        rows = [[*row, explanation.cards.get(row[0], "-")] for row in rows]
    return [*first, "", *text_table([header, *rows])]


def _placed(explanation: Explanation) -> list[str]:
    placement = explanation.decision.placements[0]
    diagnosis = explanation.decision.diagnosis
    lines = [
        f"NODE     {placement.node}   total {placement.total}, {placement.feasible} of {diagnosis.nodes} nodes fit"
    ]
    if placement.runner_up is not None:
        lines.append(f"NEXT     {placement.runner_up.node}   total {placement.runner_up.total}")
    if explanation.keeps:
        lines.append(f"KEEPS    {explanation.keeps}")
    if explanation.cards:
        lines.append(f"CARDS    {explanation.cards[placement.pod]}")
    lines += render_numa(explanation.numa)
    lines += [f"REFUSED  {count} {reason}" for reason, count in diagnosis.counts]
    plugins = [score.plugin for score in explanation.best[0].scores] if explanation.best else []
    header = ["NODE", "TOTAL", *plugins]
    rows = [[r.node, str(r.total), *(f"{s.weight}x{s.normalized}" for s in r.scores)] for r in explanation.best]
    return [*lines, "", *text_table([header, *rows])]


def _refused(decision: Decision) -> list[str]:
    diagnosis = decision.diagnosis
    lines = [f"REFUSED  {count} {reason}" for reason, count in diagnosis.counts]
    if decision.gang_diagnosis is not None:
        lines += _certified(decision.gang_diagnosis)
    if diagnosis.refused_by:
        lines.append(f"BY       {', '.join(diagnosis.refused_by)}")
    nearest = diagnosis.nearest
    if nearest is not None:
        lacking = ", ".join(each.text() for each in nearest.shortages)
        lines.append(
            f"NEAREST  {nearest.node}: {', '.join(nearest.reasons)}" + (f"; lacks {lacking}" if lacking else "")
        )
    return lines


def _certified(gang_diagnosis: GangDiagnosis) -> list[str]:
    """The lines of the proof that the gang does not fit."""
    if gang_diagnosis.unlabelled:
        return [f"CLOSEST  none: no node has a label of the level {gang_diagnosis.level}"]
    where = f"{gang_diagnosis.level} {gang_diagnosis.domain}".strip() if gang_diagnosis.domain else "the whole cluster"
    lines = [f"CLOSEST  {where}: {gang_diagnosis.fit} of {gang_diagnosis.needed} fit"]
    if gang_diagnosis.lacking:
        wanted = ", ".join(each.text() for each in gang_diagnosis.lacking)
        spots = ", ".join(
            f"{shortage.members} in {gang_diagnosis.spread} {shortage.domain}"
            for shortage in gang_diagnosis.short_domains
        )
        lines.append(f"LACKING  {wanted} for {spots or f'{gang_diagnosis.missing} more'}")
    if gang_diagnosis.node_need:
        lines.append(f"MEMBERS  {gang_diagnosis.node_need}")
    return lines
