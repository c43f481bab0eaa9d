"""Reads an entry of the registry from an object's labels and annotations.

Reading never fails. An invalid value is a `KeyProblem` that names the key; two spellings that disagree are a
`KeyConflict`. Both are data; the caller turns them into warning events. Of several spellings the first valid one
counts: canonical before aliases, in the order of the registry, and the label before the annotation.
"""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from kubenexus.api.keys.entry import NUMBERED, Index, KeyEntry, KeyKind, Spelling, pattern, slots
from kubenexus.api.keys.values import quoted

T = TypeVar("T")

# A message goes into an event, whose note holds 1,024 bytes.
MAX_MESSAGE = 200


class KeyConflict(msgspec.Struct, frozen=True, gc=False):
    """Two spellings of one entry with different values."""

    used: str
    ignored: str
    text: str

    def __str__(self) -> str:
        return f"{self.used} is used; {self.ignored} says otherwise: {quoted(self.text)}"


class KeyProblem(msgspec.Struct, frozen=True, gc=False):
    """A value that cannot be parsed."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class KeyReading(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """The value (the entry's default if no valid one is set), the key it came from, and conflicts and problems."""

    value: T
    source_key: str = ""
    conflicts: tuple[KeyConflict, ...] = ()
    problems: tuple[KeyProblem, ...] = ()

    @property
    def is_set(self) -> bool:
        return self.source_key != ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every problem and conflict as a sentence, for a warning event."""
        return tuple(str(each) for each in (*self.problems, *self.conflicts))


class _Said(msgspec.Struct, frozen=True, gc=False):
    spelling: Spelling
    kind: KeyKind
    text: str

    @property
    def where(self) -> str:
        return f"{self.kind} {self.spelling.key}"


def read_key(entry: KeyEntry[T], labels: Mapping[str, str], annotations: Mapping[str, str]) -> KeyReading[T]:
    """Reads `entry` from `labels` and `annotations`."""
    if entry.keys.isdisjoint(labels) and entry.keys.isdisjoint(annotations):
        return KeyReading(entry.default)
    readable: list[tuple[_Said, T]] = []
    problems: list[KeyProblem] = []
    for stated in _stated(entry, labels, annotations):
        if len(stated.text) > entry.values.longest:
            problems.append(KeyProblem(stated.where, f"must have at most {entry.values.longest} characters"))
            continue
        try:
            readable.append((stated, entry.values.parse(stated.text)))
        except ValueError as error:
            problems.append(KeyProblem(stated.where, str(error)[:MAX_MESSAGE]))
    if not readable:
        return KeyReading(entry.default, problems=tuple(problems))
    (used, value), *others = readable
    conflicts = tuple(
        KeyConflict(used.where, other.where, other.text)
        for other, different in others
        if different != value and not other.spelling.hint
    )
    return KeyReading(value, used.spelling.key, conflicts, tuple(problems))


def read_indexed_key(
    entry: KeyEntry[T], labels: Mapping[str, str], annotations: Mapping[str, str]
) -> dict[Index, KeyReading[T]]:
    """Reads an entry with slots. Returns a reading for every index that occurs in some spelling, in ascending order."""
    indexes = {
        index
        for spelling in entry.spellings
        for kind, texts in ((KeyKind.LABEL, labels), (KeyKind.ANNOTATION, annotations))
        if kind in spelling.kind
        for index in _indexes(spelling.key, texts)
    }
    return {index: read_key(entry.at(*index), labels, annotations) for index in sorted(indexes, key=_order)}


def _stated(entry: KeyEntry[T], labels: Mapping[str, str], annotations: Mapping[str, str]) -> Iterator[_Said]:
    """Yields every spelling that is set, by falling precedence."""
    for spelling in entry.spellings:
        for kind, texts in ((KeyKind.LABEL, labels), (KeyKind.ANNOTATION, annotations)):
            text = texts.get(spelling.key) if kind in spelling.kind else None
            if text is None:
                continue
            if len(text) > entry.values.longest:  # it is not parsed either
                yield _Said(spelling, kind, text)
                continue
            text = spelling.says.get(text.strip().lower(), text)
            if entry.values.blank_counts or text.strip():
                yield _Said(spelling, kind, text)


def _indexes(key: str, texts: Mapping[str, str]) -> Iterator[Index]:
    head = key.partition("<")[0]
    for each in texts:
        # The cheap test first: a node has a hundred labels, and hardly any is ours.
        if each.startswith(head) and (match := pattern(key).fullmatch(each)):
            yield tuple(
                int(part) if slot in NUMBERED else part for slot, part in zip(slots(key), match.groups(), strict=True)
            )


def _order(index: Index) -> list[tuple[bool, int, str]]:
    """Sorts numbers before words, so that node 10 comes after node 9."""
    return [(False, part, "") if isinstance(part, int) else (True, 0, part) for part in index]
