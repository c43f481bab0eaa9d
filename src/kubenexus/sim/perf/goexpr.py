"""Expressions of Go's text/template, as far as workload templates use them: fields, variables, functions, pipes."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubenexus.base.errors import KubeNexusError

Values = Mapping[str, Any]  # variables by name ("$x"); "." is the dot
_TOKEN: Final = re.compile(r'\s*(:=|[()|,]|"(?:[^"\\]|\\.)*"|`[^`]*`|\$\w*|\.[\w.]*|-?\d+(?:\.\d+)?|\w+)')
_CONSTANTS: Final = {"nil": None, "true": True, "false": False}


class BadTemplate(KubeNexusError):
    """A template cannot be parsed, or an expression cannot be evaluated."""


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise BadTemplate(f"{value!r} is no number") from None


def _int(value: Any) -> int:
    return value if isinstance(value, int) else int(_number(value))


def _divide(a: int, b: int) -> int:
    if not b:
        raise BadTemplate(f"{a} divided by zero")
    return int(a / b) if (a < 0) != (b < 0) else a // b  # towards zero, as Go


def _first_true(*values: Any) -> Any:
    return next((each for each in values if each), values[-1] if values else None)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "AddFloat": lambda *values: sum(map(_number, values)),
    "AddInt": lambda *values: sum(map(_int, values)),
    "DivideFloat": lambda a, b: _number(a) / _number(b),
    "DivideInt": lambda a, b: _divide(_int(a), _int(b)),
    "Int": _int,
    "JSON": lambda value: json.dumps(value, separators=(",", ":")),
    "Mod": lambda a, b: _int(a) - _int(b) * _divide(_int(a), _int(b)),
    "MultiplyFloat": lambda a, b: _number(a) * _number(b),
    "MultiplyInt": lambda a, b: _int(a) * _int(b),
    "SubtractFloat": lambda a, b: _number(a) - _number(b),
    "SubtractInt": lambda a, b: _int(a) - _int(b),
    "and": lambda *values: next((each for each in values if not each), values[-1]),
    "eq": lambda a, *others: any(a == each for each in others),
    "ge": lambda a, b: a >= b,
    "gt": lambda a, b: a > b,
    "le": lambda a, b: a <= b,
    "len": len,
    "lt": lambda a, b: a < b,
    "ne": lambda a, b: a != b,
    "not": lambda value: not value,
    "or": _first_true,
}


def tokens(text: str) -> list[str]:
    """Splits an expression into tokens. Raises BadTemplate."""
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise BadTemplate(f"cannot read {{{{{text}}}}} from {text[at:]!r} on")
        found.append(match[1])
        at = match.end()
    return found


def evaluate(words: list[str], values: Values) -> Any:
    """Returns the value of a pipeline. Raises BadTemplate."""
    rest = list(words)
    value = _pipeline(rest, values)
    if rest:
        raise BadTemplate(f"cannot read {' '.join(words)!r} from {rest[0]!r} on")
    return value


def _pipeline(rest: list[str], values: Values) -> Any:
    value, piped = _command(rest, values, ()), True
    while rest and rest[0] == "|" and piped:
        rest.pop(0)
        value = _command(rest, values, (value,))
    return value


def _command(rest: list[str], values: Values, last: tuple[Any, ...]) -> Any:
    if not rest:
        raise BadTemplate("an expression is missing")
    if rest[0] in FUNCTIONS:
        name, arguments = rest.pop(0), []
        while rest and rest[0] not in ("|", ")"):
            arguments.append(_operand(rest, values))
        return _called(name, (*arguments, *last))
    value = _operand(rest, values)
    if last:
        raise BadTemplate(f"{value!r} is no function, nothing can be piped into it")
    return value


def _called(name: str, arguments: tuple[Any, ...]) -> Any:
    try:
        return FUNCTIONS[name](*arguments)
    except (TypeError, IndexError):
        raise BadTemplate(f"{name} cannot take {', '.join(map(repr, arguments)) or 'nothing'}") from None


def _operand(rest: list[str], values: Values) -> Any:
    word = rest.pop(0)
    if word == "(":
        value = _pipeline(rest, values)
        if not rest or rest.pop(0) != ")":
            raise BadTemplate("a parenthesis is not closed")
        return value
    if word.startswith("."):
        return _field(values["."], word)
    if word.startswith("$"):
        if word not in values:
            raise BadTemplate(f"undefined variable {word}")
        return values[word]
    if word[0] in '"`':
        return json.loads(word) if word[0] == '"' else word[1:-1]
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if word in FUNCTIONS:
        return _called(word, ())
    try:
        return int(word)
    except ValueError:
        return _float(word)


def _field(dot: Any, word: str) -> Any:
    for name in filter(None, word.split(".")):
        dot = dot.get(name) if isinstance(dot, Mapping) else None
    return dot


def _float(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise BadTemplate(f"function {word!r} is not defined") from None
