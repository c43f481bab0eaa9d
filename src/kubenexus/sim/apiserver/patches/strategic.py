"""Strategic merge patch: as a merge patch, but lists of objects are merged by the key that the schema names.

$patch: replace | delete | merge     in an object (or, for replace, in an entry of a list)
$deleteFromPrimitiveList/x           the values to remove from a list of plain values
$setElementOrder/x                   the order of the entries afterwards
$retainKeys                          the keys of an object that stay
"""

from collections.abc import Callable
from typing import Any

from kubenexus.sim.apiserver import schemas
from kubenexus.sim.apiserver.schemas import Schema
from kubenexus.sim.apiserver.status_errors import FieldError, Json, StatusError, bad_request, internal

_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def apply(item: Json, patch: Any, schema: Schema | None) -> Json:
    """Changes the object in place. Raises StatusError."""
    if not isinstance(patch, dict):
        why = "json: cannot unmarshal array into Go value of type map[string]interface {}"
        raise bad_request(f"error decoding patch: {why}")
    return _object(item, patch, schema)


def _object(item: Any, patch: Json, schema: Schema | None) -> Json:
    target: Json = item if isinstance(item, dict) else {}
    command = patch.get("$patch")
    if command == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if command == "delete":
        return {}
    _retain(target, patch)
    for key, value in patch.items():
        if not key.startswith("$"):
            _field(target, key, value, schemas.field(schema, key))
    for key, value in patch.items():
        _directive(target, key, value, schema)
    return target


def _retain(target: Json, patch: Json) -> None:
    keep = patch.get("$retainKeys")
    if keep is not None:
        for key in [key for key in target if key not in keep]:
            del target[key]


def _field(target: Json, key: str, value: Any, schema: Schema | None) -> None:
    if value is None:
        target.pop(key, None)
    elif isinstance(value, dict):
        if "replace" in _strategy(schema) or value.get("$patch") == "delete":
            target.pop(key, None)
        if value.get("$patch") != "delete":
            target[key] = _object(target.get(key), value, schema)
    elif isinstance(value, list):
        target[key] = _list(target.get(key), value, schema)
    else:
        if _is_list(schema):
            raise _no_list(value)
        target[key] = value


def _list(old: Any, patch: list[Any], schema: Schema | None) -> list[Any]:
    had = old if isinstance(old, list) else []
    if "merge" not in _strategy(schema):
        return patch
    key = (schema or {}).get("x-kubernetes-patch-merge-key")
    if key is None:
        return _ordered(list(patch), [each for each in had if each not in patch], lambda each: _place(had, each))
    if any(isinstance(each, dict) and each.get("$patch") == "replace" for each in patch):
        return [each for each in patch if each.get("$patch") != "replace"]
    return _by_key(had, patch, key, schemas.items(schema))


def _by_key(had: list[Json], patch: list[Json], key: str, schema: Schema | None) -> list[Json]:
    """Changes existing entries and appends the others."""
    found = list(had)
    for each in patch:
        if key not in each:
            shown = " ".join(f"{name}:{value}" for name, value in each.items())
            raise internal(f"map: map[{shown}] does not contain declared merge key: {key}")
        place = next((n for n, other in enumerate(found) if other.get(key) == each[key]), None)
        if each.get("$patch") == "delete":
            if place is not None:
                del found[place]
        elif place is None:
            found.append(_object({}, each, schema))
        else:
            found[place] = _object(found[place], each, schema)
    named = [each for wanted in patch for each in found if each.get(key) == wanted[key]]
    before = [each.get(key) for each in had]
    return _ordered(named, [each for each in found if each not in named], lambda each: _place(before, each.get(key)))


def _place(before: list[Any], mark: Any) -> int:
    return before.index(mark) if mark in before else -1


def _ordered(named: list[Any], others: list[Any], place: Callable[[Any], int]) -> list[Any]:
    """Merges the order of the patch with that of the rest of the old list, as a real server does.

    Where the old list does not determine an order, entries of the patch come first.
    """
    merged: list[Any] = []
    while named and others:
        mine, other = place(named[0]), place(others[0])
        merged.append(others.pop(0) if 0 <= other < mine else named.pop(0))
    return [*merged, *named, *others]


def _directive(target: Json, key: str, value: Any, schema: Schema | None) -> None:
    if key.startswith(_DELETE):
        name = key.removeprefix(_DELETE)
        target[name] = [each for each in target.get(name) or () if each not in value]
    elif key.startswith(_ORDER):
        name = key.removeprefix(_ORDER)
        _order(target, name, value, schemas.field(schema, name))


def _order(target: Json, name: str, value: list[Any], schema: Schema | None) -> None:
    if name not in target:
        return
    key = (schema or {}).get("x-kubernetes-patch-merge-key")
    ranks = [each[key] if key and isinstance(each, dict) else each for each in value]

    def rank(each: Any) -> int:
        mark = each.get(key) if key and isinstance(each, dict) else each
        return ranks.index(mark) if mark in ranks else len(ranks)

    target[name] = sorted(target[name], key=rank)


def _strategy(schema: Schema | None) -> str:
    return str((schema or {}).get("x-kubernetes-patch-strategy", ""))


def _is_list(schema: Schema | None) -> bool:
    return schemas.resolved(schema).get("type") == "array"


def _no_list(value: Any) -> StatusError:
    why = f'Invalid value: "{value}": cannot restore slice from {type(value).__name__}'
    return invalid_patch(FieldError("patch", "FieldValueInvalid", why))


def invalid_patch(flaw: FieldError) -> StatusError:
    """Returns the error for a patch whose result is not a valid object of the kind."""
    cause = {"reason": flaw.reason, "message": flaw.message, "field": flaw.field}
    return StatusError(422, "Invalid", f' "" is invalid: {flaw}', {"causes": [cause]})
