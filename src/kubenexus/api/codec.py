"""From bytes to objects and back.

The fast way is a typed decoder per kind, made once, which builds only the fields we know. It is strict; Go is not, and
writes `null` for an empty list or map, and passes on what no kind of ours reads however odd it is. So what the strict
decoder refuses is tried once more (`outline`): with what is nested too deeply cut away, then with the fields that are
not read and the nulls removed.

What then still cannot be read is *named*: which object, which field, what was expected. In a list one bad object does
not spoil the others. It comes back as an `Unreadable` with what stands of its identity at its exact place, because a
pod that runs on a node takes room there whether we can read it or not: the ledger then closes that node to new pods. A
guess would let any text that looks like a node's name, say an annotation, close that node.

Only the shape is judged here. Quantities and selectors are judged where they are used.
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
    """An object that cannot be used, as far as it could be identified. `node` is where a bound pod runs."""

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
        """Whether it can be told from others. What cannot closes no node: nothing could ever open it again."""
        return bool(self.namespace and self.name)

    @property
    def ended(self) -> bool:
        """Whether it is a pod that takes no room any more."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def subject(self) -> str:
        return _subject(self.kind, self.namespace, self.name)

    @property
    def error(self) -> Malformed:
        return Malformed(self.problem, field=self.field, subject=self.subject)


class ListPage(msgspec.Struct, Generic[Kind], frozen=True, gc=False):
    """One page of a list: what could be read, what could not, and where the next page (`more`) or the watch begins."""

    items: list[Kind]
    resource_version: str = ""
    more: str = ""
    unreadable: tuple[Unreadable, ...] = ()


class Page(msgspec.Struct, Generic[Kind], frozen=True):
    """A page of a list that is read while `portions` are taken from it: once, in their order, at least one."""

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
SPLIT_AT_ONCE: Final = 1 << 24  # bytes of a page that a decoder splits: 1 ms for each of its megabytes, 2 at most
PORTION: Final = 1 << 20  # bytes of items: 5 ms
# What a second try takes: 0.2 ms for each object, and up to 100 ms for a megabyte.
AGAIN, AGAIN_EACH = 16, 1 << 12
# Everything a decoder raises for bad bytes: wrong shape, no JSON at all, no UTF-8, nested without end.
_UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_PLACE: Final = re.compile(r"^(.*) - at `\$\.?(.*)`$", re.DOTALL)
_ENCODER: Final = msgspec.json.Encoder()


def decode_pod(raw: bytes) -> Pod:
    """A pod, or Malformed."""
    return decode(raw, Pod)


def decode_node(raw: bytes) -> Node:
    """A node, or Malformed."""
    return decode(raw, Node)


def decode(raw: bytes, kind: type[Kind]) -> Kind:
    """One object of a kind, or Malformed."""
    answer = read_object(raw, kind)
    if isinstance(answer, Unreadable):
        raise answer.error
    return answer


def read_object(raw: bytes | msgspec.Raw, kind: type[Kind]) -> Kind | Unreadable:
    """One object of a kind, or what is known of it: for streams that must go on whatever comes."""
    try:
        found = _decoder(kind).decode(raw)
    except _UNDECODABLE:
        return _second_try(bytes(raw), kind)
    return _complete(found)


def decode_list(raw: bytes, kind: type[Kind]) -> ListPage[Kind]:
    """A page of a list. Malformed only if it is not a list at all; bad items are in `as_unreadable`."""
    first, *others = run_steps(split_list(raw, kind)).portions
    items, bad = first.items, [*first.unreadable]
    for each in others:
        items += each.items
        bad += each.unreadable
    return ListPage(items, first.resource_version, first.more, tuple(bad))


def split_list(raw: bytes, kind: type[Kind]) -> Generator[None, None, Page[Kind]]:
    """A page of a list, ready to be read in portions. Whatever the page holds, each step and each portion is over soon
    (some 30 ms): what drives them does other work in between. Malformed only if it is not a list at all."""
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
    """Any struct from JSON, or Malformed; as lenient with what it does not read as `read_object`."""
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
    """Any typed value from plain data, as YAML and test cases hold it; nulls are forgiven."""
    try:
        return msgspec.convert(_without_nulls(data), shape)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _explained(error) from None


def encode(value: object) -> bytes:
    """JSON as the API server takes it: names in camelCase, defaults left out."""
    return _ENCODER.encode(value)


def as_unreadable(found: HasMetadata, error: Malformed) -> Unreadable:
    """An object that could be decoded but not used, say because of a quantity."""
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
    """The field without which nothing can be done with an object."""
    if not found.metadata.name:
        return "metadata.name"
    return "metadata.namespace" if isinstance(found, Pod) and not found.metadata.namespace else ""


def _read_at_once(raw: bytes, kind: type[Kind]) -> Page[Kind] | None:
    """None: some item of it needs more than the fast way."""
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
    """A page that is no JSON, or too deep or too long to be split as such, by its brackets. None: it is no list."""
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
    # An error (`kind: Status`) must not be taken for a cluster that has become empty.
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
    """What is no JSON stays refused; but a reader that forgives more (NaN, numbers beyond all bounds, broken UTF-8) may
    tell whose it is and where the fault lies. What even that cannot read may still have an identity in its place."""
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
