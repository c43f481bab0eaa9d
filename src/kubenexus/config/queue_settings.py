"""The queues of the configuration (`pluginConfig`, `KubeNexus`, `queues`). All profiles share them, as they share the
ledger."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kubenexus.api.meta import ObjectMeta
from kubenexus.api.queues.queue import Queue, QueueSpec
from kubenexus.api.queues.settings import queue_settings
from kubenexus.base.errors import Malformed
from kubenexus.config.args import SETTINGS, QueueArgs, as_data
from kubenexus.config.field_errors import FieldPath


def configured_queues(args: Mapping[str, Mapping[str, Any]]) -> list[Queue]:
    """Returns the queues of the first profile that has some, as objects, from the arguments by profile."""
    given: Iterator[list[dict[str, Any]]] = (each.get(SETTINGS, {}).get("queues", []) for each in args.values())
    return [_queue(queue) for queue in next((queues for queues in given if queues), [])]


def usage_half_life(args: Mapping[str, Mapping[str, Any]]) -> float:
    """Returns the half-life of what queues used in the past, in seconds, of the first profile that sets it; 0: none."""
    given = (float(each.get(SETTINGS, {}).get("queueUsageHalfLifeSeconds", 0)) for each in args.values())
    return next((seconds for seconds in given if seconds), 0.0)


def validate_queues(queues: Iterable[QueueArgs], place: FieldPath) -> None:
    """Reports all problems of queues: of each by itself, names that repeat, parents that do not exist, and cycles."""
    seen: dict[str, str] = {}
    for index, queue in enumerate(queues):
        here = place[index]
        if not queue.name:
            here["name"].required()
        elif queue.name in seen:
            here["name"].duplicate(queue.name)
        seen[queue.name] = queue.parent
        try:
            read = _queue(as_data(queue))
            queue_settings(read.metadata.name, read.spec)
        except Malformed as problem:
            here.report(str(problem).removeprefix("spec."))
    for index, queue in enumerate(queues):
        above, steps = queue.parent, 0
        while above in seen and above != queue.name and steps <= len(seen):
            above, steps = seen[above], steps + 1
        if above == queue.name and queue.name:
            place[index]["parent"].invalid(queue.parent, "the queue is below itself")
        elif above and above not in seen:
            place[index]["parent"].invalid(above, "no queue of the configuration has this name")


def _queue(queue: Mapping[str, Any]) -> Queue:
    spec = {field: value for field, value in queue.items() if field != "name"}
    try:
        return Queue(metadata=ObjectMeta(name=queue.get("name", "")), spec=msgspec.convert(spec, QueueSpec))
    except msgspec.ValidationError as error:
        raise Malformed(str(error)) from None
