"""Mutations of the encoded bytes: truncated text, numbers and characters that JSON or UTF-8 does not allow, duplicate
keys."""

import json
from collections.abc import Callable
from random import Random
from typing import Final

from kubenexus.testing.fuzz.valid_objects import Json

Tear = Callable[[Random, Json], bytes]

_HERE: Final = "@@here@@"
NUMBERS: Final = (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1" * 5000, b"01", b"1.", b"0x1", b"--1")
# Half a pair, the wrong half, both in the wrong order; a byte that begins nothing, an overlong NUL, a CESU pair.
CHARACTERS: Final = (
    rb"\ud800", rb"\udc00", rb"\udc00\ud800", rb"\u12", rb"\x", b"\xff", b"\xc0\x80", b"\xed\xa0\x80\xed\xb0\x80",
    b"\x00",
)  # fmt: skip


def truncated(rng: Random, thing: Json) -> bytes:
    raw = _dumped(thing)
    return raw[: rng.randrange(len(raw))]


def impossible_number(rng: Random, thing: Json) -> bytes:
    """Puts an invalid number, or one that no float holds, into an amount, a priority or an unknown field."""
    if "containers" in thing["spec"] and rng.random() < 0.6:
        held, key = rng.choice(((thing["spec"], "priority"), (thing["spec"].setdefault("overhead", {}), "cpu")))
    else:
        held, key = rng.choice(
            ((thing, "unknown"), (thing.setdefault("status", {}).setdefault("allocatable", {}), "cpu"))
        )
    held[key] = _HERE
    return _dumped(thing).replace(f'"{_HERE}"'.encode(), rng.choice(NUMBERS))


def impossible_character(rng: Random, thing: Json) -> bytes:
    """Puts an invalid character into a label, the name of a node, or an unknown field."""
    labels = thing["metadata"].setdefault(rng.choice(("labels", "annotations", "unknown")), {})
    held, key = rng.choice(
        ((labels, "zone"), (labels, "zone"), (thing["metadata"], "name"), (thing["spec"], "nodeName"))
    )
    held[key] = f"a{_HERE}b"
    return _dumped(thing).replace(_HERE.encode(), rng.choice(CHARACTERS))


def nested(rng: Random, thing: Json) -> bytes:
    """Nests values so deep that a parser without a limit exhausts its stack, or just deep."""
    depth = rng.choice((100, 20_000, 200_000))
    begin, end = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    thing["metadata"][rng.choice(("labels", "unknown"))] = _HERE
    return _dumped(thing).replace(f'"{_HERE}"'.encode(), begin * depth + b"1" + end * depth)


def said_twice(rng: Random, thing: Json) -> bytes:
    """Repeats a key of the object: the last one counts, in Go as here."""
    raw, other = _dumped(thing), rng.choice(("spec", "metadata", "status"))
    body = rng.choice((b"{}", b"null", b"5", b"[]", b'{"name":"other","nodeName":"node-3"}'))
    return b'{"%s":%s,%s' % (other.encode(), body, raw[1:])


def no_object(rng: Random, thing: Json) -> bytes:
    """Returns bytes that are no object, or several."""
    raw = _dumped(thing)
    several = (raw + raw, raw + b"}", b"\xef\xbb\xbf" + raw, b"[" + raw + b"]")
    return rng.choice((b"", b" ", b"null", b"[]", b"5", b'"x"', b"{}", *several))


TEARS: Final[tuple[Tear, ...]] = (truncated, impossible_number, impossible_character, nested, said_twice, no_object)


def _dumped(thing: Json) -> bytes:
    return json.dumps(thing, separators=(",", ":")).encode()
