"""Which attributes and capacities of a device an expression can read.

Drivers give every device a UUID, so no two devices are equal as a whole. An expression reads one or two attributes, and
its answer is the same for all devices that are equal in these. The answer here is safe: an expression that uses the
device in any way not known here reads everything.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kubenexus.api.cel.tokens import IDENTIFIER, STRING, Token

_MAPS: Final = ("attributes", "capacity")
_OTHER_FIELDS: Final = ("driver", "allowMultipleAllocations")
_SELECT: Final = (".", ".?")
_INDEX: Final = ("[", "[?")


class Read(NamedTuple):
    """A name of a domain in `attributes` or `capacity`."""

    map: str
    domain: str
    name: str


class AttributeReads(NamedTuple):
    """What an expression reads: `names`, or everything if that is None. `domains` are those it names, by map: of a
    domain that a device does not have, all names are absent."""

    names: frozenset[Read] | None
    domains: frozenset[tuple[str, str]]


class _Place(NamedTuple):
    """A domain's map at the end of some tokens: `device.attributes["example.com"]`."""

    map: str
    domain: str
    end: int


def attribute_reads(found: Sequence[Token]) -> AttributeReads:
    """Returns what an expression of these tokens reads of a device."""
    places = [(at, _place(found, at)) for at, token in enumerate(found) if _is_variable(found, at, "device")]
    domains = frozenset((place.map, place.domain) for _, place in places if place is not None and place.map)
    names: set[Read] = set()
    aliases: dict[str, set[tuple[str, str]]] = {}
    for at, place in places:
        if place is None:
            return AttributeReads(None, domains)
        if not place.map or _add_read(found, at, place, names):
            continue
        alias = _bound(found, at, place)
        if not alias:
            return AttributeReads(None, domains)
        aliases.setdefault(alias, set()).add((place.map, place.domain))
    for alias, held in aliases.items():
        for at in range(len(found)):
            if not _is_variable(found, at, alias) or _is_declaration(found, at):
                continue
            if not all(_add_read(found, at, _Place(*each, at), names) for each in held):
                return AttributeReads(None, domains)
    return AttributeReads(frozenset(names), domains)


def _is_variable(found: Sequence[Token], at: int, name: str) -> bool:
    """Whether the token is this variable, rather than a field or a function of the same name."""
    token = found[at]
    if token.kind != IDENTIFIER or token.text != name:
        return False
    return not (at and found[at - 1].text in _SELECT and found[at - 1].kind != STRING)


def _place(found: Sequence[Token], at: int) -> _Place | None:
    """Returns the map that `device` at this token leads to. A map of "" is another field; None is any other use."""
    field = _selected(found, at)
    if field in _OTHER_FIELDS:
        return _Place("", "", at + 2)
    if field not in _MAPS:
        return None
    domain = _indexed(found, at + 2)
    return None if domain is None else _Place(field, domain, at + 5)


def _add_read(found: Sequence[Token], start: int, place: _Place, names: set[Read]) -> bool:
    """Adds the name that is read of a map, and returns True, or False if the map is used in another way."""
    name = _selected(found, place.end)
    if name is None:
        name = _indexed(found, place.end)
    if name is None and _text(found, place.end + 1) not in (*_SELECT, *_INDEX):
        name = _tested(found, start)
    if name is None:
        return False
    names.add(Read(place.map, place.domain, name))
    return True


def _selected(found: Sequence[Token], at: int) -> str | None:
    """Returns the field after a token: `.name` or `.?name`. A call such as `.size()` is none."""
    if _text(found, at + 1) not in _SELECT or at + 2 >= len(found) or found[at + 2].kind != IDENTIFIER:
        return None
    return None if _text(found, at + 3) == "(" else found[at + 2].text


def _indexed(found: Sequence[Token], at: int) -> str | None:
    """Returns the index after a token: `["name"]` or `[?"name"]`."""
    if _text(found, at + 1) not in _INDEX or _text(found, at + 3) != "]":
        return None
    index = found[at + 2]
    return index.text if index.kind == STRING and index.plain else None


def _tested(found: Sequence[Token], at: int) -> str | None:
    """Returns the name before a token: `"name" in`."""
    if at < 2 or found[at - 1].text != "in" or found[at - 1].kind != IDENTIFIER:
        return None
    name = found[at - 2]
    # A sum such as `"a" + "b" in` has another token before the name.
    alone = at == 2 or found[at - 3].text in ("(", "&&", "||", "!", ",", "?", ":", "[", "{")
    return name.text if alone and name.kind == STRING and name.plain else None


def _bound(found: Sequence[Token], at: int, place: _Place) -> str:
    """Returns the variable of `cel.bind(variable, device.attributes["..."], ...)`, or ""."""
    before = [token.text for token in found[max(at - 6, 0) : at]]
    if len(before) == 6 and before[:4] == ["cel", ".", "bind", "("] and before[5] == ",":
        return before[4] if _text(found, place.end + 1) == "," else ""
    return ""


def _is_declaration(found: Sequence[Token], at: int) -> bool:
    return at >= 2 and _text(found, at - 1) == "(" and found[at - 2].text == "bind" and _text(found, at + 1) == ","


def _text(found: Sequence[Token], at: int) -> str:
    return found[at].text if at < len(found) and found[at].kind != STRING else ""
