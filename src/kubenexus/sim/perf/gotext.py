"""Go's text/template, as far as workload templates use it: values, `if`, `range`, variables, trimmed blanks."""

import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from kubenexus.sim.perf.goexpr import BadTemplate, Values, evaluate, tokens

_ACTION: Final = re.compile(r"\{\{(- )?(.*?)( -)?\}\}", re.DOTALL)
_NO_VALUE: Final = "<no value>"


class TextNode(msgspec.Struct, frozen=True):
    text: str


class ActionNode(msgspec.Struct, frozen=True):
    words: list[str]


class SetNode(msgspec.Struct, frozen=True):
    name: str
    words: list[str]


class IfNode(msgspec.Struct, frozen=True):
    """The branches in order; one without a condition is the `else`."""

    branches: list[tuple[list[str], list[Any]]]


class RangeNode(msgspec.Struct, frozen=True):
    names: list[str]
    words: list[str]
    body: list[Any]


Part: TypeAlias = TextNode | ActionNode | SetNode | IfNode | RangeNode


class GoTemplate:
    """A parsed template. Raises BadTemplate, both when parsed and when rendered."""

    def __init__(self, text: str) -> None:
        pieces = _pieces(text)
        self._parts, end = _body(pieces)
        if end:
            raise BadTemplate(f"{{{{{end[0]}}}}} without a beginning")
        self.names = set(re.findall(r"\.([A-Za-z]\w*)", " ".join(match[2] for match in _ACTION.finditer(text))))

    def render(self, environment: dict[str, Any]) -> str:
        return "".join(_rendered(self._parts, {".": environment, "$": environment}))


def _pieces(text: str) -> Iterator[str | list[str]]:
    """Yields texts, and the words of actions."""
    at, trim = 0, False
    for match in _ACTION.finditer(text):
        before = text[at : match.start()]
        before = before.lstrip() if trim else before
        yield before.rstrip() if match[1] else before
        if not match[2].lstrip().startswith("/*"):
            yield tokens(match[2])
        at, trim = match.end(), bool(match[3])
    yield text[at:].lstrip() if trim else text[at:]


def _body(pieces: Iterator[str | list[str]]) -> tuple[list[Part], list[str]]:
    """Returns the parts up to an `else` or `end`, and that action; [] at the end of the text."""
    parts: list[Part] = []
    for piece in pieces:
        if isinstance(piece, str):
            parts.append(TextNode(piece))
        elif not piece:
            raise BadTemplate("empty action {{}}")
        elif piece[0] in ("end", "else"):
            return parts, piece
        elif piece[0] == "if":
            parts.append(_if(piece[1:], pieces))
        elif piece[0] == "range":
            parts.append(_range(piece[1:], pieces))
        elif len(piece) > 1 and piece[1] == ":=":
            parts.append(SetNode(piece[0], piece[2:]))
        else:
            parts.append(ActionNode(piece))
    return parts, []


def _if(words: list[str], pieces: Iterator[str | list[str]]) -> IfNode:
    branches: list[tuple[list[str], list[Any]]] = []
    while True:
        body, end = _body(pieces)
        branches.append((words, body))
        if not end:
            raise BadTemplate("{{if}} without {{end}}")
        if end[0] == "end":
            return IfNode(branches)
        words = end[2:] if end[1:2] == ["if"] else []


def _range(words: list[str], pieces: Iterator[str | list[str]]) -> RangeNode:
    names: list[str] = []
    if ":=" in words:
        at = words.index(":=")
        names, words = [word for word in words[:at] if word != ","], words[at + 1 :]
    body, end = _body(pieces)
    if end != ["end"]:
        raise BadTemplate("{{range}} without {{end}}")
    return RangeNode(names, words, body)


# ---- rendering -------------------------------------------------------------------------------------------------------


def _rendered(parts: list[Any], values: dict[str, Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, TextNode):
            yield part.text
        elif isinstance(part, ActionNode):
            yield _shown(evaluate(part.words, values))
        elif isinstance(part, SetNode):
            values[part.name] = evaluate(part.words, values)
        elif isinstance(part, IfNode):
            yield from _chosen(part, values)
        else:
            yield from _repeated(part, values)


def _chosen(part: IfNode, values: dict[str, Any]) -> Iterator[str]:
    for words, body in part.branches:
        if not words or evaluate(words, values):
            yield from _rendered(body, dict(values))
            return


def _repeated(part: RangeNode, values: Values) -> Iterator[str]:
    many = evaluate(part.words, values)
    items = range(many) if isinstance(many, int) else many or ()
    for index, item in enumerate(items):
        scope = {**values, ".": item}
        scope |= dict(zip(part.names, (index, item) if len(part.names) > 1 else (item,), strict=False))
        yield from _rendered(part.body, scope)


def _shown(value: Any) -> str:
    if value is None:
        return _NO_VALUE
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
