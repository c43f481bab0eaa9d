"""Builds the operations of a JSON patch against an object: what is missing on the way is added."""

from collections.abc import Mapping
from typing import Any

from kubenexus.webhook.admission import Object, PatchOperation


class CannotPatch(Exception):
    """On the way to the place there is something that is no object. The API server will refuse it."""


def set_entries(data: Object, path: tuple[str, ...], values: Mapping[str, Any]) -> list[PatchOperation]:
    """Returns the operations that set entries of the object at `path`. Raises CannotPatch."""
    found: Any = data
    for depth, step in enumerate(path):
        inner = _at(found, step)
        if inner is None:
            value: Any = dict(values)
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return [PatchOperation("add", pointer(*path[: depth + 1]), value)]
        found = inner
    if not isinstance(found, dict):
        raise CannotPatch
    return [PatchOperation("add", pointer(*path, key), value) for key, value in values.items()]


def append_item(data: Object, path: tuple[str, ...], item: Any) -> list[PatchOperation]:
    """Returns the operations that append to the list at `path`, or make it. Raises CannotPatch."""
    found: Any = data
    for step in path:
        found = _at(found, step)
        if found is None:
            return set_entries(data, path[:-1], {path[-1]: [item]})
    if not isinstance(found, list):
        raise CannotPatch
    return [PatchOperation("add", pointer(*path, "-"), item)]


def pointer(*steps: str) -> str:
    """Returns a JSON pointer (RFC 6901)."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def _at(data: Any, step: str) -> Any:
    if isinstance(data, dict):
        return data.get(step)
    if isinstance(data, list) and step.isdecimal() and int(step) < len(data):
        return data[int(step)]
    raise CannotPatch
