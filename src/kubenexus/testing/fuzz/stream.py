"""The stream of events: what a watch would deliver. Each object depends only on the seed and its number."""

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.resource_claim import DeviceClass
from kubenexus.testing.fuzz import byte_mutations, json_mutations, size_mutations, valid_objects
from kubenexus.testing.fuzz.byte_mutations import Tear
from kubenexus.testing.fuzz.json_mutations import Way
from kubenexus.testing.fuzz.valid_objects import Json

Kind = type[Pod] | type[Node] | type[DeviceClass]

GOOD: Final = "good"
_HOSTILE: Final = 0.5
_HUGE: Final = 0.006  # of the hostile ones: they are slow to make
_TORN: Final = 0.2
_DELETED: Final = 0.15


class FuzzEvent(msgspec.Struct, frozen=True, gc=False):
    """Bytes that claim to be a `kind`. `way` is the mutation. With `count` it is a page of so many objects."""

    number: int
    kind: Kind
    raw: bytes
    way: str = GOOD
    deleted: bool = False
    count: int = 0


def event(seed: int, number: int) -> FuzzEvent:
    """Returns the event of this seed and number, regardless of earlier events."""
    rng = Random(f"{seed}/{number}")
    kind: Kind = rng.choices((Pod, Node, DeviceClass), (75, 22, 3))[0]
    if rng.random() < 0.01:
        return _page(rng, number, kind)
    way, raw = _object(rng, kind)
    return FuzzEvent(number, kind, raw, way, deleted=rng.random() < _DELETED)


def _page(rng: Random, number: int, kind: Kind) -> FuzzEvent:
    """Returns a list, as after a gap in the watch: one bad object must not affect the others."""
    made = [_object(rng, kind, whole=True) for _ in range(rng.randrange(12))]
    raw = b'{"kind":"%sList","items":[%s]}' % (kind.__name__.encode(), b",".join(raw for _, raw in made))
    return FuzzEvent(number, kind, raw, "a page", count=len(made))


def spoiled(rng: Random, kind: Kind, way: Way | Tear, number: int = 0) -> FuzzEvent:
    """Returns an object with just this mutation."""
    raw = _spoil(rng, _good(rng, kind, hostile=True), way)
    return FuzzEvent(number, kind, raw, _named(way))


def ways(kind: Kind) -> tuple[tuple[Way, ...], tuple[Way, ...], tuple[Tear, ...]]:
    """Returns all mutations for objects of this kind: of JSON, of size, and of bytes."""
    if kind is DeviceClass:
        return json_mutations.FOR_ANY, size_mutations.FOR_ANY, byte_mutations.TEARS
    some, large = (
        (json_mutations.FOR_PODS, size_mutations.FOR_PODS)
        if kind is Pod
        else (json_mutations.FOR_NODES, size_mutations.FOR_NODES)
    )
    return some, large, byte_mutations.TEARS


def _object(rng: Random, kind: Kind, whole: bool = False) -> tuple[str, bytes]:
    """Returns the mutation and the bytes. `whole`: the bytes are valid JSON at least."""
    hostile = rng.random() < _HOSTILE
    thing = _good(rng, kind, hostile)
    if not hostile:
        return GOOD, _dumped(rng, thing)
    some, large, tears = ways(kind)
    if not whole and rng.random() < _TORN:
        tear = rng.choice(tears)
        return _named(tear), tear(rng, thing)
    way = rng.choice(large if rng.random() < _HUGE else some)
    raw = _spoil(rng, thing, way, further=way in some and rng.random() < 0.2)
    return _named(way), raw


def _spoil(rng: Random, thing: Json, way: Way | Tear, *, further: bool = False) -> bytes:
    """Applies a mutation. JSON mutations change the object, byte mutations return bytes. `further` adds a second
    one."""
    made = way(rng, thing)
    if made is not None:
        return made
    if further:
        thing = copy.deepcopy(thing)  # parts of it may be shared constants now
        json_mutations.wrong_type(rng, thing)
    return _dumped(rng, thing)


def _good(rng: Random, kind: Kind, hostile: bool) -> Json:
    if kind is Node:
        return valid_objects.node(rng)
    # An unreadable running pod blocks its node. With many of them no node would be left for decisions.
    return valid_objects.pod(rng, bound=0.12 if hostile else 0.35) if kind is Pod else valid_objects.device_class(rng)


def _named(way: Callable[..., object]) -> str:
    return way.__name__.replace("_", " ")


def _dumped(rng: Random, thing: Json) -> bytes:
    """Encodes as some client would: with or without blanks, everything escaped or nothing."""
    separators = rng.choice(((",", ":"), (", ", ": ")))
    return json.dumps(thing, separators=separators, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
