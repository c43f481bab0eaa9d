"""The rules of kube-scheduler 1.37 for one pod and one node, written from its sources, with plain integers.

Effective requests come from `api.resources.pod_requests`, which is judged by itself against upstream's own answers.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kubenexus.api.core import Affinity, NodeSelectorRequirement, NodeSelectorTerm, Pod, PreferredSchedulingTerm
from kubenexus.api.node_selectors import parse_preferred
from kubenexus.api.quantity import Quantity, read_quantity
from kubenexus.api.resource_names import is_extended, is_scalar
from kubenexus.api.resources import pod_requests
from kubenexus.framework.object_names import claim_mark
from kubenexus.framework.verdict import Code
from kubenexus.plugins.dynamic_resources.extended_resources import extended_claim
from kubenexus.testing.harness import NodeInfo

BASIC = ("cpu", "memory", "ephemeral-storage")
Reasons = list[tuple[str, Code]]


# --- amounts ----------------------------------------------------------------------------------------------------------


def whole(name: str, quantity: Quantity) -> int:
    return quantity.milli() if name == "cpu" else quantity.units()


def asked(pod: Pod, **options: Any) -> dict[str, int]:
    """What a pod asks for, of resources that the scheduler counts."""
    found = pod_requests(pod, **options)
    return {name: whole(name, q) for name, q in found.items() if name in BASIC or is_scalar(name)}


def offered(info: NodeInfo) -> dict[str, int]:
    """Allocatable; `pods` apart from the others."""
    listed = {name: max(whole(name, read_quantity(text)), 0) for name, text in info.node.status.allocatable.items()}
    return {name: amount for name, amount in listed.items() if name in (*BASIC, "pods") or is_scalar(name)}


def taken(info: NodeInfo, name: str) -> int:
    return sum(asked(pod, status=True).get(name, 0) for pod in info.pods)


def taken_nonzero(info: NodeInfo, name: str) -> int:
    """As `taken`, with the defaults that scoring assumes for containers that ask for no cpu or memory."""
    return sum(_nonzero(pod, name) for pod in info.pods) if name in ("cpu", "memory") else taken(info, name)


def _nonzero(pod: Pod, name: str) -> int:
    plain = asked(pod, status=True)
    for_the_pod = pod.spec.resources.requests if pod.spec.resources else None
    pod_level = any(n in ("cpu", "memory") or n.startswith("hugepages-") for n in for_the_pod or {})
    if pod_level and name in pod_requests(pod, status=True):
        return plain.get(name, 0)
    return asked(pod, status=True, fill=True).get(name, 0)


# --- filters ----------------------------------------------------------------------------------------------------------


class NodeName:
    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        if pod.spec.node_name in ("", info.node.metadata.name):
            return []
        return [("node(s) didn't match the requested node name", Code.UNRESOLVABLE)]


class NodeUnschedulable:
    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        if not info.node.spec.unschedulable:
            return []
        if tolerates(pod, "node.kubernetes.io/unschedulable", "", "NoSchedule"):
            return []
        return [("node(s) were unschedulable", Code.UNRESOLVABLE)]


class TaintToleration:
    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        for taint in info.node.spec.taints:
            hard = taint.effect in ("NoSchedule", "NoExecute")
            if hard and not tolerates(pod, taint.key, taint.value, taint.effect):
                return [("node(s) had untolerated taint(s)", Code.UNRESOLVABLE)]
        return []

    def score_one(self, pod: Pod, info: NodeInfo) -> int:
        count = 0
        for taint in info.node.spec.taints:
            soft = taint.effect == "PreferNoSchedule"
            if soft and not tolerates(pod, taint.key, taint.value, taint.effect):
                count += 1
        return count


def tolerates(pod: Pod, key: str, value: str, effect: str) -> bool:
    for toleration in pod.spec.tolerations:
        if toleration.effect not in ("", effect) or toleration.key not in ("", key):
            continue
        if toleration.operator == "Exists":
            return True
        if toleration.operator in ("", "Equal") and toleration.value == value:
            return True
    return False


class NodeAffinity:
    """`added` is the profile's own affinity, required of every pod."""

    def __init__(
        self, added: Sequence[NodeSelectorTerm] | None = None, added_wishes: Sequence[PreferredSchedulingTerm] = ()
    ) -> None:
        self.added = added
        self.added_wishes = added_wishes

    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        if self.added is not None and not any_term(self.added, info):
            return [("node(s) didn't match scheduler-enforced node affinity", Code.UNRESOLVABLE)]
        labels = info.node.metadata.labels
        selected = all(labels.get(key) == value for key, value in pod.spec.node_selector.items())
        terms = required_terms(pod.spec.affinity)
        if selected and (terms is None or any_term(terms, info)):
            return []
        return [("node(s) didn't match Pod's node affinity/selector", Code.UNRESOLVABLE)]

    def score_one(self, pod: Pod, info: NodeInfo) -> int | None:
        affinity = pod.spec.affinity
        wishes = affinity.node_affinity.preferred if affinity and affinity.node_affinity else []
        parse_preferred(wishes)  # one that cannot be parsed fails the attempt
        if not wishes and not self.added_wishes:
            return None
        return sum(w.weight for w in [*wishes, *self.added_wishes] if term_matches(w.preference, info))


def required_terms(affinity: Affinity | None) -> list[NodeSelectorTerm] | None:
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    return None if required is None else required.node_selector_terms


def any_term(terms: Sequence[NodeSelectorTerm], info: NodeInfo) -> bool:
    return any(term_matches(term, info) for term in terms)


def term_matches(term: NodeSelectorTerm, info: NodeInfo) -> bool:
    """An empty term, and one that cannot be parsed, matches nothing."""
    if not (term.match_expressions or term.match_fields) or not term_parses(term):
        return False
    fields = {"metadata.name": info.node.metadata.name}
    return all(label_holds(e, info.node.metadata.labels) for e in term.match_expressions) and all(
        (fields.get(f.key, "") == f.values[0]) == (f.operator == "In") for f in term.match_fields
    )


def term_parses(term: NodeSelectorTerm) -> bool:
    """Of a field exactly one value can be wanted, or not wanted."""
    return all(map(parses, term.match_expressions)) and all(
        f.operator in ("In", "NotIn") and len(f.values) == 1 for f in term.match_fields
    )


def parses(wanted: NodeSelectorRequirement) -> bool:
    """Values must be possible values of a label: so the operand of Gt and Lt cannot begin with a minus."""
    if not all(re.fullmatch(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", value) for value in wanted.values):
        return False
    match wanted.operator:
        case "In" | "NotIn":
            return len(wanted.values) > 0
        case "Exists" | "DoesNotExist":
            return not wanted.values
        case "Gt" | "Lt":
            return len(wanted.values) == 1 and number(wanted.values[0]) is not None
    return False


def label_holds(wanted: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    has, value = wanted.key in labels, labels.get(wanted.key, "")
    match wanted.operator:
        case "In":
            return has and value in wanted.values
        case "NotIn":
            return not has or value not in wanted.values
        case "Exists":
            return has
        case "DoesNotExist":
            return not has
    mine, theirs = number(value), number(wanted.values[0])
    if not has or mine is None or theirs is None:
        return False
    return mine > theirs if wanted.operator == "Gt" else mine < theirs


def number(text: str) -> int | None:
    try:
        parsed = int(text)
    except ValueError:
        return None
    return parsed if -(2**63) <= parsed < 2**63 else None


class NodePorts:
    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        taken_ports = [port for other in info.pods for port in host_ports(other)]
        for protocol, number_, address in host_ports(pod):
            for p, n, a in taken_ports:
                if (p, n) == (protocol, number_) and (a == address or "0.0.0.0" in (a, address)):
                    return [("node(s) didn't have free ports for the requested pod ports", Code.UNSCHEDULABLE)]
        return []


def host_ports(pod: Pod) -> list[tuple[str, int, str]]:
    sidecars = [c for c in pod.spec.init_containers if c.restart_policy == "Always"]
    return [
        (port.protocol or "TCP", port.host_port, port.host_ip or "0.0.0.0")
        for container in [*pod.spec.containers, *sidecars]
        for port in container.ports
        if port.host_port > 0
    ]


class NodeDeclaredFeatures:
    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        spec, needed = pod.spec, set()
        started = [*spec.containers, *spec.init_containers]
        if any(rule.action == "RestartAllContainers" for c in started for rule in c.restart_policy_rules):
            needed.add("RestartAllContainersOnContainerExits")
        if spec.host_network and not spec.host_users:
            needed.add("UserNamespacesHostNetworkSupport")
        if any(m.bind_mount_options for c in [*started, *spec.ephemeral_containers] for m in c.volume_mounts):
            needed.add("VolumeBindMountOptions")
        if needed <= set(info.node.status.declared_features):
            return []
        return [("node(s) didn't match Pod's required features", Code.UNRESOLVABLE)]


# --- resources --------------------------------------------------------------------------------------------------------


class NodeResourcesFit:
    """`kind` and `resources` (name and weight) are the scoring strategy; `shape` of RequestedToCapacityRatio."""

    def __init__(
        self,
        kind: str = "LeastAllocated",
        resources: Sequence[tuple[str, int]] = (("cpu", 1), ("memory", 1)),
        shape: Sequence[tuple[int, int]] = (),
        ignored: Sequence[str] = (),
        ignored_groups: Sequence[str] = (),
    ) -> None:
        self.kind, self.resources, self.shape = kind, resources, shape
        self.ignored, self.ignored_groups = ignored, ignored_groups

    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        has, reasons = offered(info), []
        if len(info.pods) + 1 > has.get("pods", 0):
            reasons.append(("Too many pods", Code.UNSCHEDULABLE))
        for name, amount in asked(pod, status=False).items():
            if amount == 0 or self._ignores(name) or self._delegated(name, info):
                continue
            if amount > has.get(name, 0) - taken(info, name):
                hopeless = amount > has.get(name, 0)
                reasons.append((f"Insufficient {name}", Code.UNRESOLVABLE if hopeless else Code.UNSCHEDULABLE))
        return reasons

    def _ignores(self, name: str) -> bool:
        return is_extended(name) and (name in self.ignored or name.partition("/")[0] in self.ignored_groups)

    def _delegated(self, name: str, info: NodeInfo) -> bool:
        return needs_claims(name, info)

    def score_one(self, pod: Pod, info: NodeInfo) -> int:
        wanted = asked(pod, status=False, pod_level=False, fill=True)
        total = weights = 0
        for name, weight in self.resources:
            capacity = offered(info).get(name, 0) if name != "pods" else 0
            if capacity == 0 or (is_scalar(name) and not wanted.get(name)):
                continue
            part = self._part(taken_nonzero(info, name) + wanted.get(name, 0), capacity)
            if self.kind != "RequestedToCapacityRatio" or part > 0:
                total, weights = total + part * weight, weights + weight
        if not weights:
            return 0
        if self.kind == "RequestedToCapacityRatio":
            return math.floor(total / weights + 0.5)
        return total // weights

    def _part(self, would_take: int, capacity: int) -> int:
        if self.kind == "LeastAllocated":
            return (capacity - would_take) * 100 // capacity if would_take <= capacity else 0
        used = min(would_take, capacity) * 100 // capacity
        return used if self.kind == "MostAllocated" else self._on_line(used)

    def _on_line(self, used: int) -> int:
        points = [(x, 10 * y) for x, y in self.shape]
        for i, (x, y) in enumerate(points):
            if used <= x:
                if i == 0:
                    return y
                x0, y0 = points[i - 1]
                return y0 + math.trunc((y - y0) * (used - x0) / (x - x0))
        return points[-1][1]


def is_backed(name: str, info: NodeInfo) -> bool:
    """Whether a device class backs the resource."""
    classes = info.cluster.device_classes.values()
    backed = {c.spec.extended_resource_name for c in classes}
    backed |= {f"deviceclass.resource.kubernetes.io/{c.metadata.name}" for c in classes}
    return name in backed


def needs_claims(name: str, info: NodeInfo) -> bool:
    """Where no device plugin offers a resource that a device class backs, DynamicResources judges."""
    return is_backed(name, info) and offered(info).get(name, 0) == 0


class DynamicResources:
    """Refuses what needs device claims: here there are neither claims nor devices."""

    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        if pod.spec.resource_claims:
            first, where = pod.spec.resource_claims[0], pod.metadata.namespace
            missing = f'could not find ResourceClaim "{where}/{first.resource_claim_name}"'
            unmade = f'pod "{pod.key}": ResourceClaim not created yet'
            return [(missing if first.resource_claim_name else unmade, Code.UNRESOLVABLE)]
        wanted = [name for name, amount in asked(pod, status=False).items() if amount and "/" in name]
        if not any(is_backed(name, info) for name in wanted):
            return []
        if any(not is_backed(name, info) and not offered(info).get(name, 0) for name in wanted):
            return [("cannot fit resource", Code.UNRESOLVABLE)]
        needed = [name for name in wanted if needs_claims(name, info)]
        if not needed:
            return []
        before = 0
        for request in extended_claim(pod, needed, dict.fromkeys(needed, "c"))[0].devices.requests:
            count = 0 if request.exactly is None else request.exactly.count
            if count > 32 - before:
                limit = f"exceeds the claim limit of 32, with {before} already accounted for"
                place = f"claim {claim_mark(-1)}, request {request.name}"
                return [(f"{place}: adding {count} devices {limit}", Code.ERROR)]
            before += count
        return [("cannot allocate all claims", Code.UNRESOLVABLE)]

    def score_one(self, pod: Pod, info: NodeInfo) -> int:
        """Only claims with alternatives have points, and a pod with claims fits nowhere here."""
        return 0


class NodeResourcesBalancedAllocation:
    def __init__(self, resources: Sequence[str] = ("cpu", "memory")) -> None:
        self.resources = resources

    def score_one(self, pod: Pod, info: NodeInfo) -> int | None:
        wanted = asked(pod, status=True)
        if not any(wanted.get(name, 0) for name in self.resources):
            return None
        counted = [n for n in self.resources if n != "pods" and (wanted.get(n) or not is_scalar(n))]
        counted = [n for n in counted if offered(info).get(n, 0)]
        without = [(taken(info, n), offered(info)[n]) for n in counted]
        with_pod = [(taken(info, n) + wanted.get(n, 0), offered(info)[n]) for n in counted]
        return 50 + (50 + evenness(with_pod) - evenness(without)) // 2


def evenness(used: list[tuple[int, int]]) -> int:
    fractions = [min(float(amount) / float(capacity), 1.0) for amount, capacity in used]
    std = 0.0
    if len(fractions) == 2:
        std = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = added(fractions) / len(fractions)
        std = math.sqrt(added([(f - mean) * (f - mean) for f in fractions]) / len(fractions))
    return int((1 - std) * 100.0)


def added(parts: list[float]) -> float:
    """One after the other, as Go adds; newer Pythons' `sum` is more exact than that."""
    total = 0.0
    for part in parts:
        total += part
    return total


class ImageLocality:
    def score_one(self, pod: Pod, info: NodeInfo) -> int:
        spec = pod.spec
        names = [c.image for c in [*spec.init_containers, *spec.containers]]
        names += [v.image.reference for v in spec.volumes if v.image is not None]
        total = 0
        for name in names:
            state = info.cluster.images.get(name if ":" in name.rpartition("/")[2] else f"{name}:latest")
            if state is not None and info.node.metadata.name in state.nodes:
                total += int(float(state.size) * (float(len(state.nodes)) / float(len(info.cluster.nodes))))
        least, most = 23 << 20, (1000 << 20) * len(names)
        return 100 * (min(max(total, least), most) - least) // (most - least)


# All of them, by the names of the rules that they are the references of.
REFERENCES: dict[str, Any] = {
    rule.__name__: rule()
    for rule in (
        *(NodeName, NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit),
        *(NodeResourcesBalancedAllocation, ImageLocality, NodeDeclaredFeatures, DynamicResources),
    )
}
