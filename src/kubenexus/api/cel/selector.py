"""`DeviceSelector`: one CEL expression, and its answers about devices.

It is compiled once for all classes and claims with the same text, and evaluated once for each combination of the values
that it reads. An error is an answer, too, in kube-scheduler's words.
"""

import functools
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kubenexus.api.cel import values
from kubenexus.api.cel.attribute_reads import AttributeReads, Read, attribute_reads
from kubenexus.api.cel.expense import MAX_LENGTH, expense
from kubenexus.api.cel.library import CALLBACKS, environment
from kubenexus.api.cel.tokens import tokens
from kubenexus.api.quantity import to_nano
from kubenexus.base.errors import Malformed, truncated

MAX_SELECTORS: Final = 1024  # compiled ones that are kept: some 10 kB each
MAX_ANSWERS: Final = 256  # of one selector that are kept: some 60 kB
_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)
# The library's words, and those of the one that kube-scheduler uses.
_WORDS: Final = (
    (re.compile(r'.*Key not found in map : "(.*)"', re.DOTALL), lambda found: f"no such key: {found[1]}{_HINT}"),
    (re.compile(r".*Key not found in map : (.*)", re.DOTALL), lambda found: f"no such key: {found[1]}{_HINT}"),
    (re.compile(r".*No matching overloads found.*", re.DOTALL), lambda found: "no such overload"),
    (re.compile(r".*divide by zero", re.DOTALL), lambda found: "division by zero"),
    (re.compile(r".*Iteration budget exceeded.*"), lambda found: "operation cancelled: actual cost limit exceeded"),
    (re.compile(r"[A-Z_]+: (.*)", re.DOTALL), lambda found: found[1]),
)
_RESULTS: Final = ("BOOL", "DYN")

Maps = Mapping[str, Mapping[str, Any]]


class CelDevice(msgspec.Struct, frozen=True, gc=False):
    """A device as expressions see it: attributes and capacities by domain. `problem`: a value that cannot be read."""

    driver: str
    shared: bool
    attributes: Maps
    capacity: Maps
    problem: str = ""


class DeviceSelector:
    """A compiled expression. `problem` is why it cannot be evaluated, or "", and `steps` what an evaluation costs."""

    __slots__ = ("_answers", "_program", "_reads", "problem", "steps")

    def __init__(self, expression: str) -> None:
        self._answers: dict[object, bool | str] = {}
        self._program: Any = None
        self._reads = AttributeReads(None, frozenset())
        self.steps = 0
        self.problem = self._compile(expression)

    @property
    def reads(self) -> frozenset[Read] | None:
        """What the expression reads of a device, or None for everything."""
        return self._reads.names

    def matches(self, device: CelDevice) -> bool | str:
        """Returns whether the device matches, or the error of the evaluation as a text."""
        if device.problem:
            return device.problem
        shape = self.shape(device)
        known = self._answers.get(shape)
        if known is None:
            if len(self._answers) >= MAX_ANSWERS:
                self._answers.clear()
            known = self._answers[shape] = self._evaluate(device)
        return known

    def _compile(self, expression: str) -> str:
        if len(expression) > MAX_LENGTH:
            return f"the expression has {len(expression)} characters, more than {MAX_LENGTH}"
        found = tokens(expression)
        self.steps, expensive = expense(found, CALLBACKS)
        if expensive:
            return f"the expression is too expensive: {expensive}"
        try:
            program = environment().compile(expression)
        except RuntimeError as error:
            return f"compilation failed: {_first_line(str(error))}"
        result = program.return_type().name()
        if result not in _RESULTS:
            return f"must evaluate to bool or the unknown type, not {result.lower()}"
        self._program, self._reads = program, attribute_reads(found)
        return ""

    def shape(self, device: CelDevice) -> object:
        """Returns a key that is equal for devices that the expression cannot tell apart."""
        read = self._reads.names
        if read is None:
            attributes, capacity = _frozen(device.attributes), _frozen(device.capacity)
            return device.driver, device.shared, attributes, capacity
        return device.driver, device.shared, tuple([_value(device, each) for each in read])

    def _evaluate(self, device: CelDevice) -> bool | str:
        # Of a domain that the device does not have all names are absent, which is no error.
        absent = self._reads.domains
        attributes = {**{domain: {} for held, domain in absent if held == "attributes"}, **device.attributes}
        capacity = {**{domain: {} for held, domain in absent if held == "capacity"}, **device.capacity}
        data = {
            "driver": device.driver,
            "allowMultipleAllocations": device.shared,
            "attributes": attributes,
            "capacity": capacity,
        }
        try:
            answer = self._program.eval(data={"device": data})
            found = answer.value()
        except RuntimeError as error:
            return _in_kube_schedulers_words(str(error))
        if isinstance(found, bool):
            return found
        kind = answer.type().name()
        if kind == "ERROR":
            return _in_kube_schedulers_words(str(found))
        return f"CEL result of type {kind.lower()} could not be converted to bool"


@functools.lru_cache(maxsize=MAX_SELECTORS)
def device_selector(expression: str) -> DeviceSelector:
    """Returns the selector of an expression, compiled once."""
    return DeviceSelector(expression)


def cel_value(string: str | None, number: int | None, flag: bool | None, version: str | None) -> Any:
    """Returns the value of an attribute, exactly one of whose fields is set. Raises ValueError."""
    if number is not None:
        return number
    if flag is not None:
        return flag
    if string is not None:
        return string
    if version is not None:
        try:
            return values.semver(version)
        except ValueError as error:
            raise ValueError(f"parse semantic version: {error}") from None
    raise ValueError("unsupported attribute value")


def cel_quantity(text: Any) -> Any:
    """Returns the value of a capacity. Raises ValueError."""
    try:
        return {values.QUANTITY: str(to_nano(text))}
    except Malformed as error:
        raise ValueError(error.problem) from None


def _value(device: CelDevice, read: Read) -> object:
    held = (device.attributes if read.map == "attributes" else device.capacity).get(read.domain)
    return None if held is None else _hashable(held.get(read.name))


def _frozen(maps: Maps) -> object:
    return tuple(
        (domain, tuple((name, _hashable(held[name])) for name in sorted(held))) for domain, held in sorted(maps.items())
    )


def _hashable(value: Any) -> object:
    """Returns a value as part of a key. Its type counts, too: in Python 1 is equal to True."""
    return tuple(value.items()) if isinstance(value, dict) else (type(value), value)


def _first_line(text: str) -> str:
    """Returns where and what is wrong: `1:4: undeclared reference to 'foo'`, without the picture below it."""
    return truncated(text.partition("\n")[0].partition("<input>:")[2] or text)


def _in_kube_schedulers_words(text: str) -> str:
    text = re.sub(r" \[[A-Z_]+\]$", "", text)
    for pattern, words in _WORDS:
        found = pattern.fullmatch(text)
        if found is not None:
            return truncated(words(found))
    return truncated(text)
