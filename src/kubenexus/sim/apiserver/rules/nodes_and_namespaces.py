"""The rules of nodes, namespaces, leases, disruption budgets and priority classes."""

import ipaddress
import re
from typing import Any

from kubenexus.api.quantity import Quantity
from kubenexus.sim.apiserver import names
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.rules.base import ClusterReader, Rule
from kubenexus.sim.apiserver.rules.templates import drop_false, fill
from kubenexus.sim.apiserver.status_errors import (
    FieldError,
    Json,
    duplicate,
    forbidden,
    forbidden_object,
    immutable,
    invalid,
    required,
    unsupported,
)

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_HIGHEST = 1_000_000_000
_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)

# ---- nodes -----------------------------------------------------------------------------------------------------------


_INFO = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"),
    *("kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"),
)


def _default_node(node: Json) -> None:
    drop_false(node.setdefault("spec", {}), "unschedulable")
    status = node.setdefault("status", {})
    fill(status.setdefault("nodeInfo", {}), dict.fromkeys(_INFO, ""))
    status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {"Port": 0})
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])
    if node["spec"].get("podCIDR"):
        node["spec"].setdefault("podCIDRs", [node["spec"]["podCIDR"]])


def _admit_node(node: Json, cluster: ClusterReader) -> None:
    """Taints a new node as not ready, regardless of its conditions. The node's agent removes the taint."""
    if not cluster.admits("TaintNodesByCondition"):
        return
    taints = node["spec"].get("taints") or []
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    if not any(each.get("key") == taint["key"] and each.get("effect") == taint["effect"] for each in taints):
        node["spec"]["taints"] = [*taints, taint]


def _check_node(node: Json) -> list[FieldError]:
    flaws: list[FieldError] = []
    seen = set()
    for index, taint in enumerate(node["spec"].get("taints") or ()):
        where = f"metadata.taints[{index}]"  # the path that a real server reports
        flaws += _check_taint(taint, where)
        pair = (taint.get("key"), taint.get("effect"))
        if pair in seen:
            flaws.append(duplicate(where, taint))
        seen.add(pair)
    for index, block in enumerate(node["spec"].get("podCIDRs") or ()):
        flaws += _check_block(block, f"spec.podCIDRs[{index}]")
    return flaws + _check_amounts(node)


def _check_taint(taint: Json, at: str) -> list[FieldError]:
    flaws = []
    if why := names.qualified(taint.get("key", "")):
        flaws.append(invalid(f"{at}.key", taint.get("key", ""), why))
    if why := names.label_value(taint.get("value", "")):
        flaws.append(invalid(f"{at}.value", taint["value"], why))
    effect = taint.get("effect", "")
    if not effect:
        flaws.append(required(f"{at}.effect"))
    elif effect not in _EFFECTS:
        flaws.append(unsupported(f"{at}.effect", effect, _EFFECTS))
    return flaws


def _check_block(block: str, at: str) -> list[FieldError]:
    try:
        ipaddress.ip_network(block, strict=False)
    except ValueError:
        return [invalid(at, block, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    return []


def _check_amounts(node: Json) -> list[FieldError]:
    flaws = []
    for group in ("capacity", "allocatable"):
        for name, amount in ((node.get("status") or {}).get(group) or {}).items():
            if Quantity.parse(amount).sign < 0:
                flaws.append(invalid(f"status.{group}.{name}", amount, "must be greater than or equal to 0"))
    return flaws


def _check_node_update(new: Json, old: Json) -> list[FieldError]:
    flaws = []
    for field, why in (("podCIDRs", 'node updates may not change podCIDR except from "" to valid'), ("providerID", "")):
        before, after = old["spec"].get(field), new["spec"].get(field)
        if before and before != after:
            text = why or 'node updates may not change providerID except from "" to valid'
            flaws.append(forbidden(f"spec.{field}", text))
    return flaws


NODE = Rule(default=_default_node, admit=_admit_node, check=_check_node, check_update=_check_node_update)

# ---- namespaces ------------------------------------------------------------------------------------------------------

_LABEL = "kubernetes.io/metadata.name"


def _default_namespace(namespace: Json) -> None:
    name = namespace["metadata"].get("name", "")
    if name:
        namespace["metadata"].setdefault("labels", {})[_LABEL] = name
    spec = namespace.setdefault("spec", {})
    if not spec.get("finalizers"):
        spec["finalizers"] = ["kubernetes"]


def _keep_finalizers(new: Json, old: Json, _: ClusterReader) -> None:
    new["spec"] = old["spec"]


NAMESPACE = Rule(
    default=_default_namespace,
    admit_update=_keep_finalizers,
    status=lambda _: {"phase": "Active"},
    name=names.label,
    returns_deleted=True,
)

# ---- leases ----------------------------------------------------------------------------------------------------------


def _check_lease(lease: Json) -> list[FieldError]:
    spec, flaws = lease.get("spec") or {}, []
    if "leaseDurationSeconds" in spec and spec["leaseDurationSeconds"] <= 0:
        flaws.append(invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0"))
    if spec.get("leaseTransitions", 0) < 0:
        why = "must be greater than or equal to 0"
        flaws.append(invalid("spec.leaseTransitions", spec["leaseTransitions"], why))
    return flaws


LEASE = Rule(
    default=lambda lease: fill(lease, {"spec": {}}), check=_check_lease, unconditional=False, create_on_update=True
)

# ---- disruption budgets ----------------------------------------------------------------------------------------------

_COUNTS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def _check_budget(budget: Json) -> list[FieldError]:
    spec = budget.get("spec") or {}
    flaws = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        flaws.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if field in spec:
            flaws += check_share(spec[field], f"spec.{field}")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in {"IfHealthyBudget", "AlwaysAllow"}:
        known = ("AlwaysAllow", "IfHealthyBudget")
        flaws.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, known))
    return flaws + names.check_selector(spec.get("selector"), "spec.selector")


def check_share(value: Any, field: str) -> list[FieldError]:
    """Checks that the value is a number of at least 0, or a percentage."""
    if isinstance(value, int):
        return [invalid(field, value, "must be greater than or equal to 0")] if value < 0 else []
    if not _PERCENT.fullmatch(value):
        return [invalid(field, value, _PERCENT_RULE)]
    return [invalid(field, value, "must not be greater than 100%")] if int(value[:-1]) > 100 else []


def _check_budget_status(new: Json, _: Json) -> list[FieldError]:
    status = new.get("status") or {}
    why = "must be greater than or equal to 0"
    return [invalid(f"status.{key}", status[key], why) for key in _COUNTS if status.get(key, 0) < 0]


BUDGET = Rule(
    default=lambda budget: fill(budget, {"spec": {}}),
    check=_check_budget,
    check_status=_check_budget_status,
    status=lambda _: dict(_COUNTS),
    unconditional=False,
    generation=True,
)

# ---- priority classes ------------------------------------------------------------------------------------------------

_CLASSES = ServedKind("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass")
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def _default_class(found: Json) -> None:
    fill(found, {"value": 0, "preemptionPolicy": "PreemptLowerPriority"})


def _admit_class(found: Json, cluster: ClusterReader) -> None:
    if found.get("globalDefault"):
        name = found["metadata"].get("name", "")
        for each in cluster.all(_CLASSES.qualified):
            if each.get("globalDefault") and each["metadata"]["name"] != name:
                why = (
                    f"PriorityClass {each['metadata']['name']} is already marked as default. Only one default can exist"
                )
                raise forbidden_object(_CLASSES, name, why)


def _check_class(found: Json) -> list[FieldError]:
    name, value = found["metadata"].get("name", ""), found["value"]
    if name.startswith("system-") and SYSTEM_CLASSES.get(name) != value:
        return [
            forbidden("metadata.name", "priority class names with 'system-' prefix are reserved for system use only")
        ]
    if value > _HIGHEST and name not in SYSTEM_CLASSES:
        return [forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")]
    return []


def _check_class_update(new: Json, old: Json) -> list[FieldError]:
    flaws = []
    if new["value"] != old["value"]:
        flaws.append(forbidden("value", "may not be changed in an update."))
    if new["preemptionPolicy"] != old["preemptionPolicy"]:
        flaws.append(immutable("preemptionPolicy", new["preemptionPolicy"]))
    return flaws


PRIORITY_CLASS = Rule(
    default=_default_class,
    admit=_admit_class,
    check=_check_class,
    check_update=_check_class_update,
    generation=True,
)
