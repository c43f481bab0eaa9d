"""JSON patch, RFC 6902: a list of operations, all or none."""

from copy import deepcopy
from typing import Any

from kubenexus.sim.apiserver.status_errors import Json, StatusError, bad_request


class _Fails(Exception):
    """An operation cannot be applied."""


def apply(item: Json, patch: Any) -> Json:
    """Changes the object in place. Raises StatusError; the object is then in an undefined state."""
    if not isinstance(patch, list):
        why = "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        raise bad_request(f"error decoding patch: {why}")
    document: Any = item
    try:
        for operation in patch:
            document = _one(document, operation)
    except (_Fails, KeyError, IndexError, ValueError, TypeError, AttributeError):
        why = "the server rejected our request due to an error in our request"
        raise StatusError(422, "Invalid", why, {}) from None
    result: Json = document
    return result


def _one(document: Any, operation: Json) -> Any:
    kind, path = operation["op"], _path(operation["path"])
    if kind == "test":
        if _get(document, path) != operation.get("value"):
            raise _Fails
        return document
    if kind == "remove":
        _take(document, path)
        return document
    if kind == "replace":
        # As a real server: replace adds a missing field of an object, but not a missing entry of a list.
        return _put(document, path, operation["value"], replace=True)
    if kind == "add":
        return _put(document, path, operation["value"])
    if kind in {"move", "copy"}:
        source = _path(operation["from"])
        value = _take(document, source) if kind == "move" else deepcopy(_get(document, source))
        return _put(document, path, value)
    raise _Fails


def _path(text: str) -> list[str]:
    if not text:
        return []
    if not text.startswith("/"):
        raise _Fails
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _get(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[_index(document, part)] if isinstance(document, list) else document[part]
    return document


def _index(document: list[Any], part: str) -> int:
    number = int(part)
    if not 0 <= number < len(document):
        raise _Fails
    return number


def _take(document: Any, path: list[str]) -> Any:
    parent = _get(document, path[:-1])
    return parent.pop(_index(parent, path[-1]) if isinstance(parent, list) else path[-1])


def _put(document: Any, path: list[str], value: Any, *, replace: bool = False) -> Any:
    if not path:
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if not isinstance(parent, list):
        parent[last] = value
    elif replace:
        parent[_index(parent, last)] = value
    elif last == "-":
        parent.append(value)
    else:
        number = int(last)
        if not 0 <= number <= len(parent):
            raise _Fails
        parent.insert(number, value)
    return document
