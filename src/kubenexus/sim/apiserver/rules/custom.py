"""Custom resources: pruned, defaulted and checked by the schema of their definition."""

import functools
import math
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.rules.base import Rule
from kubenexus.sim.apiserver.status_errors import FieldError, Json, duplicate, invalid, required, unsupported

Schema = Mapping[str, Any]
_ALWAYS = {"apiVersion", "kind", "metadata"}
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


@functools.cache
def rule(kind: ServedKind) -> Rule:
    schema: Schema = ((kind.custom or {}).get("schema") or {}).get("openAPIV3Schema") or {}
    # A definition may say `metadata: {type: object}`, which prunes nothing of the metadata.
    known = {key: inner for key, inner in (schema.get("properties") or {}).items() if key not in _ALWAYS}
    schema = {**schema, "properties": known}

    def default(item: Json) -> None:
        _prune_object(item, schema, _ALWAYS)
        _default(item, schema)

    def check(item: Json) -> list[FieldError]:
        return list(_check({key: item[key] for key in item if key not in _ALWAYS}, schema, ""))

    def counted(item: Json) -> Any:
        ignored = _ALWAYS | ({"status"} if "status" in kind.subresources else set())
        return {key: item[key] for key in item if key not in ignored}

    return Rule(
        default=default,
        check=check,
        check_status=lambda new, _: check(new),
        unconditional=False,
        generation=True,
        counted=counted,
    )


# ---- pruning and defaults --------------------------------------------------------------------------------------------


def _prune_object(value: Json, schema: Schema, keep: set[str]) -> None:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        keep = keep | set(value)
    known = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    for key in list(value):
        if key in known:
            _prune(value[key], known[key])
        elif isinstance(extra, Mapping):
            _prune(value[key], extra)
        elif extra is not True and key not in keep:
            del value[key]


def _prune(value: Any, schema: Schema) -> None:
    if isinstance(value, dict):
        _prune_object(value, schema, set(value) if schema.get("x-kubernetes-embedded-resource") else set())
    elif isinstance(value, list):
        for each in value:
            _prune(each, schema.get("items") or {})


def _default(value: Any, schema: Schema) -> None:
    if isinstance(value, dict):
        for key, inner in (schema.get("properties") or {}).items():
            if key not in value and "default" in inner:
                value[key] = deepcopy(inner["default"])
            if value.get(key) is None and key in value and not inner.get("nullable"):
                del value[key]
            if key in value:
                _default(value[key], inner)
    elif isinstance(value, list):
        for each in value:
            _default(each, schema.get("items") or {})


# ---- checks ----------------------------------------------------------------------------------------------------------


def _check(value: Any, schema: Schema, at: str) -> Iterator[FieldError]:
    wanted = schema.get("type")
    if value is None and schema.get("nullable"):
        return
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield _wrong_type(at, value, "integer,string")
    elif wanted and not _has_type(value, wanted):
        yield _wrong_type(at, value, wanted)
    elif "enum" in schema and value not in schema["enum"]:
        yield unsupported(at, value, [str(each) for each in schema["enum"]])
    elif isinstance(value, dict):
        yield from _check_object(value, schema, at)
    elif isinstance(value, list):
        yield from _check_list(value, schema, at)
    elif isinstance(value, str):
        yield from _check_text(value, schema, at)
    elif isinstance(value, int | float):
        yield from _check_number(value, schema, at)


def _has_type(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(wanted, (object,)))


def _wrong_type(at: str, value: Any, wanted: str) -> FieldError:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    seen = names.get(type(value), "null")
    why = f'Invalid value: "{seen}": {at} in body must be of type {wanted}: "{seen}"'
    return FieldError(at, "FieldValueTypeInvalid", why)


def _check_object(value: Json, schema: Schema, at: str) -> Iterator[FieldError]:
    known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    for key in schema.get("required") or ():
        if key not in value:
            yield required(_join(at, key))
    for key, each in value.items():
        inner = known.get(key) or (extra if isinstance(extra, Mapping) else None)
        if inner is not None:
            yield from _check(each, inner, _join(at, key))
    most = schema.get("maxProperties", math.inf)
    if len(value) > most:
        yield FieldError(at, "FieldValueTooMany", f"Too many: {len(value)}: must have at most {most} items")


def _check_list(value: list[Any], schema: Schema, at: str) -> Iterator[FieldError]:
    most, least = schema.get("maxItems", math.inf), schema.get("minItems", 0)
    if len(value) > most:
        yield FieldError(at, "FieldValueTooMany", f"Too many: {len(value)}: must have at most {most} items")
    if len(value) < least:
        yield invalid(at, len(value), f"{at} in body should have at least {least} items")
    for index, each in enumerate(value):
        yield from _check(each, schema.get("items") or {}, f"{at}[{index}]")
    if schema.get("x-kubernetes-list-type") in {"map", "set"}:
        yield from _check_unique(value, schema, at)


def _check_unique(value: list[Any], schema: Schema, at: str) -> Iterator[FieldError]:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen: list[Any] = []
    for index, each in enumerate(value):
        mark = {key: each.get(key) for key in keys} if keys and isinstance(each, dict) else each
        if mark in seen:
            yield duplicate(f"{at}[{index}]", mark)
        seen.append(mark)


def _check_text(value: str, schema: Schema, at: str) -> Iterator[FieldError]:
    if len(value) > schema.get("maxLength", math.inf):
        limit = schema["maxLength"]
        yield FieldError(at, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")
    if len(value) < schema.get("minLength", 0):
        yield invalid(at, value, f"{at} in body should be at least {schema['minLength']} chars long")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield invalid(at, value, f"{at} in body should match '{schema['pattern']}'")


def _check_number(value: float, schema: Schema, at: str) -> Iterator[FieldError]:
    if value < schema.get("minimum", -math.inf):
        yield invalid(at, value, f"{at} in body should be greater than or equal to {schema['minimum']}")
    if value > schema.get("maximum", math.inf):
        yield invalid(at, value, f"{at} in body should be less than or equal to {schema['maximum']}")


def _join(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key
