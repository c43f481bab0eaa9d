"""Validates arguments of plugins: kube-scheduler's checks (`validation_pluginargs.go`) and messages."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kubenexus.api.core import NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm
from kubenexus.api.selectors import Operator, requirement_errors
from kubenexus.config import args as kinds
from kubenexus.config import validate_placement_args
from kubenexus.config.durations import Duration
from kubenexus.config.field_errors import FieldPath
from kubenexus.config.queue_settings import validate_queues
from kubenexus.framework.aging import CRITICAL, HIGHEST
from kubenexus.framework.profile import TieBreak

_MAX_AHEAD: Final = 7 * 86_400  # seconds
_STRATEGIES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_RATIO: Final = "RequestedToCapacityRatio"
_MAX_BOOST: Final = 1_000_000
_CLASS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
PDB_POLICIES: Final = ("hard", "prefer")
_OPERATORS: Final = {op.value: op for op in Operator}


def validate(args: kinds.Args, place: FieldPath) -> None:
    """Reports all problems of a plugin's arguments, which are at `place`."""
    if args.api_version != type(args)().api_version:
        place["apiVersion"].unsupported(args.api_version, [type(args)().api_version])
    rule: Callable[[Any, FieldPath], None] = _RULES[type(args)]
    rule(args, place)


def _default_preemption(args: kinds.DefaultPreemptionArgs, place: FieldPath) -> None:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    _between(percentage, 0, 100, place["minCandidateNodesPercentage"])
    if absolute < 0:
        place["minCandidateNodesAbsolute"].invalid(absolute, "not in valid range [0, inf)")
    if not percentage and not absolute:
        together = "cannot be zero at the same time as"
        place["minCandidateNodesPercentage"].invalid(percentage, f"{together} minCandidateNodesAbsolute")
        place["minCandidateNodesAbsolute"].invalid(absolute, f"{together} minCandidateNodesPercentage")


def _inter_pod_affinity(args: kinds.InterPodAffinityArgs, place: FieldPath) -> None:
    _between(args.hard_pod_affinity_weight, 0, 100, place["hardPodAffinityWeight"])


def _pod_topology_spread(args: kinds.PodTopologySpreadArgs, place: FieldPath) -> None:
    kind, constraints = args.defaulting_type, args.default_constraints
    if kind not in ("System", "List"):
        place["defaultingType"].unsupported(kind, ["System", "List"])
    elif kind == "System" and constraints:
        place["defaultingType"].invalid(kind, "when .defaultConstraints are not empty")
    seen = set()
    for index, each in enumerate(constraints):
        here = place["defaultConstraints"][index]
        _constraint(each, here)
        identity = (each.topology_key, each.when_unsatisfiable)
        if identity in seen:
            here.duplicate(f"{{{', '.join(identity)}}}")
        seen.add(identity)


def _constraint(each: kinds.SpreadConstraint, place: FieldPath) -> None:
    if each.max_skew <= 0:
        place["maxSkew"].invalid(each.max_skew, "not in valid range (0, inf)")
    if each.topology_key:
        _label_name(each.topology_key, place["topologyKey"])
    else:
        place["topologyKey"].required("can not be empty")
    if not each.when_unsatisfiable:
        place["whenUnsatisfiable"].required("can not be empty")
    elif each.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        place["whenUnsatisfiable"].unsupported(each.when_unsatisfiable, ["DoNotSchedule", "ScheduleAnyway"])
    if each.label_selector is not None:
        place["labelSelector"].forbidden("constraint must not define a selector, as they deduced for each pod")


def _balanced_allocation(args: kinds.NodeResourcesBalancedAllocationArgs, place: FieldPath) -> None:
    seen = set()
    for index, resource in enumerate(args.resources):
        here = place["resources"][index]
        if resource.name in seen:
            here["name"].duplicate(resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            here["weight"].invalid(resource.weight, "must be 1")


def _node_resources_fit(args: kinds.NodeResourcesFitArgs, place: FieldPath) -> None:
    for index, resource in enumerate(args.ignored_resources):
        _label_name(resource, place["ignoredResources"][index])
    for index, group in enumerate(args.ignored_resource_groups):
        here = place["ignoredResourceGroups"][index]
        if "/" in group:
            here.invalid(group, "resource group name can't contain '/'")
        _label_name(group, here)
    _strategy(args.scoring_strategy, place["scoringStrategy"])


def _strategy(strategy: kinds.ScoringStrategy, place: FieldPath) -> None:
    if strategy.type not in _STRATEGIES:
        place["type"].unsupported(strategy.type, _STRATEGIES)
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            place["resources"][index]["weight"].invalid(resource.weight, detail)
    ratio, here = strategy.requested_to_capacity_ratio, place["requestedToCapacityRatio"]
    if strategy.type != _RATIO:
        if ratio is not None:
            here.forbidden(f"must be nil when type is not {_RATIO}")
    elif ratio is None:
        here.required(f"must be specified when type is {_RATIO}")
    else:
        _shape(ratio.shape, here["shape"])


def _shape(shape: Sequence[kinds.ShapePoint], place: FieldPath) -> None:
    if not shape:
        place.required("at least one point must be specified")
    falling = [i for i in range(1, len(shape)) if shape[i - 1].utilization >= shape[i].utilization]
    for index in falling[:1]:
        place[index]["utilization"].invalid(shape[index].utilization, "values must be sorted in increasing order")
    for index, point in enumerate(shape):
        _between(point.utilization, 0, 100, place[index]["utilization"])
        _between(point.score, 0, 10, place[index]["score"])


def _volume_binding(args: kinds.VolumeBindingArgs, place: FieldPath) -> None:
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        place["bindTimeoutSeconds"].invalid(args.bind_timeout_seconds, detail)
    _shape(args.shape, place["shape"])


def _dynamic_resources(args: kinds.DynamicResourcesArgs, place: FieldPath) -> None:
    if args.filter_timeout < Duration(0):
        place["filterTimeout"].invalid(args.filter_timeout, "must be zero or positive")
    if args.binding_timeout < Duration.of("1s"):
        place["bindingTimeout"].invalid(args.binding_timeout, "must be at least 1 second")


def _node_affinity(args: kinds.NodeAffinityArgs, place: FieldPath) -> None:
    added, here = args.added_affinity or NodeAffinity(), place["addedAffinity"]
    terms = added.required.node_selector_terms if added.required else []
    for index, term in enumerate(terms):
        _term(term, here["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][index])
    for index, preference in enumerate(added.preferred):
        if preference.weight:  # a preference without weight is never used
            _term(preference.preference, here["preferredDuringSchedulingIgnoredDuringExecution"][index]["preference"])


def _term(term: NodeSelectorTerm, place: FieldPath) -> None:
    for index, wanted in enumerate(term.match_expressions):
        here = place["matchExpressions"][index]
        if wanted.operator not in _OPERATORS:
            here["operator"].unsupported(wanted.operator, _OPERATORS)
        else:
            _report(requirement_errors(wanted.key, _OPERATORS[wanted.operator], wanted.values, here.path), place)
    for index, wanted in enumerate(term.match_fields):
        _field(wanted, place["matchFields"][index])


def _field(wanted: NodeSelectorRequirement, place: FieldPath) -> None:
    if wanted.operator not in ("In", "NotIn"):
        place["operator"].unsupported(wanted.operator, ["In", "NotIn"])
    elif len(wanted.values) != 1:
        place["values"].invalid(wanted.values, "must have one element")


def _kubenexus(args: kinds.KubeNexusArgs, place: FieldPath) -> None:
    supported = [each.value for each in TieBreak]
    if args.tie_break is not None and args.tie_break not in supported:
        place["tieBreak"].unsupported(args.tie_break, supported)
    if args.tier_boosts is not None:
        boosts, here = args.tier_boosts, place["tierBoosts"]
        for tier, boost in (("gold", boosts.gold), ("silver", boosts.silver), ("bronze", boosts.bronze)):
            _between(boost, 0, _MAX_BOOST, here[tier])
    for namespace, priority in args.namespace_priorities.items():
        here = place["namespacePriorities"][namespace]
        if not _NAMESPACE.fullmatch(namespace):
            here.invalid(namespace, "must be the name of a namespace: lower case letters, digits and '-'")
        _between(priority, -_MAX_BOOST, _MAX_BOOST, here)
    validate_queues(args.queues, place["queues"])
    if args.queue_usage_half_life_seconds:
        _between(args.queue_usage_half_life_seconds, 60, 100 * 86_400, place["queueUsageHalfLifeSeconds"])


def _coscheduling(args: kinds.CoschedulingArgs, place: FieldPath) -> None:
    _between(args.gang_deadline_seconds, 1, 86_400, place["gangDeadlineSeconds"])
    _between(args.reservation_seconds or 0, 0, 86_400, place["reservationSeconds"])
    _backfill(args.backfill, place["backfill"])
    if args.provisioning_class_name and not _CLASS_NAME.fullmatch(args.provisioning_class_name):
        place["provisioningClassName"].invalid(args.provisioning_class_name, "must be the name of a class")
    if args.starvation is not None:
        _starvation(args.starvation, place["starvation"])
    seen: set[str] = set()
    for index, level in enumerate(args.topology_levels):
        _level(level, seen, place["topologyLevels"][index])
    claimed: set[str] = set()
    for index, each in enumerate(args.topology_defaults):
        _default(each, seen, claimed, place["topologyDefaults"][index])


def _gang_preemption(args: kinds.GangPreemptionArgs, place: FieldPath) -> None:
    if args.pdb_policy not in PDB_POLICIES:
        place["pdbPolicy"].unsupported(args.pdb_policy, list(PDB_POLICIES))
    _between(args.cooldown_seconds, 0, 86_400, place["cooldownSeconds"])
    _between(args.fence_seconds, 1, 86_400, place["fenceSeconds"])
    _between(args.max_victims, 1, 5_000, place["maxVictims"])
    _between(args.max_moved_pods, 1, 100, place["maxMovedPods"])
    for index, namespace in enumerate(args.protected_namespaces):
        if not namespace:
            place["protectedNamespaces"][index].required("the name of a namespace")


def _resource_reservation(args: kinds.ResourceReservationArgs, place: FieldPath) -> None:
    _between(args.max_percent, 0, 100, place["maxPercent"])
    if not Duration.of("1m") <= args.max_duration <= Duration.of("720h"):
        place["maxDuration"].invalid(args.max_duration, "must be from 1m to 720h")
    for field, names in (("namespaces", args.namespaces), ("unlimitedNamespaces", args.unlimited_namespaces)):
        for index, name in enumerate(names):
            if not _NAMESPACE.fullmatch(name):
                place[field][index].invalid(name, "must be the name of a namespace: lower case letters, digits and '-'")


def _backfill(backfill: kinds.BackfillArgs, place: FieldPath) -> None:
    _between(backfill.ahead_seconds, 0, _MAX_AHEAD, place["aheadSeconds"])
    _between(backfill.late_seconds, 0, _MAX_AHEAD, place["lateSeconds"])
    _between(backfill.longest_seconds, 1, _MAX_AHEAD, place["longestSeconds"])
    _between(backfill.report_seconds, 0, _MAX_AHEAD, place["reportSeconds"])


def _starvation(starvation: kinds.Starvation, place: FieldPath) -> None:
    _between(starvation.threshold_seconds, 0, 86_400, place["thresholdSeconds"])
    _between(starvation.boost, 0, HIGHEST, place["boost"])
    if not -CRITICAL <= starvation.ceiling < CRITICAL:
        place["ceiling"].invalid(starvation.ceiling, f"must be below {CRITICAL}, which is system-cluster-critical")


def _level(level: kinds.TopologyLevelArgs, seen: set[str], place: FieldPath) -> None:
    if not level.name:
        place["name"].required()
    elif level.name in seen:
        place["name"].duplicate(level.name)
    seen.add(level.name)
    if not level.keys:
        place["keys"].required("at least one label of nodes")
    for index, key in enumerate(level.keys):
        _label_name(key, place["keys"][index])


def _default(each: kinds.TopologyDefault, levels: set[str], claimed: set[str], place: FieldPath) -> None:
    if not each.namespaces:
        place["namespaces"].required('names of namespaces, or "*" for all others')
    for index, namespace in enumerate(each.namespaces):
        if namespace in claimed:
            place["namespaces"][index].duplicate(namespace)
        claimed.add(namespace)
    if not each.required and not each.preferred:
        place["required"].required("a level, here or as preferred")
    for field, level in (("required", each.required), ("preferred", each.preferred)):
        if level and level not in levels and "/" not in level:
            place[field].invalid(level, f"must be a label of nodes or one of the levels {', '.join(sorted(levels))}")


def _between(value: int, least: int, most: int, place: FieldPath) -> None:
    if not least <= value <= most:
        place.invalid(value, f"not in valid range [{least}, {most}]")


def _label_name(name: str, place: FieldPath) -> None:
    for flaw in requirement_errors(name, Operator.EXISTS, ()):
        place.report(flaw.removeprefix("key: "))


def _report(sentences: Iterable[str], place: FieldPath) -> None:
    """Reports sentences that begin with their path."""
    for sentence in sentences:
        path, _, message = sentence.partition(": ")
        FieldPath(place.found, path).report(message)


_RULES: Final[Mapping[type[kinds.Args], Callable[[Any, FieldPath], None]]] = {
    kinds.DefaultPreemptionArgs: _default_preemption,
    kinds.InterPodAffinityArgs: _inter_pod_affinity,
    kinds.PodTopologySpreadArgs: _pod_topology_spread,
    kinds.NodeResourcesBalancedAllocationArgs: _balanced_allocation,
    kinds.NodeResourcesFitArgs: _node_resources_fit,
    kinds.VolumeBindingArgs: _volume_binding,
    kinds.DynamicResourcesArgs: _dynamic_resources,
    kinds.NodeAffinityArgs: _node_affinity,
    kinds.KubeNexusArgs: _kubenexus,
    kinds.CoschedulingArgs: _coscheduling,
    kinds.GangPreemptionArgs: _gang_preemption,
    kinds.ResourceReservationArgs: _resource_reservation,
    kinds.KueueArgs: lambda args, place: None,
    kinds.WorkloadAwareScoringArgs: validate_placement_args.workload_aware,
    kinds.TenantHardwareAffinityScoreArgs: validate_placement_args.tenant_hardware,
    kinds.ResourceFragmentationScoreArgs: lambda args, place: None,
}
