"""Converts plain data to structs and reports *all* mismatches, each with its path.

`msgspec.convert` stops at the first mistake, so this module walks the structs itself: `msgspec` provides their fields
and types. A mismatch is reported and replaced by the field's default, so that the walk goes on and validation gets a
whole document.

As in Go, `null` means absent; for fields marked `OR_DEFAULT` a zero does, too.
"""

import functools
import math
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from kubenexus.config.durations import Duration
from kubenexus.config.field_errors import FieldPath

Shape = TypeVar("Shape", bound=msgspec.Struct)

# For `Annotated[...]`: 0, "" and [] mean the default, as everywhere in Go where a field is no pointer.
OR_DEFAULT: Final = msgspec.Meta(extra={"zero is default": True})

_FEW: Final = 4  # fields that a message lists


def decode_struct(data: Any, kind: type[Shape], place: FieldPath) -> Shape:
    """Returns `data` as a struct. A mismatch is reported at its place and becomes the default."""
    value: Shape = _struct(data, _info(kind), place)
    return value


@functools.cache
def _info(kind: type[msgspec.Struct]) -> Any:
    return inspect.type_info(kind)


def _struct(data: Any, info: Any, place: FieldPath) -> Any:
    if not isinstance(data, dict):
        place.invalid(data, "must be a map")
        return info.cls()
    fields = {field.encode_name: field for field in info.fields}
    known = [*fields, info.tag_field] if info.tag_field else [*fields]
    values = {}
    for key, value in data.items():
        if key in fields:
            values[fields[key].name] = _field(value, fields[key].type, place[key])
        elif key not in known:
            place[key].report(f"unknown field{place.hint(key, known) or _few(known)}")
    return info.cls(**{name: value for name, value in values.items() if value is not None})


def _few(known: list[str]) -> str:
    """Returns the fields that exist, if they are few."""
    return f"; the fields are {', '.join(known)}" if len(known) <= _FEW else ""


def _field(data: Any, info: Any, place: FieldPath) -> Any:
    """Returns a field's value, or None for its default."""
    value = None if data is None else _value(data, info, place)
    zero_is_default = isinstance(info, inspect.Metadata) and info.extra
    return None if zero_is_default and not value else value


def _value(data: Any, info: Any, place: FieldPath) -> Any:
    if isinstance(info, inspect.Metadata):
        return _value(data, info.type, place)
    if isinstance(info, inspect.UnionType):  # the only unions here are a type or None
        (some,) = (each for each in info.types if not isinstance(each, inspect.NoneType))
        return _value(data, some, place)
    if isinstance(info, inspect.StructType):
        return _struct(data, info, place)
    if isinstance(info, inspect.ListType) and isinstance(data, list):
        return [_item(each, info.item_type, place[index]) for index, each in enumerate(data)]
    if isinstance(info, inspect.DictType) and isinstance(data, dict):
        return _map(data, info, place)
    try:
        return _plain(data, info)
    except ValueError as error:
        place.invalid(data, str(error))
        return None


def _map(data: dict[Any, Any], info: Any, place: FieldPath) -> dict[str, Any]:
    """Returns a map. A value that does not fit is left out, after it was reported."""
    found = {}
    for key, each in data.items():
        here = place[str(key)]
        if isinstance(info.value_type, inspect.AnyType):
            found[str(key)] = each
        elif each is None:
            here.required()
        else:
            value = _value(each, info.value_type, here)
            if value is not None:
                found[str(key)] = value
    return found


def _item(data: Any, info: Any, place: FieldPath) -> Any:
    """Returns an item of a list. A mismatch keeps its place, so that the others keep their numbers."""
    if isinstance(info, inspect.StructType):
        return _struct({} if data is None else data, info, place)
    value = _value(data, info, place)
    return "" if value is None else value


def _plain(data: Any, info: Any) -> Any:
    """Returns a value without parts. Raises ValueError with what was expected."""
    if isinstance(info, inspect.AnyType):
        return data
    if isinstance(info, inspect.CustomType):
        return _duration(data)
    if isinstance(info, inspect.IntType):
        return _integer(data, info)
    if isinstance(info, inspect.FloatType):
        number = isinstance(data, int | float) and not isinstance(data, bool) and math.isfinite(data)
        return _sure(number, data, "must be a number")
    if isinstance(info, inspect.StrType):
        return _sure(isinstance(data, str), data, "must be a text")
    if isinstance(info, inspect.BoolType):
        return _sure(isinstance(data, bool), data, "must be true or false")
    if isinstance(info, inspect.ListType):
        return _sure(isinstance(data, list), data, "must be a list")
    return _sure(isinstance(data, dict), data, "must be a map")


def _sure(fits: bool, data: Any, expected: str) -> Any:
    if not fits:
        raise ValueError(expected)
    return data


def _integer(data: Any, info: Any) -> int:
    number = isinstance(data, int | float) and not isinstance(data, bool)
    if not number or not math.isfinite(data) or data != int(data):
        raise ValueError("must be an integer")
    if not info.ge <= data <= info.le:
        raise ValueError(f"must be between {info.ge} and {info.le}")
    return int(data)


def _duration(data: Any) -> Duration:
    return Duration.of(_sure(isinstance(data, str), data, 'must be a duration such as "15s"'))
