"""Merge patch, RFC 7386: null removes a field, objects are merged, everything else is replaced."""

from typing import Any

from kubenexus.sim.apiserver.status_errors import Json, bad_request


def apply(item: Json, patch: Any) -> Json:
    """Changes the object in place. Raises StatusError."""
    if not isinstance(patch, dict):
        kind = "array" if isinstance(patch, list) else "string"
        why = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding patch: {why}")
    return _merge(item, patch)


def _merge(item: Any, patch: Json) -> Json:
    target: Json = item if isinstance(item, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            target[key] = _merge(target.get(key), value)
        else:
            target[key] = value
    return target
