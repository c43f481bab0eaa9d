"""Sets of fields as managedFields writes them: `{"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}}}}}`."""

import json
from collections.abc import Iterator
from typing import Any

from kubenexus.sim.apiserver import schemas
from kubenexus.sim.apiserver.schemas import Schema

Fields = dict[str, Any]
Path = tuple[str, ...]
SKIPPED = ("apiVersion", "kind")
_META = {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"}


def fields_of(item: Any, schema: Schema | None, top: bool = True) -> Fields:
    """Returns all fields that an object sets."""
    found: Fields = {}
    for key, value in item.items():
        if top and key == "metadata":
            own = {name: each for name, each in value.items() if name not in _META}
            if own:
                found["f:metadata"] = _below(own, schemas.field(schema, key))
        elif not top or key not in SKIPPED:
            found[f"f:{key}"] = _below(value, schemas.field(schema, key))
    return found


def _below(value: Any, schema: Schema | None) -> Fields:
    if isinstance(value, dict) and value and not atomic(schema):
        return fields_of(value, schema, top=False)
    if isinstance(value, list) and value:
        keys = list_keys(schema)
        if keys:
            return {mark(each, keys): {".": {}, **fields_of(each, schemas.items(schema), top=False)} for each in value}
        if list_type(schema) == "set":
            return {f"v:{json.dumps(each)}": {} for each in value}
    return {}


def atomic(schema: Schema | None) -> bool:
    whole = schemas.resolved(schema)
    return "atomic" in (whole.get("x-kubernetes-map-type"), (schema or {}).get("x-kubernetes-map-type"))


def list_type(schema: Schema | None) -> str:
    return str((schema or {}).get("x-kubernetes-list-type", "atomic"))


def list_keys(schema: Schema | None) -> list[str]:
    """Returns the keys of a list of type map, or nothing."""
    if list_type(schema) != "map":
        return []
    return list((schema or {}).get("x-kubernetes-list-map-keys") or ())


def mark(entry: Any, keys: list[str]) -> str:
    """Returns the name of a list entry in a field set."""
    named = {key: entry[key] for key in keys if key in entry}
    return "k:" + json.dumps(named, separators=(",", ":"), sort_keys=True)


def leaves(fields: Fields, at: Path = ()) -> Iterator[Path]:
    """Yields the paths of all fields that are set themselves."""
    for key, inner in fields.items():
        if key == ".":
            continue
        if not inner or set(inner) == {"."}:
            yield (*at, key)
        else:
            yield from leaves(inner, (*at, key))


def build(paths: set[Path]) -> Fields:
    found: Fields = {}
    for path in sorted(paths):
        place = found
        for part in path:
            place = place.setdefault(part, {".": {}} if part.startswith("k:") else {})
    return found


def value_at(item: Any, path: Path) -> Any:
    """Returns the value at a path, or None."""
    for part in path:
        kind, _, name = part.partition(":")
        if kind == "f":
            item = item.get(name) if isinstance(item, dict) else None
        elif kind == "k":
            item = _entry(item, json.loads(name))
        else:
            wanted = json.loads(name)
            item = wanted if isinstance(item, list) and wanted in item else None
        if item is None:
            return None
    return item


def _entry(item: Any, keys: dict[str, Any]) -> Any:
    if not isinstance(item, list):
        return None
    return next((each for each in item if all(each.get(key) == value for key, value in keys.items())), None)


def remove(item: Any, path: Path) -> None:
    """Removes the value at a path; for a list entry, the whole entry."""
    holder = value_at(item, path[:-1])
    kind, _, name = path[-1].partition(":")
    if isinstance(holder, dict) and kind == "f":
        holder.pop(name, None)
    elif isinstance(holder, list):
        gone = _entry(holder, json.loads(name)) if kind == "k" else json.loads(name)
        if gone in holder:
            holder.remove(gone)
