"""Decodes JSON to objects, and encodes objects.

Each kind has a typed decoder, made once, which builds only the fields that we know. The decoder is strict, but Go is
not: it writes `null` for an empty list or map, and passes on odd values in fields that we do not read. So bytes that
the strict decoder refuses are decoded again (`json_outline`): first without parts that are nested too deeply, then
without unread fields and nulls.

If that fails, too, the result names the object, the field and what was expected. One bad object in a list does not
affect the others. It is returned as an `Unreadable` with the identity that is at its exact place in the text. A pod
that runs on a node takes capacity there even if it cannot be decoded, so the ledger blocks that node. A guess at the
identity would let any text that looks like a node's name, such as an annotation, block that node.

Only the shape is checked here. Quantities and selectors are checked where they are used.
"""

import functools
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.api.identity import decode_leniently, find_identity, find_non_finite
from kubenexus.api.json_outline import (
    JsonOutline,
    Span,
    find_outline,
    run_steps,
    without_deep_parts,
    without_unread_fields,
)
from kubenexus.api.meta import ObjectMeta
from kubenexus.base.errors import Malformed, truncated


class HasMetadata(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


Kind = TypeVar("Kind", bound=HasMetadata)
Shape = TypeVar("Shape")


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """An object that cannot be used, as far as it could be identified. `node` is the node of a bound pod."""

    kind: str
    namespace: str = ""
    name: str = ""
    uid: str = ""
    node: str = ""
    phase: str = ""
    resource_version: str = ""
    field: str = ""
    problem: str = ""

    @property
    def identified(self) -> bool:
        """Whether the object has a namespace and a name. Others block no node: no later event could unblock it."""
        return bool(self.namespace and self.name)

    @property
    def ended(self) -> bool:
        """Whether it is a pod that has ended, and so takes no capacity."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def subject(self) -> str:
        return _subject(self.kind, self.namespace, self.name)

    @property
    def error(self) -> Malformed:
        return Malformed(self.problem, field=self.field, subject=self.subject)


class ListPage(msgspec.Struct, Generic[Kind], frozen=True, gc=False):
    """A page of a list: readable and unreadable objects, and where the next page (`more`) or the watch begins."""

    items: list[Kind]
    resource_version: str = ""
    more: str = ""
    unreadable: tuple[Unreadable, ...] = ()


class Page(msgspec.Struct, Generic[Kind], frozen=True):
    """A page of a list that is decoded while `portions` is iterated: once, in order, at least one."""

    count: int
    more: str
    portions: Iterator[ListPage[Kind]]


class _ListMeta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, Generic[Kind], frozen=True, gc=False):
    items: list[Kind] | msgspec.UnsetType | None = msgspec.UNSET
    metadata: _ListMeta = _ListMeta()
    kind: str = ""


class _RawList(msgspec.Struct, frozen=True, gc=False):
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET
    metadata: _ListMeta = _ListMeta()
    kind: str = ""


AT_ONCE: Final = 1 << 22  # bytes of a page that is decoded as a whole: 20 ms
SPLIT_AT_ONCE: Final = 1 << 24  # bytes of a page that a decoder splits: 1 ms per megabyte, 2 at most
PORTION: Final = 1 << 20  # bytes of items: 5 ms
# The cost of a second try: 0.2 ms for each object, and up to 100 ms for a megabyte.
AGAIN, AGAIN_EACH = 16, 1 << 12
# All exceptions of a decoder for bad bytes: wrong shape, no JSON, no UTF-8, too deep.
_UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_PLACE: Final = re.compile(r"^(.*) - at `\$\.?(.*)`$", re.DOTALL)
_ENCODER: Final = msgspec.json.Encoder()


def decode_pod(raw: bytes) -> Pod:
    """Decodes a pod. Raises Malformed."""
    return decode(raw, Pod)


def decode_node(raw: bytes) -> Node:
    """Decodes a node. Raises Malformed."""
    return decode(raw, Node)


def decode(raw: bytes, kind: type[Kind]) -> Kind:
    """Decodes an object of a kind. Raises Malformed."""
    answer = read_object(raw, kind)
    if isinstance(answer, Unreadable):
        raise answer.error
    return answer


def read_object(raw: bytes | msgspec.Raw, kind: type[Kind]) -> Kind | Unreadable:
    """Decodes an object of a kind, or returns it as Unreadable. For streams that must go on after any object."""
    try:
        found = _decoder(kind).decode(raw)
    except _UNDECODABLE:
        return _second_try(bytes(raw), kind)
    return _complete(found)


def decode_list(raw: bytes, kind: type[Kind]) -> ListPage[Kind]:
    """Decodes a page of a list. Raises Malformed only if it is not a list; bad items are in `unreadable`."""
    first, *others = run_steps(split_list(raw, kind)).portions
    items, bad = first.items, [*first.unreadable]
    for each in others:
        items += each.items
        bad += each.unreadable
    return ListPage(items, first.resource_version, first.more, tuple(bad))


def split_list(raw: bytes, kind: type[Kind]) -> Generator[None, None, Page[Kind]]:
    """Splits a page of a list into portions. Each step and each portion takes at most some 30 ms for any page, so that
    the caller can do other work in between. Raises Malformed only if it is not a list."""
    if len(raw) <= AT_ONCE and (page := _read_at_once(raw, kind)) is not None:
        return page
    found, error = None, Malformed("expected an object with items")
    if len(raw) <= SPLIT_AT_ONCE:
        try:
            found = _RAW_LIST.decode(raw)
        except _UNDECODABLE as refused:
            error = _explained(refused)
        yield
    if found is None:
        found = _split(raw, JsonOutline(raw, (yield from find_outline(raw))))
    if found is None:
        raise error.within(subject=f"list of {kind.__name__}")
    items = _items(found.items, found.kind, kind)
    return Page(len(items), found.metadata.continue_, _read_in_portions(items, kind, found.metadata))


def from_json(raw: bytes | msgspec.Raw, shape: type[Shape]) -> Shape:
    """Decodes any struct from JSON, as lenient with unread fields as `read_object`. Raises Malformed."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except _UNDECODABLE:
        text = without_deep_parts(bytes(raw))
    with suppress(*_UNDECODABLE):
        return msgspec.json.decode(text, type=shape)
    try:
        return msgspec.convert(_without_nulls(_ANYTHING.decode(without_unread_fields(text, shape))), shape)
    except _UNDECODABLE as error:
        raise _explained(error) from None


def from_data(data: object, shape: type[Shape]) -> Shape:
    """Converts plain data, as from YAML or test cases, to a typed value. Nulls count as absent. Raises Malformed."""
    try:
        return msgspec.convert(_without_nulls(data), shape)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _explained(error) from None


def encode(value: object) -> bytes:
    """Returns JSON as the API server takes it: names in camelCase, defaults left out."""
    return _ENCODER.encode(value)


def as_unreadable(found: HasMetadata, error: Malformed) -> Unreadable:
    """Returns the Unreadable for an object that was decoded but cannot be used, for example because of a quantity."""
    pod, meta = found if isinstance(found, Pod) else None, found.metadata
    return Unreadable(
        kind=type(found).__name__,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        node=pod.spec.node_name if pod else "",
        phase=pod.status.phase if pod else "",
        resource_version=meta.resource_version,
        field=error.field,
        problem=error.problem,
    )


@functools.cache
def _decoder(kind: type[Kind]) -> msgspec.json.Decoder[Kind]:
    return msgspec.json.Decoder(kind)


@functools.cache
def _list_decoder(kind: type[Kind]) -> msgspec.json.Decoder[_List[Kind]]:
    return msgspec.json.Decoder(_List[kind])  # type: ignore[valid-type]


_RAW_LIST: Final = msgspec.json.Decoder(_RawList)
_ANYTHING: Final = msgspec.json.Decoder()


def _complete(found: Kind) -> Kind | Unreadable:
    missing = _missing(found)
    return found if not missing else as_unreadable(found, Malformed("missing", field=missing))


def _missing(found: HasMetadata) -> str:
    """Returns the missing field without which an object cannot be used, or ""."""
    if not found.metadata.name:
        return "metadata.name"
    return "metadata.namespace" if isinstance(found, Pod) and not found.metadata.namespace else ""


def _read_at_once(raw: bytes, kind: type[Kind]) -> Page[Kind] | None:
    """Decodes a page as a whole; None if an item needs more than the fast path."""
    try:
        page = _list_decoder(kind).decode(raw)
    except _UNDECODABLE:
        return None
    items = _items(page.items, page.kind, kind)
    if any(map(_missing, items)):
        return None
    version, more = page.metadata.resource_version, page.metadata.continue_
    several = max(PORTION * len(items) // len(raw), 1)
    portions = (ListPage(items[i : i + several], version, more) for i in range(0, max(len(items), 1), several))
    return Page(len(items), more, portions)


def _read_in_portions(items: list[msgspec.Raw], kind: type[Kind], page: _ListMeta) -> Iterator[ListPage[Kind]]:
    good: list[Kind] = []
    bad: list[Unreadable] = []
    decoder, version, more, work = _decoder(kind), page.resource_version, page.continue_, 0
    for item in items:
        size = len(item)
        if work and work + size > PORTION:
            yield ListPage(good, version, more, tuple(bad))
            good, bad, work = [], [], 0
        try:
            answer = _complete(decoder.decode(item))
        except _UNDECODABLE:
            answer = _second_try(bytes(item), kind)
            size = AGAIN * (size + AGAIN_EACH)
        work += size
        if isinstance(answer, Unreadable):
            bad.append(answer)
        else:
            good.append(answer)
    yield ListPage(good, version, more, tuple(bad))


def _split(raw: bytes, outline: JsonOutline) -> _RawList | None:
    """Splits a page by its brackets, if it is no JSON or too deep or too long for a decoder. Returns None if it is no
    list."""
    parts = dict(outline.members(1, outline.top))
    array = parts.pop("items", None)
    if not outline.whole or array is None or raw[array[0] : array[0] + 1] != b"[":
        return None
    try:
        head = {
            key: msgspec.Raw(without_deep_parts(_at(raw, span)))
            for key, span in parts.items()
            if key in ("kind", "metadata")
        }
        page = _RAW_LIST.decode(encode(head))
    except _UNDECODABLE:
        return None
    view = memoryview(raw)  # no copies
    return _RawList([msgspec.Raw(view[start:end]) for start, end in outline.items(2, array)], page.metadata, page.kind)


def _at(raw: bytes, span: Span) -> bytes:
    return raw[span[0] : span[1]]


def _items(items: list[Shape] | msgspec.UnsetType | None, said: str, kind: type[HasMetadata]) -> list[Shape]:
    # An error (`kind: Status`) must not be taken for an empty cluster.
    if items is msgspec.UNSET or (said and not said.endswith("List")):
        raise Malformed(f"expected a list, got {said or 'an object without items'}", subject=f"list of {kind.__name__}")
    return items or []


def _second_try(raw: bytes, kind: type[Kind]) -> Kind | Unreadable:
    text, data = without_deep_parts(raw), None
    with suppress(*_UNDECODABLE):
        return _complete(_decoder(kind).decode(text))
    text = without_unread_fields(text, kind)
    with suppress(*_UNDECODABLE):  # what follows takes thirty times as long
        return _complete(_decoder(kind).decode(text))
    try:
        data = _ANYTHING.decode(text)
        found = msgspec.convert(_without_nulls(data), kind)
    except _UNDECODABLE as error:
        if data is None:
            return _identified(text, kind, _explained(error))
        return _salvaged(data, kind, _explained(error))
    missing = _missing(found)
    return found if not missing else _salvaged(data, kind, Malformed("missing", field=missing))


def _identified(raw: bytes, kind: type[HasMetadata], error: Malformed) -> Unreadable:
    """Returns the Unreadable for a text that is no valid JSON. A lenient reader (NaN, huge numbers, broken UTF-8) may
    find its identity and the faulty field. If it fails, too, the identity is read from its exact place in the text."""
    try:
        data = _without_nulls(decode_leniently(raw))
    except (ValueError, RecursionError):
        return _salvaged(find_identity(raw), kind, error)
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError as found:
        error = _explained(found)
    if not error.field or "..." in error.field:
        error = Malformed(error.problem, field=find_non_finite(data))
    return _salvaged(data, kind, error)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(held) for key, held in value.items() if held is not None}
    return [_without_nulls(held) for held in value] if isinstance(value, list) else value


def _salvaged(data: Any, kind: type[HasMetadata], error: Malformed) -> Unreadable:
    return Unreadable(
        kind=kind.__name__,
        namespace=_text(data, "metadata", "namespace"),
        name=_text(data, "metadata", "name"),
        uid=_text(data, "metadata", "uid"),
        node=_text(data, "spec", "nodeName"),
        phase=_text(data, "status", "phase"),
        resource_version=_text(data, "metadata", "resourceVersion"),
        field=error.field,
        problem=error.problem,
    )


def _text(data: Any, *path: str) -> str:
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data.encode("utf-8", "replace").decode() if isinstance(data, str) else ""


def _explained(error: Exception) -> Malformed:
    if isinstance(error, RecursionError):
        return Malformed("nested too deeply")
    placed = _PLACE.match(str(error))
    return Malformed(placed.group(1), field=placed.group(2)) if placed else Malformed(str(error))


def _subject(kind: str, namespace: str, name: str) -> str:
    return f"{kind} {truncated(namespace)}/{truncated(name)}" if namespace else f"{kind} {truncated(name)}".rstrip()
