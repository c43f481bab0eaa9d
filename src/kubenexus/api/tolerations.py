"""Taints and tolerations: a taint keeps pods off a node, a toleration lets a pod through.

The rules are upstream's. An empty key means every key, with any operator; an unknown operator tolerates nothing.
Comparing values as numbers (`Gt`, `Lt`) is behind a feature gate that is off in 1.37; without it such a toleration
tolerates nothing either.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from kubenexus.api.core import Taint, Toleration
from kubenexus.api.selectors import parse_int64

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"

# The effects that keep a pod off a node, and the one that only lowers the node's score.
HARD_EFFECTS: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
SOFT_EFFECTS: Final = frozenset({PREFER_NO_SCHEDULE})

_MANY_TOLERATIONS: Final = 16
_CANONICAL_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint, *, comparisons: bool = False) -> bool:
    """Returns whether this toleration lets a pod through this taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt":
            return comparisons and _compares(toleration, taint)
    return False


def tolerated(tolerations: Iterable[Toleration], taint: Taint, *, comparisons: bool = False) -> bool:
    """Returns whether any of the tolerations lets a pod through this taint."""
    return any(tolerates(toleration, taint, comparisons=comparisons) for toleration in tolerations)


def untolerated(
    tolerations: Sequence[Toleration],
    taints: Iterable[Taint],
    *,
    effects: frozenset[str] = HARD_EFFECTS,
    comparisons: bool = False,
) -> tuple[Taint, ...]:
    """Returns the taints with one of these effects that no toleration covers, in the node's order."""
    if len(tolerations) > _MANY_TOLERATIONS:
        return _untolerated_by_many(tolerations, taints, effects, comparisons)
    return tuple(
        taint
        for taint in taints
        if taint.effect in effects and not tolerated(tolerations, taint, comparisons=comparisons)
    )


def _untolerated_by_many(
    tolerations: Sequence[Toleration], taints: Iterable[Taint], effects: frozenset[str], comparisons: bool
) -> tuple[Taint, ...]:
    """Does the same by key: ten thousand tolerations and taints must not take quadratic time."""
    by_key: dict[str, list[Toleration]] = {}
    for toleration in tolerations:
        by_key.setdefault(toleration.key, []).append(toleration)
    found = []
    for taint in taints:
        speak_of_it = (*by_key.get(taint.key, ()), *(by_key.get("", ()) if taint.key else ()))
        if taint.effect in effects and not tolerated(speak_of_it, taint, comparisons=comparisons):
            found.append(taint)
    return tuple(found)


def _compares(toleration: Toleration, taint: Taint) -> bool:
    ours, theirs = _canonical(toleration.value), _canonical(taint.value)
    if ours is None or theirs is None:
        return False
    return theirs > ours if toleration.operator == "Gt" else theirs < ours


def _canonical(value: str) -> int | None:
    return parse_int64(value) if _CANONICAL_INTEGER.fullmatch(value) else None
