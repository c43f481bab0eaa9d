"""From plain data to structs, with *all* that does not fit reported, each with its path.

`msgspec.convert` stops at the first mistake, so the structs are walked here: `msgspec` tells what fields and types they
have, and this page compares. What does not fit is reported and replaced by the field's default, so that the walk goes
on and the rules see a whole document.

As in Go, `null` says the same as nothing; and fields marked `OR_DEFAULT` take a zero for nothing, too.
"""

import functools
import math
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from kubenexus.config.durations import Duration
from kubenexus.config.problems import Place, hint

Shape = TypeVar("Shape")

# For `Annotated[...]`: 0, "" and [] mean the default, as everywhere in Go where a field is no pointer.
OR_DEFAULT: Final = msgspec.Meta(extra={"zero is default": True})

_INT32: Final = range(-(2**31), 2**31)


def read(data: Any, kind: type[Shape], place: Place) -> Shape:
    """`data` as a struct; what does not fit is reported at its place and reads as the default."""
    value: Shape = _struct(data, _info(kind), place)
    return value


@functools.cache
def _info(kind: type[Any]) -> Any:
    return inspect.type_info(kind)


def _struct(data: Any, info: Any, place: Place) -> Any:
    if not isinstance(data, dict):
        if data is not None:
            place.invalid(data, "must be a map")
        return info.cls()
    fields = {field.encode_name: field for field in info.fields}
    known = [*fields, info.tag_field] if info.tag_field else [*fields]
    values = {}
    for key, value in data.items():
        if key in fields:
            values[fields[key].name] = _field(value, fields[key], place[key])
        elif key not in known:
            place[key].report(f"unknown field{hint(key, known)}")
    return info.cls(**{name: value for name, value in values.items() if value is not None})


def _field(data: Any, field: Any, place: Place) -> Any:
    """The field's value, or None: take the default."""
    if data is None:
        return None
    value = _value(data, field.type, place)
    zero_is_default = isinstance(field.type, inspect.Metadata) and bool((field.type.extra or {}).get("zero is default"))
    return None if zero_is_default and not value else value


def _value(data: Any, info: Any, place: Place) -> Any:
    """`data` as what a field holds; None if it does not fit."""
    if isinstance(info, inspect.Metadata):
        return _value(data, info.type, place)
    if isinstance(info, inspect.UnionType):  # there is one sort: something or None
        (some,) = (each for each in info.types if not isinstance(each, inspect.NoneType))
        return _value(data, some, place)
    if isinstance(info, inspect.StructType):
        return _struct(data, info, place)
    if isinstance(info, inspect.ListType):
        return _list(data, info, place)
    if isinstance(info, inspect.DictType):
        return data if isinstance(data, dict) else place.invalid(data, "must be a map")
    return _scalar(data, info, place)


def _list(data: Any, info: Any, place: Place) -> list[Any] | None:
    if not isinstance(data, list):
        place.invalid(data, "must be a list")
        return None
    values = [_value({} if each is None else each, info.item_type, place[i]) for i, each in enumerate(data)]
    return [value for value in values if value is not None]


def _scalar(data: Any, info: Any, place: Place) -> Any:
    if isinstance(info, inspect.IntType):
        return _integer(data, info, place)
    if isinstance(info, inspect.FloatType):
        number = isinstance(data, int | float) and not isinstance(data, bool) and math.isfinite(data)
        return float(data) if number else place.invalid(data, "must be a number")
    if isinstance(info, inspect.BoolType):
        return data if isinstance(data, bool) else place.invalid(data, "must be true or false")
    if isinstance(info, inspect.AnyType):
        return data
    if not isinstance(data, str):
        return place.invalid(data, "must be a text (in quotation marks)")
    if isinstance(info, inspect.EnumType):
        return _member(data, info, place)
    return _duration(data, place) if isinstance(info, inspect.CustomType) else data


def _integer(data: Any, info: Any, place: Place) -> int | None:
    if isinstance(data, bool) or not isinstance(data, int | float) or data != int(data):
        return place.invalid(data, "must be an integer")
    if not info.ge <= data <= info.le:
        bits = 32 if info.le in _INT32 else 64
        return place.invalid(data, f"must be an integer of {bits} bits")
    return int(data)


def _member(data: str, info: Any, place: Place) -> Any:
    values = [member.value for member in info.cls]
    return info.cls(data) if data in values else place.unsupported(data, values)


def _duration(data: str, place: Place) -> Duration | None:
    try:
        return Duration.of(data)
    except ValueError as error:
        return place.invalid(data, str(error))
