"""Where the parts of a JSON text lie, found without reading them, and what can be cut away by that alone.

A decoder descends into whatever it meets, also into what it is to skip, and gives up at some depth. The API server
stores parts that are nested thousands of levels deep: `metadata.managedFields[].fieldsV1` is what a client made of it,
with keys that need not even be UTF-8. Here nothing descends: brackets are counted, in a fixed number of passes over the
bytes (NumPy; 20 to 50 ms for 1.5 MB, whatever is in it). So no text is too deep, and none takes more than its length.
"""

import functools
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

# No kind of ours has a field that lies deeper than 14 levels in a page of a list, and none of them holds itself.
DEEPEST: Final = 64
# Bytes that are worked on at a time, with some ten bytes for each of them: all of it fits into a processor's cache.
PORTION: Final = 1 << 16

Span = tuple[int, int]

_BACKSLASH, _QUOTE, _ESCAPED = b"\\\\", b'\\"', b"__"
_OPENS, _CLOSES, _QUOTES, _DIVIDES = 1, 2, 3, 4
_ROLE_OF: Final = dict(zip(b'[{]}",:', (_OPENS, _OPENS, _CLOSES, _CLOSES, _QUOTES, _DIVIDES, _DIVIDES), strict=True))
_ROLES: Final = bytes(_ROLE_OF.get(byte, 0) for byte in range(256))


def cut(raw: bytes, deepest: int = DEEPEST) -> bytes:
    """The same text, with all objects and arrays empty that lie deeper than `deepest` levels. All else stays in its
    place: what was cut away becomes blanks."""
    text = np.frombuffer(bytearray(raw), np.uint8)
    for start, role, level in _passes(raw):
        if level.max() <= deepest:
            continue
        emptied = level > deepest
        emptied &= (level > deepest + 1) | ((role != _OPENS) & (role != _CLOSES))
        text[start : start + len(role)][emptied] = 32
    return text.tobytes()


def pruned(raw: bytes, shape: type[object]) -> bytes:
    """The same text without the values of fields that a shape does not have, in the object itself and in the objects
    that it consists of (`metadata`, `spec`, `status`). They become 0."""
    if not issubclass(shape, msgspec.Struct):
        return raw
    outline, text, known = Outline(raw), bytearray(raw), _fields(shape)
    for key, (start, end) in outline.members(1, outline.top):
        if key not in known:
            text[start:end] = b"0".ljust(end - start)
        elif (part := known[key]) is not None:
            inner = _fields(part)
            for name, (begin, stop) in outline.members(2, (start, end)):
                if name not in inner:
                    text[begin:stop] = b"0".ljust(stop - begin)
    return bytes(text)


class Outline:
    """The objects and arrays of a text down to two levels, and what divides them. Of a text that is cut off, all that
    comes before: every place counts from the beginning."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._places: dict[int, list[int]] = {1: [], 2: []}  # brackets, commas and colons of a level, in their order
        for start, role, level in _passes(raw):
            for deep in self._places:
                self._places[deep] += (np.flatnonzero((level == deep) & (role != 0)) + start).tolist()
        begin, stop = self._stripped(0, len(raw))
        closed = next((at + 1 for at in self._places[1] if raw[at] in b"]}"), 0)
        self.top: Span = (begin, closed or stop)
        self.whole = closed == stop and self._places[1][:1] == [begin] != [stop - 1]  # nothing before it or behind it

    def items(self, level: int, span: Span) -> list[Span]:
        """The items of an array."""
        return [part for part, _ in self._parts(level, span)] if self._raw[span[0] : span[0] + 1] == b"[" else []

    def members(self, level: int, span: Span) -> Iterator[tuple[str, Span]]:
        """Keys and values of an object."""
        if self._raw[span[0] : span[0] + 1] != b"{":
            return
        for (start, end), colon in self._parts(level, span):
            try:
                key = msgspec.json.decode(self._raw[start : max(colon, start)], type=str)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            yield key, self._stripped(colon + 1, end)

    def _parts(self, level: int, span: Span) -> Iterator[tuple[Span, int]]:
        """What lies between the commas, and where the first colon is in it (-1 if there is none)."""
        places = self._places[level]
        begin, colon = span[0] + 1, -1
        for at in places[bisect_left(places, begin) : bisect_left(places, span[1])]:
            if self._raw[at] == 58:
                colon = at if colon < 0 else colon
                continue
            if (part := self._stripped(begin, at))[0] < part[1]:
                yield part, colon
            begin, colon = at + 1, -1
        if (part := self._stripped(begin, span[1]))[0] < part[1]:
            yield part, colon  # no bracket closes it

    def _stripped(self, start: int, end: int) -> Span:
        while start < end and self._raw[start] in b" \t\r\n":
            start += 1
        while start < end and self._raw[end - 1] in b" \t\r\n":
            end -= 1
        return start, end


def _passes(raw: bytes) -> Iterator[tuple[int, NDArray[np.uint8], NDArray[np.int32]]]:
    """For each portion of a text: where it starts, which role each byte has (none within strings), and its level. An
    object or array is of the same level as all that it holds itself, from bracket to bracket."""
    if _BACKSLASH[:1] in raw:
        raw = raw.replace(_BACKSLASH, _ESCAPED).replace(_QUOTE, _ESCAPED)
    roles = np.frombuffer(raw.translate(_ROLES), np.uint8)
    quotes, depth = 0, 0
    for start in range(0, len(roles), PORTION):
        role = roles[start : start + PORTION]
        is_quote = (role == _QUOTES).view(np.uint8)
        within = np.cumsum(is_quote, dtype=np.uint8)  # modulo 256: only whether it is odd matters
        within += quotes
        quotes = int(within[-1]) & 1
        within |= is_quote
        within &= 1
        role = role * (within ^ 1)
        closes = role == _CLOSES
        level = np.cumsum((role == _OPENS).view(np.int8) - closes.view(np.int8), dtype=np.int32)
        level += depth
        depth = int(level[-1])
        level += closes
        yield start, role, level


@functools.cache
def _fields(shape: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct] | None]:
    """The fields of a struct, with the structs among them."""
    return {field.encode_name: _struct(field.type) for field in msgspec.structs.fields(shape)}


def _struct(kind: Any) -> type[msgspec.Struct] | None:
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None
