"""The status of a Deployment: counts, and the conditions Available and Progressing."""

from collections.abc import Sequence

from kubenexus.base.timestamps import format_time, parse_timestamp
from kubenexus.sim.controllers.reconcile_result import condition, without_zero_fields
from kubenexus.sim.controllers.rolling import limits
from kubenexus.sim.controllers.types import Item

_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def status(item: Item, newest: Item | None, older: Sequence[Item], now: float, created: str = "") -> Item:
    """Returns the whole status. `created` names a ReplicaSet that is about to be created."""
    old = item.get("status", {})
    sets = [*older, *([newest] if newest else [])]
    seen = _counts(item, newest, sets)
    if "collisionCount" in old:
        seen["collisionCount"] = old["collisionCount"]
    name = newest["metadata"]["name"] if newest else ""
    progress = _created(old, created, now) if created else _progressing(item, old, seen, name, now)
    conditions = [_available(item, old, seen, now), progress]
    seen["conditions"] = [each for each in conditions if each]
    return without_zero_fields(seen, "terminatingReplicas")


def deadline(item: Item, status: Item) -> float | None:
    """Returns when a rollout without progress fails, or None."""
    limit = item["spec"].get("progressDeadlineSeconds")
    progress = _find(status, "Progressing")
    if limit is None or progress.get("reason") not in _UNDER_WAY:
        return None
    return parse_timestamp(progress["lastUpdateTime"], 0.0) + float(limit) + 1


def _counts(item: Item, newest: Item | None, sets: Sequence[Item]) -> Item:
    def total(field: str) -> int:
        return sum(each.get("status", {}).get(field, 0) for each in sets)

    available = total("availableReplicas")
    return {
        "observedGeneration": item["metadata"]["generation"],
        "replicas": total("replicas"),
        "updatedReplicas": newest.get("status", {}).get("replicas", 0) if newest else 0,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(each["spec"]["replicas"] for each in sets) - available, 0),
        "terminatingReplicas": total("terminatingReplicas"),
    }


def _available(item: Item, old: Item, seen: Item, now: float) -> Item:
    _, unavailable = limits(item)
    enough = seen["availableReplicas"] >= item["spec"]["replicas"] - unavailable
    told = (
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    return _dated(old, "Available", *told, now)


_UNDER_WAY = ("NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated")


def _progressing(item: Item, old: Item, seen: Item, name: str, now: float) -> Item | None:
    """Returns the condition: complete, in progress, or past its deadline. Complete stays so until the next version."""
    before = _find(old, "Progressing")
    if not name:
        return before or None
    if _complete(item, seen):
        text = f'ReplicaSet "{name}" has successfully progressed.'
        return _dated(old, "Progressing", "True", "NewReplicaSetAvailable", text, now)
    known = f'"{name}"' in before.get("message", "")
    if known and before["reason"] == "NewReplicaSetAvailable":
        return before  # a pod failed or the size changed: not a rollout
    if not known or any(seen.get(key, 0) != old.get(key, 0) for key in _COUNTS):
        return _under_way(old, name, now)
    if _too_late(item, before, now):
        text = f'ReplicaSet "{name}" has timed out progressing.'
        return _dated(old, "Progressing", "False", "ProgressDeadlineExceeded", text, now)
    return before


def _created(old: Item, name: str, now: float) -> Item:
    return _dated(old, "Progressing", "True", "NewReplicaSetCreated", f'Created new replica set "{name}"', now)


def _under_way(old: Item, name: str, now: float) -> Item:
    """Returns the condition of a rollout in progress. Each change restarts the deadline."""
    told = _dated(old, "Progressing", "True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.', now)
    return told | {"lastUpdateTime": format_time(now)}


def _too_late(item: Item, before: Item, now: float) -> bool:
    limit = item["spec"].get("progressDeadlineSeconds")
    return (
        limit is not None
        and before["reason"] in _UNDER_WAY
        and parse_timestamp(before["lastUpdateTime"], 0.0) + limit < now
    )


def _complete(item: Item, seen: Item) -> bool:
    wanted = item["spec"]["replicas"]
    return all(seen[field] == wanted for field in ("replicas", "updatedReplicas", "availableReplicas"))


def _find(status: Item, type: str) -> Item:
    return next((each for each in status.get("conditions", ()) if each["type"] == type), {})


def _dated(old: Item, type: str, status: str, reason: str, message: str, now: float) -> Item:
    """Returns a condition with `lastUpdateTime`, which stays while reason and message do."""
    made = condition(old, type, status, reason, message, now)
    before = _find(old, type)
    same = (before.get("reason"), before.get("message")) == (reason, message)
    return made | {"lastUpdateTime": before["lastUpdateTime"] if same else format_time(now)}
