"""Checks the labels and annotations of an object against the registry of keys."""

import functools
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kubenexus.api.keys import SECTIONS, KeyEntry, KeyReading, read_indexed_key, read_key, tenant
from kubenexus.api.keys.reading import KeyProblem
from kubenexus.api.keys.unknown import UnknownKeys, is_ours
from kubenexus.api.keys.values import quoted

_MAX_KEYS: Final = 2_000  # labels and annotations of one object that are searched for keys that no entry has
_MAX_UNKNOWN: Final = 4  # such keys that are compared with the known ones: 1 ms each


class Finding(NamedTuple):
    """A sentence about an object, and whether it is a reason to refuse the object."""

    text: str
    refuses: bool = False


@functools.cache
def entries_of(kind: str) -> tuple[KeyEntry[Any], ...]:
    """Returns the entries of the registry for a kind of object."""
    return tuple(entry for section in SECTIONS for entry in section.entries if kind in entry.on)


@functools.cache
def _indexes(kind: str) -> dict[str, list[int]]:
    """Returns where in `entries_of` a key is; under "" the entries whose keys have a number or a name in them."""
    found: dict[str, list[int]] = {"": []}
    for number, entry in enumerate(entries_of(kind)):
        for key in ("",) if entry.slots else entry.keys:
            found.setdefault(key, []).append(number)
    return found


def _stated(kind: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> list[KeyEntry[Any]]:
    """Returns the entries that the object states, in the order of the registry. An object has few keys and the registry
    many: 10 us instead of 100."""
    indexes, entries = _indexes(kind), entries_of(kind)
    numbers = set(indexes[""])
    for texts in (labels, annotations):
        for key in texts:
            if key in indexes:
                numbers.update(indexes[key])
    return [entries[number] for number in sorted(numbers)]


@functools.cache
def _pod_keys() -> frozenset[str]:
    return frozenset[str]().union(*(entry.keys for entry in entries_of("Pod")))


@functools.cache
def _unknown_keys(kind: str) -> UnknownKeys:
    return UnknownKeys(entries_of(kind), kind)


def check_keys(kind: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> list[Finding]:
    """Returns what is wrong with the keys of an object: values that cannot be read, spellings that disagree, and keys
    of our domains that no entry has. A value is a reason to refuse if its key is ours and has an effect."""
    found: list[Finding] = []
    for entry in _stated(kind, labels, annotations):
        for reading in _readings(entry, labels, annotations):
            found += [_finding(entry, problem) for problem in reading.problems]
            found += [Finding(str(conflict)) for conflict in reading.conflicts]
    if kind == "Namespace":
        found += _namespace_annotations(annotations)
    return [*found, *_unknown(kind, labels, annotations)]


def check_owner_keys(kind: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> list[Finding]:
    """Returns what is wrong with the keys of an object that makes pods. Keys of pods have no effect there."""
    known, ours = entries_of(kind), _pod_keys()
    own = frozenset[str]().union(*(entry.keys for entry in known))
    misplaced = [
        Finding(f"{where} {quoted(key)} has no effect on a {kind}; put it into the pod template")
        for where, found in (("label", labels), ("annotation", annotations))
        for key in list(found)[:_MAX_KEYS]
        if key in ours and key not in own and is_ours(key)
    ]
    rest = [{key: text for key, text in found.items() if key not in ours} for found in (labels, annotations)]
    found = [
        _finding(entry, problem)
        for entry in _stated(kind, labels, annotations)
        for reading in _readings(entry, labels, annotations)
        for problem in reading.problems
    ]
    return [*found, *misplaced, *_unknown(kind, *rest)]


def _readings(entry: KeyEntry[Any], labels: Mapping[str, str], annotations: Mapping[str, str]) -> list[KeyReading[Any]]:
    if entry.slots:
        return list(read_indexed_key(entry, labels, annotations).values())
    return [read_key(entry, labels, annotations)]


def _finding(entry: KeyEntry[Any], problem: KeyProblem) -> Finding:
    key = problem.where.partition(" ")[2]
    return Finding(str(problem), refuses=is_ours(key) and not entry.recognised_only)


def _namespace_annotations(annotations: Mapping[str, str]) -> list[Finding]:
    return [
        Finding(f"annotation {key} has no effect on a Namespace; make it a label")
        for key in sorted(tenant.TIER.keys | tenant.NAME.keys)
        if key in annotations
    ]


def _unknown(kind: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> list[Finding]:
    indexes = _indexes(kind)
    ours = [
        {key: "" for key in list(found)[:_MAX_KEYS] if key not in indexes and is_ours(key) and not _indexed(kind, key)}
        for found in (labels, annotations)
    ]
    if not any(ours):
        return []
    return [Finding(sentence) for sentence in _unknown_keys(kind).sentences(*ours, most=_MAX_UNKNOWN)]


def _indexed(kind: str, key: str) -> bool:
    """Whether a key is one of those with a number or a name in it."""
    entries = entries_of(kind)
    return any(read_indexed_key(entries[number], {key: ""}, {key: ""}) for number in _indexes(kind)[""])
