"""Finds the parts of a JSON text without decoding them, and cuts parts away.

A decoder descends into every part, also into those it skips, and fails at some depth. The API server stores parts that
are nested thousands of levels deep: clients write `metadata.managedFields[].fieldsV1`, with keys that need not even be
UTF-8. This module does not descend: it counts brackets, in a fixed number of passes over the bytes (NumPy; up to 20 ms
for a megabyte, 0.1 ms within long strings). So no text is too deep, and the time depends on the length alone.
"""

import functools
from bisect import bisect_left
from collections.abc import Generator, Iterator
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

# No kind of ours has a field deeper than 14 levels in a page of a list, and none is recursive.
MAX_DEPTH: Final = 64
# Bytes processed at a time, with some ten bytes for each of them: all of it fits into a processor's cache.
PORTION: Final = 1 << 16
STEP: Final = 1 << 20  # bytes: up to 20 ms

Span = tuple[int, int]
Places = dict[int, list[int]]
T = TypeVar("T")

_BACKSLASH, _QUOTE, _ESCAPED = b"\\\\", b'\\"', b"__"
_OPENS, _CLOSES, _QUOTES, _DIVIDES = 1, 2, 3, 4
_ROLE_OF: Final = dict(zip(b'[{]}",:', (_OPENS, _OPENS, _CLOSES, _CLOSES, _QUOTES, _DIVIDES, _DIVIDES), strict=True))
_ROLES: Final = bytes(_ROLE_OF.get(byte, 0) for byte in range(256))
_BRACKETS: Final = _ROLES.translate(bytes((0, _OPENS, _CLOSES, _QUOTES, 0)).ljust(256))


def without_deep_parts(raw: bytes, deepest: int = MAX_DEPTH) -> bytes:
    """Returns the text with all objects and arrays deeper than `deepest` levels emptied. All else stays at its place:
    removed bytes become blanks."""
    text, end = np.frombuffer(bytearray(raw), np.uint8), 0
    before = 0  # the level of what comes next
    for start, places, role, level in _passes(raw, _BRACKETS):
        if before > deepest:
            text[end:start] = 32
        after, end = level - (role == _CLOSES), start + int(places[-1]) + 1
        if min(before, int(level.min()) - 1) > deepest:
            text[start:end] = 32
        elif level.max() > deepest:
            emptied = np.repeat(np.append(before, after[:-1]) > deepest, np.diff(places, prepend=0))
            emptied = np.append(emptied, False)
            emptied[places] = level > deepest + 1
            text[start:end][emptied] = 32
        before = int(after[-1])
    if before > deepest:
        text[end:] = 32
    return text.tobytes()


def without_unread_fields(raw: bytes, shape: type[object]) -> bytes:
    """Returns the text with the values of fields that a shape does not have replaced by 0, in the object itself and in
    its direct parts (`metadata`, `spec`, `status`)."""
    if not issubclass(shape, msgspec.Struct):
        return raw
    outline, text, known = JsonOutline(raw), bytearray(raw), _fields(shape)
    for key, (start, end) in outline.members(1, outline.top):
        if key not in known:
            text[start:end] = b"0".ljust(end - start)
        elif (part := known[key]) is not None:
            inner = _fields(part)
            for name, (begin, stop) in outline.members(2, (start, end)):
                if name not in inner:
                    text[begin:stop] = b"0".ljust(stop - begin)
    return bytes(text)


class JsonOutline:
    """The objects and arrays of a text down to two levels. Of a text that is cut off, all that comes before the cut:
    every position counts from the beginning."""

    def __init__(self, raw: bytes, places: Places | None = None) -> None:
        """`places` is the result of `find_outline` for this text; None: computed here."""
        self._raw = raw
        self._places = run_steps(find_outline(raw)) if places is None else places
        begin, stop = self._stripped(0, len(raw))
        closed = next((at + 1 for at in self._places[1] if raw[at] in b"]}"), 0)
        self.top: Span = (begin, closed or stop)
        self.whole = closed == stop and self._places[1][:1] == [begin] != [stop - 1]  # nothing before it or behind it

    def items(self, level: int, span: Span) -> list[Span]:
        """Returns the spans of the items of an array."""
        return [part for part, _ in self._parts(level, span)] if self._raw[span[0] : span[0] + 1] == b"[" else []

    def members(self, level: int, span: Span) -> Iterator[tuple[str, Span]]:
        """Yields the keys and the spans of the values of an object."""
        if self._raw[span[0] : span[0] + 1] != b"{":
            return
        for (start, end), colon in self._parts(level, span):
            try:
                key = msgspec.json.decode(self._raw[start : max(colon, start)], type=str)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            yield key, self._stripped(colon + 1, end)

    def _parts(self, level: int, span: Span) -> Iterator[tuple[Span, int]]:
        """Yields the spans between the commas, each with the position of its first colon (-1 if there is none)."""
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


def find_outline(raw: bytes) -> Generator[None, None, Places]:
    """Returns the positions of brackets, commas and colons of the first two levels, in order. Yields after each
    megabyte of the text, or some more within a string."""
    found: Places = {1: [], 2: []}
    due = STEP
    for start, places, _, level in _passes(raw, _ROLES):
        if start >= due:
            due = start + STEP
            yield
        for wanted in found:
            found[wanted] += (places[level == wanted] + start).tolist()
    return found


def run_steps(steps: Generator[None, None, T]) -> T:
    """Runs a generator of steps to its end and returns its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _passes(raw: bytes, roles: bytes) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.uint8], NDArray[np.int32]]]:
    """Yields for each portion of a text with any: its start; the positions from there of brackets, commas and colons
    outside strings; and the role and level of each. An object or array has the same level as its direct contents, from
    bracket to bracket.

    Only these bytes are processed, and portions within a string not at all. Where an API server makes a text long (a
    `<` becomes `\\u003c`), its strings are long.
    """
    end, quotes, depth = 0, 0, 0
    while end < len(raw):
        start, end = end, end + PORTION
        if raw[end - 1 : end] == b"\\":
            run = raw[start:end]
            end += (len(run) - len(run.rstrip(b"\\"))) & 1  # the escaped byte belongs to it
        if quotes and raw.find(b'"', start, end) < 0:
            continue
        role = np.frombuffer(_unescaped(raw[start:end]).translate(roles), np.uint8)
        places = np.flatnonzero(role != 0)
        if not len(places):
            continue
        role = role[places]
        is_quote = role == _QUOTES
        allowed_rows = np.cumsum(is_quote, dtype=np.uint8)  # modulo 256: only the parity matters
        allowed_rows += quotes
        quotes = int(allowed_rows[-1]) & 1
        outside = np.flatnonzero(((allowed_rows & 1) | is_quote) == 0)
        if not len(outside):
            continue
        places, role = places[outside], role[outside]
        closes = role == _CLOSES
        level = np.cumsum((role == _OPENS).view(np.int8) - closes.view(np.int8), dtype=np.int32)
        level += depth
        depth = int(level[-1])
        level += closes
        yield start, places, role, level


def _unescaped(text: bytes) -> bytes:
    """Returns the text without escaped quotes and backslashes, if it has any escaped quotes."""
    return text.replace(_BACKSLASH, _ESCAPED).replace(_QUOTE, _ESCAPED) if _QUOTE in text else text


@functools.cache
def _fields(shape: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct] | None]:
    """Returns the fields of a struct, each with its type if that is a struct."""
    return {field.encode_name: _struct(field.type) for field in msgspec.structs.fields(shape)}


def _struct(kind: Any) -> type[msgspec.Struct] | None:
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None
