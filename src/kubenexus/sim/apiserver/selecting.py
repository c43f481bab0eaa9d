"""Label and field selectors: parsing and matching."""

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from kubenexus.api.selectors import Operator, Requirement, Selector, requirement, requirement_errors
from kubenexus.sim.apiserver.kinds import ALWAYS, ServedKind
from kubenexus.sim.apiserver.status_errors import bad_request

_TOKEN: Final = re.compile(r"\s*(==|!=|=|!|,|\(|\)|<|>|[^\s=!,()<>]+)")
_SIGNS: Final = {"=": Operator.IN, "==": Operator.IN, "!=": Operator.NOT_IN, ">": Operator.GT, "<": Operator.LT}
_SETS: Final = {"in": Operator.IN, "notin": Operator.NOT_IN}
# The value of a field that is not set: Go's zero of its type.
_ABSENT: Final = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.replicas": "0",
    "status.successful": "0",
}
_EXPECTED: Final = "in, notin, =, ==, !=, gt, lt"

Facts = tuple[Mapping[str, str], Mapping[str, str]]
Matches = Callable[[bytes], bool]


@functools.lru_cache(1024)
def labels(text: str) -> Selector:
    """Parses a label selector: `app=web,tier in (a,b),!old`. Raises StatusError."""
    tokens = [*_TOKEN.findall(text), ""]
    found: list[Requirement] = []
    while tokens[0]:
        found.append(_requirement(tokens))
        if tokens[0] == ",":
            tokens.pop(0)
        elif tokens[0]:
            raise _cannot(f"found '{tokens[0]}', expected: ',' or 'end of string'")
    return Selector(tuple(found), text)


def _requirement(tokens: list[str]) -> Requirement:
    absent = tokens[0] == "!"
    if absent:
        tokens.pop(0)
    key = tokens.pop(0)
    if absent or tokens[0] in {",", ""}:
        return _checked(key, Operator.DOES_NOT_EXIST if absent else Operator.EXISTS, [])
    sign = tokens.pop(0)
    if sign in _SIGNS:
        value = tokens.pop(0) if tokens[0] not in {",", ""} else ""
        return _checked(key, _SIGNS[sign], [value])
    if sign in _SETS:
        return _checked(key, _SETS[sign], _values(tokens))
    raise _cannot(f"found '{sign}', expected: {_EXPECTED}")


def _values(tokens: list[str]) -> list[str]:
    if tokens.pop(0) != "(":
        raise _cannot(f"found '{tokens[0]}', expected: '('")
    values = []
    while tokens[0] != ")":
        if not tokens[0]:
            raise _cannot("found '', expected: ',', ')' or identifier")
        token = tokens.pop(0)
        if token != ",":
            values.append(token)
    tokens.pop(0)
    return values


def _checked(key: str, op: Operator, values: list[str]) -> Requirement:
    wrong = requirement_errors(key, op, values)
    if wrong:
        raise _cannot("; ".join(wrong))
    return requirement(key, op, values)


def _cannot(why: str) -> Exception:
    return bad_request(f"unable to parse requirement: {why}")


# ---- fields ----------------------------------------------------------------------------------------------------------


def fields(kind: ServedKind, text: str) -> list[tuple[str, bool, str]]:
    """Parses `spec.nodeName=n1,status.phase!=Failed` into (field, equal, value). Raises StatusError."""
    found = []
    for part in filter(None, text.split(",")):
        name, sign, value = _split(part)
        if name not in kind.fields and name not in _always(kind):
            raise bad_request(f"field label not supported: {name}")
        found.append((name, sign != "!=", value))
    return found


def _always(kind: ServedKind) -> tuple[str, ...]:
    return ALWAYS if kind.namespaced else ALWAYS[:1]


def _split(part: str) -> tuple[str, str, str]:
    for sign in ("!=", "==", "="):
        name, found, value = part.partition(sign)
        if found:
            return name, sign, value
    raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")


# ---- matching --------------------------------------------------------------------------------------------------------


def matcher(kind: ServedKind, label_text: str, field_text: str) -> Matches | None:
    """Returns a predicate over stored objects, or None if everything is selected. Raises StatusError."""
    wanted_labels = labels(label_text) if label_text else None
    wanted_fields = fields(kind, field_text) if field_text else []
    if wanted_labels is None and not wanted_fields:
        return None
    facts = facts_of(kind, tuple(sorted({name for name, _, _ in wanted_fields})))

    def matches(data: bytes) -> bool:
        have, values = facts(data)
        if wanted_labels is not None and not wanted_labels.matches(have):
            return False
        return all((values[name] == value) is equal for name, equal, value in wanted_fields)

    return matches


@functools.cache
def facts_of(kind: ServedKind, names: tuple[str, ...]) -> Callable[[bytes], Facts]:
    """Returns a function that decodes only labels and these fields of an object."""
    wanted = tuple(_ALIAS.get(name, name) for name in names)
    decoder = msgspec.json.Decoder(_struct(["metadata.labels", *wanted]))
    paths = [(name, tuple(path.split("."))) for name, path in zip(names, wanted, strict=True)]

    def facts(data: bytes) -> Facts:
        seen = decoder.decode(data)
        values = {name: _text(name, _at(seen, path)) for name, path in paths}
        return _at(seen, _LABELS) or {}, values

    return facts


def _struct(paths: list[str]) -> Any:
    """Returns a type that has only these paths."""
    heads: dict[str, list[str]] = {}
    for path in paths:
        head, _, rest = path.partition(".")
        heads.setdefault(head, []).extend([rest] if rest else [])
    members = [(head, (_struct(rest) if rest else Any) | None, None) for head, rest in heads.items()]
    return msgspec.defstruct("Facts", members, gc=False)


_ALIAS = {"source": "reportingComponent"}  # of events
_LABELS = ("metadata", "labels")


def _at(seen: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        seen = getattr(seen, part, None)
    return seen


def _text(name: str, value: Any) -> str:
    if value is None:
        return _ABSENT.get(name, "")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
