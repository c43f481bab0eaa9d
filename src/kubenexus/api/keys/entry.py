"""What the registry says of one key: how it is spelled, where it stands, what it may say and what that means.

A key has one canonical spelling, which is the only one that we ever write, and any number of aliases that we read.
Keys that come in numbers have slots: `numa.kubenexus.io/node-<i>-cpus`.
"""

import enum
import functools
import re
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from kubenexus.api.keys.values import ValueType

T = TypeVar("T")

# What a slot may hold. Indexes are short and without leading zeros, so that two texts never mean one index.
SLOTS: dict[str, str] = {
    "i": r"0|[1-9][0-9]{0,4}",
    "j": r"0|[1-9][0-9]{0,4}",
    "g": r"0|[1-9][0-9]{0,4}",
    "profile": r"[0-9]{1,2}g\.[0-9]{1,4}gb(?:\.me)?",
    "attribute": r"[a-z]+(?:\.[a-z]+)?",
    "check": r"[a-z0-9]+(?:-[a-z0-9]+)*",
    "device": r"[0-9a-f]{4}(?:_[0-9a-f]{4})+",
    "vendor": r"[0-9a-f]{4}",
    "id": r"[0-9a-f]{4}",
}
# The slots that count; the others hold words, even where those are all digits (the PCI class 0302).
NUMBERED = frozenset("ijg")
_SLOT = re.compile(r"<([a-z]+)>")

Index = tuple[int | str, ...]


class KeyKind(enum.Flag):
    """Where a key is read. As both, the label goes before the annotation."""

    LABEL = enum.auto()
    ANNOTATION = enum.auto()
    BOTH = LABEL | ANNOTATION

    def __str__(self) -> str:
        return "label or annotation" if self is KeyKind.BOTH else str(self.name).lower()


class Spelling(msgspec.Struct, frozen=True, gc=False):
    """One way to write a key."""

    key: str
    kind: KeyKind = KeyKind.BOTH
    # What its own words mean in the words of the canonical key; to "" where a word says nothing about it.
    says: dict[str, str] = {}
    # A hint is used when nothing better is said, and never contradicts what is said better.
    hint: bool = False

    def at(self, index: Index) -> "Spelling":
        """The spelling with its slots filled."""
        fill = iter(index)
        return msgspec.structs.replace(self, key=_SLOT.sub(lambda _: str(next(fill)), self.key))


class KeyEntry(msgspec.Struct, Generic[T], frozen=True, gc=False, kw_only=True):
    """One line of the registry."""

    spellings: tuple[Spelling, ...]
    # Their keys once more, as a set: most objects have none of them, and that must be quick to see.
    keys: frozenset[str]
    on: tuple[str, ...]
    values: ValueType[T]
    default: T
    # What the manual says when nothing is set and the default is worked out elsewhere.
    otherwise: str
    meaning: str

    @property
    def key(self) -> str:
        """The canonical key."""
        return self.spellings[0].key

    @property
    def kind(self) -> KeyKind:
        return self.spellings[0].kind

    @property
    def aliases(self) -> tuple[Spelling, ...]:
        return self.spellings[1:]

    @property
    def slots(self) -> tuple[str, ...]:
        return slots(self.key)

    def at(self, *index: int | str) -> "KeyEntry[T]":
        """The entry for one index of a key with slots: `numa.CPUS.at(0)` is `numa.kubenexus.io/node-0-cpus`."""
        spellings = tuple(each.at(index) for each in self.spellings)
        return msgspec.structs.replace(self, spellings=spellings, keys=_keys(spellings))


def define_key(
    key: str,
    *,
    on: str | tuple[str, ...],
    values: ValueType[T],
    default: T,
    meaning: str,
    kind: KeyKind = KeyKind.BOTH,
    otherwise: str = "",
    aliases: tuple[str | Spelling, ...] = (),
) -> KeyEntry[T]:
    """A line of the registry; an alias given as text is read wherever the canonical key is."""
    others = (Spelling(each, kind) if isinstance(each, str) else each for each in aliases)
    spellings = (Spelling(key, kind), *others)
    return KeyEntry(
        spellings=spellings,
        keys=_keys(spellings),
        on=(on,) if isinstance(on, str) else on,
        values=values,
        default=default,
        otherwise=otherwise,
        meaning=meaning,
    )


def _keys(spellings: tuple[Spelling, ...]) -> frozenset[str]:
    return frozenset(each.key for each in spellings)


def slots(key: str) -> tuple[str, ...]:
    """The names of the slots in a key, in order."""
    return tuple(_SLOT.findall(key))


@functools.cache
def pattern(key: str) -> re.Pattern[str]:
    """A regular expression with one group per slot of `key`."""
    parts = _SLOT.split(key)
    return re.compile("".join(f"({SLOTS[part]})" if slot % 2 else re.escape(part) for slot, part in enumerate(parts)))


class Section(msgspec.Struct, frozen=True, gc=False):
    """A chapter of the manual: the entries of one module."""

    title: str
    intro: str
    entries: tuple[KeyEntry[Any], ...]


def section(title: str, intro: str, names: Mapping[str, object]) -> Section:
    """All entries that a module defines, in its order; what is in the module cannot be forgotten in the manual."""
    return Section(title, intro, tuple(each for each in names.values() if isinstance(each, KeyEntry)))
