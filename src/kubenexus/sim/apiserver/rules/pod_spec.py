"""Validation of pod specs."""

from collections.abc import Iterator, Mapping
from typing import Any

from kubenexus.api.quantity import to_nano
from kubenexus.sim.apiserver import names
from kubenexus.sim.apiserver.status_errors import FieldError, Json, duplicate, forbidden, invalid, required, unsupported

_POLICIES = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
}
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINT_OPERATORS = ("Equal", "Exists", "Lt", "Gt")


def check_pod_spec(spec: Json, at: str = "spec") -> list[FieldError]:
    """Returns all errors of a spec, with field paths below `at`."""
    flaws = list(_containers(spec, at))
    for field, known in _POLICIES.items():
        if field in spec and spec[field] not in known:
            flaws.append(unsupported(f"{at}.{field}", spec[field], known))
    flaws += names.check_labels(spec.get("nodeSelector") or {}, f"{at}.nodeSelector")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        flaws += _toleration(toleration, f"{at}.tolerations[{index}]")
    flaws += _spreading(spec.get("topologySpreadConstraints") or [], f"{at}.topologySpreadConstraints")
    flaws += _affinity(spec.get("affinity") or {}, f"{at}.affinity")
    flaws += _odds_and_ends(spec, at)
    return flaws


def _containers(spec: Json, at: str) -> Iterator[FieldError]:
    if not spec.get("containers"):
        yield required(f"{at}.containers")
    seen: set[str] = set()
    for group in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(group) or ()):
            where = f"{at}.{group}[{index}]"
            yield from _container(container, where)
            name = container.get("name", "")
            if name and name in seen:
                yield duplicate(f"{where}.name", name)
            seen.add(name)


def _container(container: Json, at: str) -> Iterator[FieldError]:
    name = container.get("name", "")
    if not name:
        yield required(f"{at}.name")
    elif why := names.label(name):
        yield invalid(f"{at}.name", name, why)
    if not container.get("image"):
        yield required(f"{at}.image")
    for index, port in enumerate(container.get("ports") or ()):
        yield from _port(port, f"{at}.ports[{index}]")
    yield from check_resources(container.get("resources") or {}, f"{at}.resources")


def _port(port: Json, at: str) -> Iterator[FieldError]:
    number = port.get("containerPort", 0)
    if not number:
        yield required(f"{at}.containerPort")
    elif not 0 < number < 65536:
        yield invalid(f"{at}.containerPort", number, "must be between 1 and 65535, inclusive")
    if "hostPort" in port and not 0 <= port["hostPort"] < 65536:
        yield invalid(f"{at}.hostPort", port["hostPort"], "must be between 1 and 65535, inclusive")
    if port.get("protocol", "TCP") not in {"TCP", "UDP", "SCTP"}:
        yield unsupported(f"{at}.protocol", port["protocol"], ("SCTP", "TCP", "UDP"))


def check_resources(resources: Json, at: str) -> Iterator[FieldError]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if to_nano(amount) < 0:
                yield invalid(f"{at}.{group}[{name}]", amount, "must be greater than or equal to 0")
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is not None and to_nano(amount) > to_nano(limit):
            yield invalid(f"{at}.requests", amount, f"must be less than or equal to {name} limit of {limit}")
        elif not _shareable(name) and amount != limit:
            if limit is None:
                yield required(f"{at}.limits", "Limit must be set for non overcommitable resources")
            else:
                yield invalid(f"{at}.requests", amount, f"must be equal to {name} limit of {limit}")


def _shareable(resource: str) -> bool:
    """Whether the resource may be overcommitted: not devices and huge pages."""
    prefix = resource.rpartition("/")[0]
    own = not prefix or prefix.endswith("kubernetes.io")
    return own and not resource.startswith("hugepages-")


def _toleration(toleration: Json, at: str) -> Iterator[FieldError]:
    operator = toleration.get("operator", "")
    if toleration.get("key") and (why := names.qualified(toleration["key"])):
        yield invalid(f"{at}.key", toleration["key"], why)
    if not toleration.get("key") and operator != "Exists":
        yield invalid(
            f"{at}.operator",
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if operator and operator not in _TAINT_OPERATORS:
        yield unsupported(f"{at}.operator", operator, ("Equal", "Exists"))
    if operator == "Exists" and toleration.get("value"):
        yield invalid(f"{at}.operator", operator, "value must be empty when `operator` is 'Exists'")
    if toleration.get("effect") and toleration["effect"] not in _EFFECTS:
        yield unsupported(f"{at}.effect", toleration["effect"], _EFFECTS)
    if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
        yield invalid(
            f"{at}.effect", toleration.get("effect", ""), "effect must be 'NoExecute' when `tolerationSeconds` is set"
        )


def _spreading(constraints: list[Json], at: str) -> Iterator[FieldError]:
    seen = set()
    for index, each in enumerate(constraints):
        where = f"{at}[{index}]"
        if each.get("maxSkew", 0) <= 0:
            yield invalid(f"{where}.maxSkew", each.get("maxSkew", 0), "must be greater than zero")
        if not each.get("topologyKey"):
            yield required(f"{where}.topologyKey", "can not be empty")
        wish = each.get("whenUnsatisfiable", "")
        if wish not in {"DoNotSchedule", "ScheduleAnyway"}:
            yield unsupported(f"{where}.whenUnsatisfiable", wish, ("DoNotSchedule", "ScheduleAnyway"))
        pair = (each.get("topologyKey", ""), wish)
        if pair in seen:
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")
        seen.add(pair)
        yield from names.check_selector(each.get("labelSelector"), f"{where}.labelSelector")


def _affinity(affinity: Json, at: str) -> Iterator[FieldError]:
    node = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    where = f"{at}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    if node is not None and not node.get("nodeSelectorTerms"):
        yield required(f"{where}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate((node or {}).get("nodeSelectorTerms") or ()):
        for number, each in enumerate(term.get("matchExpressions") or ()):
            yield from _node_term(each, f"{where}.nodeSelectorTerms[{index}].matchExpressions[{number}]")
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _pod_terms(affinity.get(kind) or {}, f"{at}.{kind}")


def _node_term(each: Mapping[str, Any], at: str) -> Iterator[FieldError]:
    operator, values = each.get("operator", ""), each.get("values") or ()
    if operator in {"In", "NotIn"}:
        if not values:
            yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            yield forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in {"Gt", "Lt"}:
        if len(values) != 1:
            yield required(f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(f"{at}.operator", operator, "not a valid selector operator")
    if why := names.qualified(each.get("key", "")):
        yield invalid(f"{at}.key", each.get("key", ""), why)


def _pod_terms(affinity: Json, at: str) -> Iterator[FieldError]:
    hard = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    soft = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    for index, term in enumerate(hard):
        yield from _pod_term(term, f"{at}.requiredDuringSchedulingIgnoredDuringExecution[{index}]")
    for index, each in enumerate(soft):
        where = f"{at}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        if not 1 <= each.get("weight", 0) <= 100:
            yield invalid(f"{where}.weight", each.get("weight", 0), "must be in the range 1-100")
        yield from _pod_term(each.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")


def _pod_term(term: Json, at: str) -> Iterator[FieldError]:
    if not term.get("topologyKey"):
        yield required(f"{at}.topologyKey", "can not be empty")
    elif why := names.qualified(term["topologyKey"]):
        yield invalid(f"{at}.topologyKey", term["topologyKey"], why)
    yield from names.check_selector(term.get("labelSelector"), f"{at}.labelSelector")


def _odds_and_ends(spec: Json, at: str) -> Iterator[FieldError]:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 0 < deadline <= 2147483647:
        yield invalid(f"{at}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    if spec.get("nodeName") and (why := names.subdomain(spec["nodeName"])):
        yield invalid(f"{at}.nodeName", spec["nodeName"], why)
    if spec.get("schedulingGates") and spec.get("nodeName"):
        yield forbidden(f"{at}.nodeName", "cannot be set until all schedulingGates have been cleared")
    gates = [gate.get("name", "") for gate in spec.get("schedulingGates") or ()]
    for index, gate in enumerate(gates):
        where = f"{at}.schedulingGates[{index}]"
        if why := names.qualified(gate):
            yield invalid(where, gate, why)
        if gate in gates[:index]:
            yield duplicate(where, gate)
