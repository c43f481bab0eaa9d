"""Parses text to plain data: one YAML document (or JSON, which is YAML) as dicts, lists, texts and numbers.

Built from the parser's events and not with `yaml.load`, because a configuration may come from an untrusted source:

- a duplicate key is an error with its path, as with kube-scheduler; `yaml.load` silently takes the last one;
- nine lines of anchors can expand to a billion values: values are counted as if they were written out;
- nesting has a limit, so that no recursion, ours or the C library's, runs out of stack;
- tags (`!!python/object`) have no effect.

Values are read as kube-scheduler reads them: `yes` and `on` are true, a date is a text.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn

import yaml

from kubenexus.api.selectors import quote
from kubenexus.base.errors import truncated
from kubenexus.config.field_errors import FieldPath, InvalidConfiguration

MAX_BYTES: Final = 1 << 20  # what fits into a ConfigMap
MAX_VALUES: Final = 20_000
MAX_LEVELS: Final = 50

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_PLAIN: Final = {f"{_TAG}{kind}": f"construct_yaml_{kind}" for kind in ("null", "bool", "int", "float")}
_TEXTS: Final = {f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value", f"{_TAG}merge", "!"}
_EXPONENT: Final = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", re.ASCII)  # missing in YAML 1.1, but valid in JSON


class _Anchored(NamedTuple):
    value: Any
    size: int  # the number of values it expands to
    levels: int  # its own depth


def parse_yaml(source: str | bytes, place: FieldPath) -> Any:
    """Returns the document's data; None if it is empty. Raises InvalidConfiguration if it cannot be parsed."""
    if len(source) > MAX_BYTES:
        _refuse(f"the file is larger than {MAX_BYTES >> 10} KiB")
    try:
        text = source.decode("utf-8-sig") if isinstance(source, bytes) else source
        documents = [data for data in _Builder(text).documents(place) if data is not None]
    except UnicodeError as error:
        _refuse(f"the file is not UTF-8: {error}")
    except yaml.YAMLError as error:
        _refuse(_explained(error))
    if len(documents) > 1:
        _refuse(f"expected one document, found {len(documents)}")
    return documents[0] if documents else None


class _Builder:
    def __init__(self, text: str) -> None:
        self._loader = _Loader(text)
        self._anchors: dict[str, _Anchored] = {}
        self._values = 0
        self._deepest = 0

    def documents(self, place: FieldPath) -> Iterator[Any]:
        self._loader.get_event()  # the stream starts
        while isinstance(self._loader.get_event(), yaml.DocumentStartEvent):
            self._anchors = {}
            yield self._value(self._loader.get_event(), place, 0)
            self._loader.get_event()  # the document ends

    def _value(self, event: Any, place: FieldPath, level: int) -> Any:
        self._count(1, level, event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, level)
        values, deepest, self._deepest = self._values, self._deepest, level
        value = self._built(event, place, level)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, self._values - values, self._deepest - level)
        self._deepest = max(self._deepest, deepest)
        return value

    def _built(self, event: Any, place: FieldPath, level: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(place, level)
        return self._mapping(place, level)

    def _sequence(self, place: FieldPath, level: int) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := self._loader.get_event(), yaml.SequenceEndEvent):
            values.append(self._value(event, place[len(values)], level + 1))
        return values

    def _mapping(self, place: FieldPath, level: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        while not isinstance(key := self._loader.get_event(), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                _refuse(f"{_line(key)}: a key must be a plain text")
            value = self._value(self._loader.get_event(), place[key.value], level + 1)
            if key.value == "<<" and key.implicit[0]:
                merged.extend(_mappings(value, key))
            elif key.value in values:
                place[key.value].report(f"the key is already set in this map ({_line(key)})")
            else:
                values[key.value] = value
        return _merged(values, merged)

    def _scalar(self, event: Any, place: FieldPath) -> Any:
        tag = event.tag or self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag in _TEXTS:
            exponent = event.implicit[0] and _EXPONENT.fullmatch(event.value)
            return float(event.value) if exponent else event.value
        try:
            value = getattr(self._loader, _PLAIN[tag])(yaml.ScalarNode(tag, event.value))
        except (KeyError, ValueError):  # an unknown tag, or a text that does not match its tag
            value = math.nan
        if isinstance(value, float) and not math.isfinite(value):
            place.report(f"cannot be read: {quote(event.value)} as {truncated(tag)} ({_line(event)})")
            return None
        return value

    def _alias(self, event: Any, level: int) -> Any:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:  # never set, or set by a value that contains this one
            _refuse(f"{_line(event)}: *{truncated(event.anchor)} refers to nothing before it")
        self._count(anchored.size, level + anchored.levels, event)
        return anchored.value

    def _count(self, values: int, level: int, event: Any) -> None:
        self._values += values
        self._deepest = max(self._deepest, level)
        if level > MAX_LEVELS:
            _refuse(f"{_line(event)}: nested more than {MAX_LEVELS} levels deep")
        if self._values > MAX_VALUES:
            _refuse(f"{_line(event)}: more than {MAX_VALUES} values, counted with aliases written out")


def _mappings(value: Any, key: Any) -> list[dict[str, Any]]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in values):
        _refuse(f"{_line(key)}: << merges maps only")
    return values


def _merged(values: dict[str, Any], merged: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the merged map. Its own values have precedence over merged ones, and the first merged over later ones."""
    for each in merged:
        values = {**each, **values}
    return values


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"


def _explained(error: yaml.YAMLError) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or problem is None:
        return f"cannot be parsed: {' '.join(str(error).split())}"
    advice = " (a tab? YAML indents with blanks)" if "cannot start any token" in problem else ""
    return f"line {mark.line + 1}: cannot be parsed: {problem}{advice}"


def _refuse(message: str) -> NoReturn:
    place = FieldPath()
    place.report(message)
    raise InvalidConfiguration(place.found)
