"""Checks objects against the schema of their kind and drops unknown fields, at the speed of C.

Every definition becomes a msgspec struct with all fields optional. Decoding through it does what a real server does: a
wrong type is rejected, an unknown field is dropped, and null equals absence. Quantities and times then get their
canonical text.
"""

import functools
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from kubenexus.api.quantity import Quantity
from kubenexus.base.errors import Malformed
from kubenexus.sim.apiserver import schemas
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.status_errors import Json, StatusError, bad_request

_NUMBERS = {"int32": Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)], "int64": int}
_ALWAYS = ("apiVersion", "kind", "metadata")
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
_MICRO = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
_LOOSE = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": int | str,
    _QUANTITY: int | float | str,
    _TIME: str,
    _MICRO: str,
}


def read(kind: ServedKind, body: bytes) -> Json:
    """Returns the object in a body. Raises StatusError."""
    decoder = _decoder(kind.group_version, kind.kind)
    if decoder is None:
        return _loose(kind, body)
    try:
        seen = msgspec.to_builtins(decoder.decode(body))
    except msgspec.ValidationError as error:
        raise _unreadable(kind, str(error)) from None
    except msgspec.DecodeError as error:
        raise _not_json(kind, str(error)) from None
    return _canonical(kind, seen)


def convert(kind: ServedKind, seen: Any) -> Json:
    """As `read`, for a decoded object: YAML, or the result of a patch."""
    shape = _shape(kind.group_version, kind.kind)
    if shape is None:
        if not isinstance(seen, dict):
            raise _unreadable(kind, "not an object")
        return seen
    try:
        return _canonical(kind, msgspec.to_builtins(msgspec.convert(seen, shape)))
    except msgspec.ValidationError as error:
        raise _unreadable(kind, str(error)) from None


def unknown_fields(kind: ServedKind, seen: Any) -> list[str]:
    """Returns the paths of the fields that reading would drop, for strict validation."""
    schema = schemas.schema_of(kind)
    if schema is None:
        return []
    hidden = _ALWAYS if kind.custom is not None else ()
    return list(_unknown(schema, {key: seen[key] for key in seen if key not in hidden}, ""))


def _unknown(schema: schemas.Schema, seen: Any, path: str) -> Iterator[str]:
    schema = schemas.resolved(schema)
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(seen, list):
        for index, each in enumerate(seen):
            yield from _unknown(schema.get("items") or {}, each, f"{path}[{index}]")
    elif isinstance(seen, dict):
        properties = schema.get("properties")
        for key, value in seen.items():
            where = f"{path}.{key}" if path else key
            if properties is not None and key not in properties:
                yield where
            else:
                yield from _unknown(schemas.field(schema, key) or {}, value, where)


# ---- types -----------------------------------------------------------------------------------------------------------


@functools.cache
def _shape(group_version: str, kind: str) -> Any:
    name = schemas.name_of(group_version, kind)
    return None if name is None else _struct(name) | None


@functools.cache
def _decoder(group_version: str, kind: str) -> msgspec.json.Decoder[Any] | None:
    shape = _shape(group_version, kind)
    return None if shape is None else msgspec.json.Decoder(shape)


@functools.cache
def _struct(name: str) -> Any:
    schema = schemas.definitions()[name]
    properties = schema.get("properties")
    if not properties:
        return dict[str, Any]
    # Not the names of the properties: `from` and `$ref` are not valid in Python.
    fields = [(f"f{n}", _type(each) | None, None) for n, each in enumerate(properties.values())]
    rename = dict(zip((field[0] for field in fields), properties, strict=True))
    return msgspec.defstruct(name.rpartition(".")[2], fields, omit_defaults=True, rename=rename, gc=False)


def _type(schema: schemas.Schema) -> Any:
    target = schemas.reference(schema)
    if target is not None:
        return _LOOSE.get(target) or _struct(target)
    kind = schema.get("type")
    if kind == "array":
        return list[_type(schema["items"])]  # type: ignore[misc]
    if kind == "object":
        inner = schema.get("additionalProperties")
        return dict[str, _type(inner)] if isinstance(inner, dict) else dict[str, Any]  # type: ignore[misc]
    simple = {"string": str, "boolean": bool, "number": float}
    return _NUMBERS.get(schema.get("format", ""), int) if kind == "integer" else simple.get(kind or "", Any)


# ---- canonical texts -------------------------------------------------------------------------------------------------

Fix = Callable[[Any], Any]


def _canonical(kind: ServedKind, seen: Any) -> Json:
    if seen is None:  # `null` is an object without fields
        return {}
    trail = _trail(kind.group_version, kind.kind)
    try:
        _walk(trail, seen)
    except Malformed as error:
        raise _unreadable(kind, error.problem) from None
    found: Json = seen
    return found


def _walk(trail: Any, seen: Any) -> None:
    for key, inner in trail.items():
        value = seen.get(key)
        if value is None:
            continue
        if callable(inner):
            seen[key] = inner(value)
        elif type(value) is list:
            _walk_all(inner, enumerate(value), value)
        elif "*" in inner:
            _walk_all(inner, list(value.items()), value)
        else:
            _walk(inner, value)


def _walk_all(inner: Any, pairs: Any, holder: Any) -> None:
    fix = inner.get("*")
    only = next(iter(inner)) if len(inner) == 1 else ""
    for key, each in pairs:
        if fix is None:
            if not only or only in each:  # most entries of `env` have no such field
                _walk(inner, each)
        elif callable(fix):
            holder[key] = fix(each)
        else:
            _walk(fix, each)


@functools.cache
def _trail(group_version: str, kind: str) -> dict[str, Any]:
    name = schemas.name_of(group_version, kind)
    return {} if name is None else _trail_of(name)


@functools.cache
def _trail_of(name: str) -> dict[str, Any]:
    """Returns where quantities and times are below a definition: `*` matches every entry of a map."""
    found = {}
    for key, schema in (schemas.definitions()[name].get("properties") or {}).items():
        inner = _trail_of_field(schema)
        if inner:
            found[key] = inner
    return found


def _trail_of_field(schema: schemas.Schema) -> Any:
    target = schemas.reference(schema)
    if target is not None:
        return _FIXES.get(target) or _trail_of(target)
    if schema.get("type") == "array":
        inner = _trail_of_field(schema["items"])
        return {"*": inner} if callable(inner) else inner
    if isinstance(schema.get("additionalProperties"), dict):
        inner = _trail_of_field(schema["additionalProperties"])
        return {"*": inner} if inner else None
    return None


@functools.lru_cache(4096)
def quantity(value: Any) -> str:
    """Returns the canonical text of a quantity: `1000m` is `1`."""
    try:
        return Quantity.parse(value).canonical()
    except Malformed:
        why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise Malformed(why) from None


_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MICROS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def seconds(value: str) -> str:
    return value if _SECONDS.fullmatch(value) else _moment(value, "2006-01-02T15:04:05Z07:00", "seconds")


def micros(value: str) -> str:
    return value if _MICROS.fullmatch(value) else _moment(value, "2006-01-02T15:04:05.000000Z07:00", "microseconds")


def _moment(value: str, layout: str, precision: str) -> str:
    try:
        seen = datetime.fromisoformat(value)
    except ValueError:
        raise Malformed(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"') from None
    return seen.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


_FIXES: dict[str, Fix] = {_QUANTITY: quantity, _TIME: seconds, _MICRO: micros}


# ---- refusals --------------------------------------------------------------------------------------------------------


def _loose(kind: ServedKind, body: bytes) -> Json:
    try:
        seen = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise _not_json(kind, str(error)) from None
    if not isinstance(seen, dict):
        raise _not_json(kind, "not an object")
    return seen


def _not_json(kind: ServedKind, why: str) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind.kind}): couldn't get version/kind; "
        f"json parse error: {why}"
    )


def _unreadable(kind: ServedKind, why: str) -> StatusError:
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')
