"""An entry of the registry of keys: spellings, the objects it is on, values and meaning.

A key has one canonical spelling, the only one that KubeNexus writes, and any number of aliases that it reads. Indexed
keys have slots: `numa.kubenexus.io/node-<i>-cpus`.
"""

import enum
import functools
import re
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from kubenexus.api.keys.values import ValueType

T = TypeVar("T")

# The values of a slot. Indexes are short and without leading zeros, so that two texts never mean one index.
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
# The slots that hold numbers; the others hold words, even if those are all digits (the PCI class 0302).
NUMBERED = frozenset("ijg")
_SLOT = re.compile(r"<([a-z]+)>")

Index = tuple[int | str, ...]


class KeyKind(enum.Flag):
    """Where a key is read. If it is read as both, the label goes before the annotation."""

    LABEL = enum.auto()
    ANNOTATION = enum.auto()
    BOTH = LABEL | ANNOTATION

    def __str__(self) -> str:
        return "label or annotation" if self is KeyKind.BOTH else str(self.name).lower()


class Spelling(msgspec.Struct, frozen=True, gc=False):
    """One way to write a key."""

    key: str
    kind: KeyKind = KeyKind.BOTH
    # Maps its own words to those of the canonical key; to "" if a word has no such meaning.
    says: dict[str, str] = {}
    # A hint counts only if no better spelling is set, and never conflicts with one.
    hint: bool = False

    def at(self, index: Index) -> "Spelling":
        """Returns the spelling with its slots filled."""
        fill = iter(index)
        return msgspec.structs.replace(self, key=_SLOT.sub(lambda _: str(next(fill)), self.key))


class KeyEntry(msgspec.Struct, Generic[T], frozen=True, gc=False, kw_only=True):
    """An entry of the registry."""

    spellings: tuple[Spelling, ...]
    # The keys as a set: most objects have none of them, and that check must be fast.
    keys: frozenset[str]
    on: tuple[str, ...]
    values: ValueType[T]
    default: T
    # The manual's text for an unset key if the default is computed elsewhere.
    otherwise: str
    meaning: str
    # Whether no rule reads or writes the key. Objects that have it get no warning about an unknown key.
    recognised_only: bool = False

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
        """Returns the entry for one index of a key with slots: `numa.CPUS.at(0)` is `numa.kubenexus.io/node-0-cpus`."""
        spellings = tuple(each.at(index) for each in self.spellings)
        return msgspec.structs.replace(self, spellings=spellings, keys=_keys(spellings))


def define_key(  # noqa: PLR0913 - one for each column of the manual
    key: str,
    *,
    on: str | tuple[str, ...],
    values: ValueType[T],
    default: T,
    meaning: str,
    kind: KeyKind = KeyKind.BOTH,
    otherwise: str = "",
    aliases: tuple[str | Spelling, ...] = (),
    recognised_only: bool = False,
) -> KeyEntry[T]:
    """Makes an entry of the registry. An alias given as text is read wherever the canonical key is."""
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
        recognised_only=recognised_only,
    )


def _keys(spellings: tuple[Spelling, ...]) -> frozenset[str]:
    return frozenset(each.key for each in spellings)


def slots(key: str) -> tuple[str, ...]:
    """Returns the names of the slots in a key, in order."""
    return tuple(_SLOT.findall(key))


@functools.cache
def pattern(key: str) -> re.Pattern[str]:
    """Returns a regular expression with one group per slot of `key`."""
    parts = _SLOT.split(key)
    return re.compile("".join(f"({SLOTS[part]})" if slot % 2 else re.escape(part) for slot, part in enumerate(parts)))


class Section(msgspec.Struct, frozen=True, gc=False):
    """A chapter of the manual: the entries of one module."""

    title: str
    intro: str
    entries: tuple[KeyEntry[Any], ...]


def section(title: str, intro: str, names: Mapping[str, object]) -> Section:
    """Returns a section with all entries that a module defines, in its order, so that the manual lacks none."""
    return Section(title, intro, tuple(each for each in names.values() if isinstance(each, KeyEntry)))
