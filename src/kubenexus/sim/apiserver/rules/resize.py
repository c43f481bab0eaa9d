"""`pods/resize`: changes resources of running containers. Other changes in the request are ignored."""

from collections.abc import Iterator

from kubenexus.sim.apiserver.rules.pods import qos_class
from kubenexus.sim.apiserver.status_errors import FieldError, Json, forbidden, invalid

_GROUPS = ("containers", "initContainers")
_RESIZABLE = {"cpu", "memory"}


def resized(new: Json, old: Json) -> Json:
    """Returns the old pod with the new resources. If the containers differ, `check` reports it."""
    spec = dict(old["spec"])
    for group in _GROUPS:
        wanted, have = new["spec"].get(group) or [], old["spec"].get(group) or []
        if [each.get("name") for each in wanted] != [each.get("name") for each in have]:
            return {**old, "spec": {**new["spec"]}}
        if have:
            spec[group] = [_merged(each, other) for each, other in zip(wanted, have, strict=True)]
    return {**old, "metadata": dict(old["metadata"]), "spec": spec}


def check(new: Json, old: Json) -> list[FieldError]:
    """Returns all errors of a resize."""
    flaws: list[FieldError] = []
    if qos_class(new["spec"]) != qos_class(old["spec"]):
        why = "Pod QOS Class may not change as a result of resizing"
        flaws.append(invalid("spec", old["status"].get("qosClass", ""), why))
    disorder = [flaw for group in _GROUPS for flaw in _order(new, old, group)]
    if disorder:
        return flaws + disorder
    for group in _GROUPS:
        for index, each in enumerate(old["spec"].get(group) or ()):
            flaws += _change(new["spec"][group][index], each, f"spec.{group}[{index}].resources")
    return flaws


def _merged(new: Json, old: Json) -> Json:
    """Returns the old container with the new resources and resize policy."""
    kept = {key: value for key, value in old.items() if key not in {"resources", "resizePolicy"}}
    return kept | {key: new[key] for key in ("resources", "resizePolicy") if key in new}


def _order(new: Json, old: Json, group: str) -> Iterator[FieldError]:
    wanted, have = new["spec"].get(group) or [], old["spec"].get(group) or []
    if len(wanted) != len(have):
        yield forbidden(f"spec.{group}", f"{group} may not be added or removed on resize")
        return
    for index, (each, other) in enumerate(zip(wanted, have, strict=True)):
        if each.get("name") != other.get("name"):
            yield forbidden(f"spec.{group}[{index}].name", f"{group} may not be renamed or reordered on resize")


def _change(new: Json, old: Json, at: str) -> Iterator[FieldError]:
    before, after = old.get("resources") or {}, new.get("resources") or {}
    for side in ("requests", "limits"):
        if not (before.get(side) or {}).keys() <= (after.get(side) or {}).keys():
            yield forbidden(f"{at}.{side}", f"resource {side} cannot be removed")
    if any(_rest(before.get(side)) != _rest(after.get(side)) for side in ("requests", "limits")):
        yield forbidden("spec", "only cpu and memory resources are mutable")


def _rest(amounts: Json | None) -> Json:
    return {key: value for key, value in (amounts or {}).items() if key not in _RESIZABLE}
