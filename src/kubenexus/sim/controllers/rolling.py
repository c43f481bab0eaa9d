"""Computes the next size of each ReplicaSet of a Deployment.

The total never exceeds the wanted size by more than maxSurge, and never fewer pods are available than maxUnavailable
allows. The new set grows first; old ones shrink as new pods become available.
"""

import math
from collections.abc import Mapping, Sequence

from kubenexus.sim.controllers.types import Item

Sizes = Mapping[str, int]  # by the name of the ReplicaSet; sets without an entry keep their size


def first_size(item: Item, older: Sequence[Item], old_pods: int) -> int:
    """Returns the size of a ReplicaSet that is about to be created."""
    wanted: int = item["spec"]["replicas"]
    if recreates(item):
        return 0 if old_pods or _total(older) else wanted
    surge, _ = limits(item)
    return min(wanted, max(wanted + surge - _total(older), 0))


def next_sizes(item: Item, newest: Item | None, older: Sequence[Item], old_pods: int) -> Sizes:
    """Returns the sizes of the next step; empty if the rollout is complete or has to wait."""
    wanted: int = item["spec"]["replicas"]
    if newest is None or item["spec"].get("paused"):
        return _same_version(wanted, [*older, *([newest] if newest else [])])
    grown = _grown(item, newest, older, old_pods)
    if grown != newest["spec"]["replicas"]:
        return {newest["metadata"]["name"]: grown}
    if recreates(item):
        return {each["metadata"]["name"]: 0 for each in older}
    return _shrunk(item, newest, older)


def recreates(item: Item) -> bool:
    return bool(item["spec"].get("strategy", {}).get("type") == "Recreate")


def limits(item: Item) -> tuple[int, int]:
    """Returns maxSurge (rounded up) and maxUnavailable (rounded down) as numbers; never both zero."""
    said = item["spec"].get("strategy", {}).get("rollingUpdate") or {}
    wanted = item["spec"]["replicas"]
    surge = share(said.get("maxSurge", "25%"), wanted, up=True)
    unavailable = share(said.get("maxUnavailable", "25%"), wanted, up=False)
    return surge, min(unavailable or (0 if surge else 1), wanted)


def share(said: int | str, whole: int, *, up: bool) -> int:
    """Resolves a number, or a percentage of `whole`."""
    if isinstance(said, int):
        return said
    part = whole * int(said.rstrip("%") or 0) / 100
    return math.ceil(part) if up else math.floor(part)


def _same_version(wanted: int, sets: Sequence[Item]) -> Sizes:
    """Returns the sizes of a paused rollout: with a single version its size follows the Deployment."""
    alive = [each for each in sets if each["spec"]["replicas"]] or list(sets[-1:])
    return {alive[0]["metadata"]["name"]: wanted} if len(alive) == 1 else {}


def _grown(item: Item, newest: Item, older: Sequence[Item], old_pods: int) -> int:
    wanted: int = item["spec"]["replicas"]
    now: int = newest["spec"]["replicas"]
    if now >= wanted:
        return wanted
    if recreates(item):
        return now if old_pods or _total(older) else wanted
    surge, _ = limits(item)
    return min(wanted, now + max(wanted + surge - now - _total(older), 0))


def _shrunk(item: Item, newest: Item, older: Sequence[Item]) -> Sizes:
    """Returns the sizes of the old sets: unavailable pods are removed first, then as many as others make up for."""
    _, unavailable = limits(item)
    least = item["spec"]["replicas"] - unavailable
    sick = newest["spec"]["replicas"] - _available(newest)
    room = _total([newest, *older]) - least - max(sick, 0)
    sizes = {each["metadata"]["name"]: each["spec"]["replicas"] for each in older}
    for each in older:
        name = each["metadata"]["name"]
        gone = max(min(room, sizes[name] - _available(each)), 0)
        sizes[name] -= gone
        room -= gone
    spare = min(room, sum(_available(each) for each in [newest, *older]) - least)
    for each in older:
        name = each["metadata"]["name"]
        gone = max(min(spare, sizes[name]), 0)
        sizes[name] -= gone
        spare -= gone
    return sizes


def _total(sets: Sequence[Item]) -> int:
    return sum(each["spec"]["replicas"] for each in sets)


def _available(one: Item) -> int:
    available, size = one.get("status", {}).get("availableReplicas", 0), one["spec"]["replicas"]
    return int(min(available, size))
