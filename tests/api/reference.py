"""Obviously right, slow twins of what the `api` room does, written over plain JSON, one number at a time."""

from fractions import Fraction
from math import ceil
from typing import Any

Json = dict[str, Any]

DEFAULTS = {"cpu": Fraction(1, 10), "memory": Fraction(200 * 2**20)}
UNITS: dict[str, Fraction | int] = {
    "": 1,
    "m": Fraction(1, 1000),
    "u": Fraction(1, 10**6),
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "k": 10**3,
    "G": 10**9,
}


def number(text: str | int) -> Fraction:
    digits = str(text).rstrip("mukKMGi")
    return Fraction(digits) * UNITS[str(text)[len(digits) :]]


def requests(pod: Json, *, status: bool, pod_level: bool, fill: dict[str, Fraction]) -> dict[str, Fraction]:
    names = {*fill, *_mentioned(pod)}
    counted = {name: _request(pod, name, status=status, pod_level=pod_level, fill=fill.get(name)) for name in names}
    return {name: amount for name, amount in counted.items() if amount is not None}


def rounded(amounts: dict[str, Fraction]) -> dict[str, int]:
    """What the scheduler keeps: cpu in thousandths, the rest in units, zeros and unknown names left out."""
    known = {
        name: amount
        for name, amount in amounts.items()
        if name in ("cpu", "memory", "ephemeral-storage") or "/" in name or name.startswith("hugepages-")
    }
    return {name: ceil(amount * (1000 if name == "cpu" else 1)) for name, amount in known.items() if amount}


def _request(pod: Json, name: str, *, status: bool, pod_level: bool, fill: Fraction | None) -> Fraction | None:
    spec, infeasible = pod["spec"], status and _infeasible(pod)
    wanted = _total(pod, name, fill, lambda c: c.get("resources", {}).get("requests"))
    counted = wanted
    if status:
        whole = pod["status"].get("resources") or {}
        if pod["status"].get("allocatedResources") is not None and whole.get("requests") is not None:
            allocated = _get(pod["status"]["allocatedResources"], name)
            in_force = _get(whole["requests"], name)
        else:
            allocated = _total(pod, name, fill, lambda c: _reported(pod, c, infeasible, ["allocatedResources"]))
            in_force = _total(
                pod, name, fill, lambda c: _reported(pod, c, infeasible, ["resources", "allocatedResources"])
            )
        counted = _most(None if infeasible else wanted, allocated, in_force)
    whole_requests = (spec.get("resources") or {}).get("requests") or {}
    if pod_level and any(map(_is_pod_level, whole_requests)) and _is_pod_level(name):
        whole_amount = _get(whole_requests, name)
        if status and pod["status"].get("resources") is not None:
            whole_amount = _most(
                None if infeasible else whole_amount,
                _get(pod["status"]["resources"].get("requests"), name),
                _get(pod["status"].get("allocatedResources"), name),
            )
        counted = counted if whole_amount is None else whole_amount
    overhead = _get(spec.get("overhead"), name)
    return counted if overhead is None else overhead + (counted or 0)


def _total(pod: Json, name: str, fill: Fraction | None, listing: Any) -> Fraction | None:
    """max(containers + sidecars, each init container + the sidecars before it), None where nobody mentions it."""

    def amount(container: Json) -> Fraction | None:
        found = _get(listing(container), name)
        return fill if found is None else found

    inits = pod["spec"].get("initContainers", [])
    sidecars = [c for c in inits if c.get("restartPolicy") == "Always"]
    stages = [_sum([amount(c) for c in [*pod["spec"].get("containers", []), *sidecars]])]
    for index, container in enumerate(inits):
        before = [c for c in inits[:index] if c.get("restartPolicy") == "Always"]
        stages.append(_sum([amount(c) for c in [*before, container]]))
    return _most(*stages)


def _reported(pod: Json, container: Json, infeasible: bool, sources: list[str]) -> Any:
    statuses = [*pod["status"].get("containerStatuses", []), *pod["status"].get("initContainerStatuses", [])]
    for status in (status for status in statuses[:] if status["name"] == container["name"]):
        for source in sources:
            found = status.get(source)
            found = found.get("requests") if source == "resources" and found is not None else found
            if found is not None:
                return found
        break
    return None if infeasible else container.get("resources", {}).get("requests")


def _infeasible(pod: Json) -> bool:
    pending = [c for c in pod["status"].get("conditions", []) if c["type"] == "PodResizePending"]
    return bool(pending) and pending[0].get("reason") == "Infeasible"


def _is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _get(listing: Json | None, name: str) -> Fraction | None:
    return number(listing[name]) if listing and name in listing else None


def _sum(amounts: list[Fraction | None]) -> Fraction | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, start=Fraction(0)) if known else None


def _most(*amounts: Fraction | None) -> Fraction | None:
    return max((amount for amount in amounts if amount is not None), default=None)


def _mentioned(value: Any) -> set[str]:
    """Every resource name anywhere in a pod."""
    if isinstance(value, dict):
        here = {key for key, held in value.items() if key in NAMES and not isinstance(held, dict)}
        return here.union(*map(_mentioned, value.values()))
    return set().union(*map(_mentioned, value)) if isinstance(value, list) else set()


NAMES = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "storage")


def selects(selector: Json | None, labels: dict[str, str]) -> bool:
    """A label selector, read aloud."""
    if selector is None:
        return False
    wanted = [
        {"key": key, "operator": "In", "values": [value]} for key, value in selector.get("matchLabels", {}).items()
    ]
    return all(holds(each, labels) for each in [*wanted, *selector.get("matchExpressions", [])])


def holds(wanted: Json, labels: dict[str, str]) -> bool:
    value, values = labels.get(wanted["key"]), wanted.get("values", [])
    match wanted["operator"]:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return is_integer(value) and int(value or "") > int(values[0])
        case _:
            return is_integer(value) and int(value or "") < int(values[0])


def is_integer(value: str | None) -> bool:
    if not value or not value.removeprefix("-").removeprefix("+").isdigit() or not value.isascii():
        return False
    return -(2**63) <= int(value) < 2**63
