"""Splits a CEL expression into tokens, for questions that need no syntax tree."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

IDENTIFIER, STRING, NUMBER, SIGN = range(4)

_TOKEN: Final = re.compile(
    r"""
    (?P<blank>\s++ | //[^\n]*+)
  | (?P<string>(?P<prefix>[bBrR]{0,2}+)
      (?: \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}
        | "(?P<double>(?:\\.|[^"\\\n])*+)" | '(?P<single>(?:\\.|[^'\\\n])*+)' ))
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*+)
  | (?P<number>[0-9][0-9A-Za-z_.]*+)
  | (?P<sign>\[\? | \.\? | [<>=!]= | && | \|\| | .)
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(msgspec.Struct, frozen=True, gc=False):
    """One token. The text of a string is its value; `plain` is False if it has escapes or a prefix, and then the text
    is as written."""

    kind: int
    text: str
    plain: bool = True


def tokens(expression: str) -> list[Token]:
    """Returns the tokens of an expression, without blanks and comments. Never fails: a sign is any character."""
    return list(_tokens(expression))


def _tokens(expression: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(expression):
        kind = found.lastgroup
        if kind == "blank":
            continue
        if found["string"] is not None:
            value = found["double"] if found["double"] is not None else found["single"]
            plain = value is not None and not found["prefix"] and "\\" not in value
            yield Token(STRING, value if plain else found["string"], plain)
        elif found["name"] is not None:
            yield Token(IDENTIFIER, found["name"])
        else:
            yield Token(SIGN if found["number"] is None else NUMBER, found[0])
