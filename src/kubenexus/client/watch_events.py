"""Decodes the lines of a watch into events. An object that cannot be read is passed on as an Unreadable."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from kubenexus.api.codec import HasMetadata, Unreadable, from_json, read_object
from kubenexus.api.json_outline import JsonOutline, without_deep_parts
from kubenexus.api.meta import ApiObject, ObjectMeta
from kubenexus.base.errors import Malformed
from kubenexus.client.calls import ApiError
from kubenexus.client.status import status_error

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
PORTION: Final = 1 << 20  # bytes
MAX_WORK: Final = 4096  # of the objects that a handler gets at once: entries of pods, 5 to 15 us each
T = TypeVar("T")
Work = Callable[[Any], int]  # how much work it is to handle an object


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One event of a watch. `object` is of the watched kind, or Unreadable; for a deletion, its last state.

    Handlers must take a MODIFIED of an unknown object as an ADDED: after a gap there may be such events.
    """

    type: str
    object: Any


class WatchBatch(msgspec.Struct):
    """Some lines: the events, the last version, and the error with which the server ended the watch, if it did. `first`
    is the version of the first line, `rewound` a version that is lower than that of a line before it."""

    changes: list[WatchEvent]
    version: str = ""
    first: str = ""
    rewound: str = ""
    bookmarked: bool = False
    error: ApiError | None = None


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _Mark(ApiObject):
    metadata: ObjectMeta = ObjectMeta()


_LINE: Final = msgspec.json.Decoder(_Line)
_BAD: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_TYPE: Final = re.compile(rb'"([A-Z]+)"')
_TOO_LARGE: Final = 504
_REWOUND: Final = "Too large resource version"  # as kube-apiserver words it


def decode_watch_lines(lines: list[bytes], kind: type[HasMetadata]) -> WatchBatch:
    """Decodes lines in their order, up to an error, after which the server sends nothing."""
    batch = WatchBatch([])
    for line in lines:
        what, raw = _parts(line)
        if what == "ERROR":
            batch.error = status_error(0, bytes(raw))
            break
        if what == "BOOKMARK":
            batch.bookmarked = True
            _advance(batch, _version(raw))
        else:
            found = read_object(raw, kind)
            batch.changes.append(WatchEvent(what, found))
            _advance(batch, _version_of(found))
    return batch


def portions(things: list[T], sizes: list[int], most: int = PORTION) -> Iterator[list[T]]:
    """Yields the same things in portions of about a megabyte, in order, so that each is handled quickly. A single
    object may have a megabyte and a half. `most` is for sizes of another unit."""
    portion: list[T] = []
    sum_of_sizes = 0
    for thing, size in zip(things, sizes, strict=True):
        if portion and sum_of_sizes + size > most:
            yield portion
            portion, sum_of_sizes = [], 0
        portion.append(thing)
        sum_of_sizes += size
    if portion:
        yield portion


def split_batch(batch: WatchBatch, work: Work) -> Iterator[WatchBatch]:
    """Yields a batch in parts of which each is at most MAX_WORK, or one event. A megabyte of a watch may be any amount
    of work. Each part has the version of its last event; the error comes with the last part."""
    parts = list(portions(batch.changes, [work(event.object) for event in batch.changes], MAX_WORK))
    if len(parts) < 2:
        yield batch
        return
    for number, changes in enumerate(parts):
        first, rewound = (batch.first, batch.rewound) if not number else ("", "")
        if number < len(parts) - 1:
            versions = [version for event in changes if (version := _version_of(event.object))]
            yield WatchBatch(changes, versions[-1] if versions else "", first, rewound)
        else:
            yield WatchBatch(changes, batch.version, first, rewound, batch.bookmarked, batch.error)


def version_at_least(version: str, moment: str) -> bool:
    """Whether a resourceVersion has reached another. False if one of them is not a number."""
    return version.isdigit() and moment.isdigit() and int(version) >= int(moment)


def before(version: str, moment: str) -> bool:
    """Whether a resourceVersion is lower than another. False if one of them is not a number."""
    return version.isdigit() and moment.isdigit() and int(version) < int(moment)


def version_too_large(version: str, current: str) -> ApiError:
    """Returns what kube-apiserver answers if it has yet to reach a version."""
    return ApiError(_TOO_LARGE, message=f"{_REWOUND}: {version}, current: {current}")


def is_version_too_large(error: ApiError) -> bool:
    """Whether the server has yet to reach the version of the call: kube-apiserver answers 504, as a gateway does."""
    return error.code == _TOO_LARGE and _REWOUND in error.message


def _advance(batch: WatchBatch, version: str) -> None:
    if not version:
        return
    if before(version, batch.version):
        batch.rewound = version
    batch.first = batch.first or version
    batch.version = version


def _parts(line: bytes) -> tuple[str, bytes | msgspec.Raw]:
    try:
        found = _LINE.decode(line)
        return found.type, found.object
    except _BAD:
        line = without_deep_parts(line)
    try:
        found = _LINE.decode(line)
        return found.type, found.object
    except _BAD:
        # Not JSON as a whole. `read_object` finds the object that it belongs to, and what is wrong.
        outline = JsonOutline(line)
        parts = {key: line[start:end] for key, (start, end) in outline.members(1, outline.top)}
        named_type = _TYPE.fullmatch(parts.get("type", b""))
        return (named_type[1].decode(), parts["object"]) if named_type and "object" in parts else (MODIFIED, line)


def _version(raw: bytes | msgspec.Raw) -> str:
    try:
        return from_json(raw, _Mark).metadata.resource_version
    except Malformed:
        return ""


def _version_of(found: HasMetadata | Unreadable) -> str:
    return found.resource_version if isinstance(found, Unreadable) else found.metadata.resource_version
