"""Label selectors, compiled once and matched often.

A selector is a conjunction of requirements on single labels. A missing selector (`None`) selects nothing, and an empty
one selects everything: an old trap, so it is decided only here.

Node selectors (`node_selectors`) and their evaluation over columns use the same requirements. Values are sorted and
unique, so that two ways to write the same requirement are equal; `matchLabels` is `In` with one value. The rules of
validity and their messages are the API server's: users see the same text in `kubectl`, and in the event of a pod whose
preferences cannot be parsed.
"""

import enum
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kubenexus.api.meta import ApiObject
from kubenexus.base.errors import Malformed, truncated

INT64_RANGE: Final = range(-(2**63), 2**63)


class LabelSelectorRequirement(ApiObject):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(ApiObject):
    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []

    def keys(self) -> set[str]:
        """Returns the label keys that it uses, compilable or not. Called for every pod that has selectors."""
        keys = set(self.match_labels)
        for expression in self.match_expressions:
            keys.add(expression.key)
        return keys

    @property
    def size(self) -> int:
        """The number of requirements and values."""
        values = sum([len(expression.values) for expression in self.match_expressions])
        return len(self.match_labels) + len(self.match_expressions) + values


class Operator(enum.Enum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"

    __hash__ = object.__hash__


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """A requirement on one label. `number` is the operand of Gt and Lt."""

    key: str
    op: Operator
    values: tuple[str, ...] = ()
    number: int | None = None

    def accepts(self, value: str | None) -> bool:
        """Returns whether an object passes that has this value for the key, or no such label (`None`)."""
        op = self.op
        if op is Operator.IN:
            return value is not None and _contains(self.values, value)
        if op is Operator.NOT_IN:
            return value is None or not _contains(self.values, value)
        if op is Operator.EXISTS:
            return value is not None
        if op is Operator.DOES_NOT_EXIST:
            return value is None
        number = None if value is None else parse_int64(value)
        if number is None or self.number is None:
            return False
        return number > self.number if op is Operator.GT else number < self.number


class Selector(msgspec.Struct, frozen=True, gc=False):
    """A compiled selector; `text` is its canonical form as `kubectl get -l` takes it."""

    requirements: tuple[Requirement, ...] = ()
    text: str = ""
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.nothing:
            return False
        for wanted in self.requirements:  # noqa: SIM110 - `all` with a generator takes twice as long
            if not wanted.accepts(labels.get(wanted.key)):
                return False
        return True

    @property
    def keys(self) -> frozenset[str]:
        """The label keys that it uses: no other labels of an object matter."""
        return frozenset(requirement.key for requirement in self.requirements)

    def __str__(self) -> str:
        return self.text


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(nothing=True)

_OPERATORS: Final = {op.value: op for op in (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)}


def compile_selector(selector: LabelSelector | None) -> Selector:
    """Compiles a selector. Raises Malformed with the reason if it is invalid."""
    if selector is None:
        return NOTHING
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    parts = []
    for key, value in selector.match_labels.items():
        _refuse(requirement_errors(key, Operator.IN, (value,)))
        parts.append((requirement(key, Operator.IN, (value,)), f"{key}={value}"))
    for expression in selector.match_expressions:
        key, op, values = expression.key, _OPERATORS.get(expression.operator), expression.values
        if op is None:
            raise Malformed(f"{quote(expression.operator)} is not a valid label selector operator")
        _refuse(requirement_errors(key, op, values))
        parts.append((requirement(key, op, values), _written(key, op, values)))
    parts.sort(key=lambda part: part[0].key)
    return Selector(tuple(part for part, _ in parts), ",".join(text for _, text in parts))


def requirement(key: str, op: Operator, values: Sequence[str]) -> Requirement:
    """Returns a requirement in its normal form. The caller has checked that it is valid."""
    if op in (Operator.GT, Operator.LT):
        return Requirement(key, op, tuple(values), parse_int64(values[0]))
    return Requirement(key, op, tuple(sorted(set(values))) if len(values) > 1 else tuple(values))


def requirement_errors(key: str, op: Operator, values: Sequence[str], path: str = "") -> list[str]:
    """Returns everything that is wrong with a requirement, in the API server's words. `path` is its place in the
    object."""
    dot = "." if path else ""
    found = []
    if not is_label_key(key):
        found.append(f"{path}{dot}key: Invalid value: {quote(key)}: {'; '.join(_key_flaws(key))}")
    found.extend(f"{path}{dot}values{flaw}" for flaw in _count_flaws(op, values))
    for index, value in enumerate(values):
        if not _is_label_value(value):
            why = "; ".join(_value_flaws(value))
            found.append(f"{path}{dot}values[{index}][{truncated(key)}]: Invalid value: {quote(value)}: {why}")
    return found


def aggregate(problems: Iterable[str]) -> str:
    """Joins problems into one sentence, each once, and at most ten."""
    distinct = list(dict.fromkeys(problems))
    if len(distinct) > 10:
        distinct = [*distinct[:10], f"and {len(distinct) - 10} more"]
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def parse_int64(text: str) -> int | None:
    """Parses a label's value as Go's ParseInt does; None if it is no number or does not fit 64 bits."""
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > 19:  # beyond int64; and converting a megabyte of digits is slow
        return None
    number = -int(digits or "0") if text[0] == "-" else int(digits or "0")
    return number if number in INT64_RANGE else None


def is_label_key(key: str) -> bool:
    """Returns whether a name is a qualified name: `name` or `dns.prefix/name`."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*")

_CHARACTERS: Final = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_NAME_RULE: Final = (
    f"must consist of {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME.pattern}')"
)
_VALUE_RULE: Final = (
    f"a valid label must be an empty string or consist of {_CHARACTERS} (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '({_NAME.pattern})?')"
)
_PREFIX_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN.pattern}')"
)


def _is_label_value(value: str) -> bool:
    return not value or (len(value) <= 63 and _NAME.fullmatch(value) is not None)


def _count_flaws(op: Operator, values: Sequence[str]) -> list[str]:
    if op in (Operator.IN, Operator.NOT_IN):
        return [] if values else [": Invalid value: null: for 'in', 'notin' operators, values set can't be empty"]
    listed = truncated(msgspec.json.encode(list(values)).decode()) if values else "null"
    if op in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        return [f": Invalid value: {listed}: values set must be empty for exists and does not exist"] if values else []
    found = []
    if len(values) != 1:
        found.append(f": Invalid value: {listed}: for 'Gt', 'Lt' operators, exactly one value is required")
    found.extend(
        f"[{index}]: Invalid value: {quote(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
        for index, value in enumerate(values)
        if parse_int64(value) is None
    )
    return found


def _key_flaws(key: str) -> list[str]:
    if key.count("/") > 1:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    prefix, slash, name = key.rpartition("/")
    found = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found.extend(f"prefix part {flaw}" for flaw in _length_flaws(prefix, 253))
        found.extend([] if _SUBDOMAIN.fullmatch(prefix) else [f"prefix part {_PREFIX_RULE}"])
    found.extend(f"name part {flaw}" for flaw in (_length_flaws(name, 63) if name else ["must be non-empty"]))
    return found if _NAME.fullmatch(name) else [*found, f"name part {_NAME_RULE}"]


def _value_flaws(value: str) -> list[str]:
    return [*_length_flaws(value, 63), *([] if _NAME.fullmatch(value) else [_VALUE_RULE])]


def _length_flaws(text: str, most: int) -> list[str]:
    return [f"must be no more than {most} bytes"] if len(text.encode("utf-8", "replace")) > most else []


def _written(key: str, op: Operator, values: Sequence[str]) -> str:
    if op is Operator.EXISTS:
        return key
    if op is Operator.DOES_NOT_EXIST:
        return f"!{key}"
    return f"{key} {op.value.lower()} ({','.join(sorted(values))})"


def _contains(values: tuple[str, ...], value: str) -> bool:
    if len(values) <= 16:
        return value in values
    index = bisect_left(values, value)
    return index < len(values) and values[index] == value


def _refuse(problems: list[str]) -> None:
    if problems:
        raise Malformed(aggregate(problems))


def quote(text: str) -> str:
    """Returns a value as a quoted part of a sentence."""
    return msgspec.json.encode(truncated(text)).decode()
