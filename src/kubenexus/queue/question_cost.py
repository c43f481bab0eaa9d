"""What a question to a hint costs, and what an event weighs, estimated from the number of entries in the objects.

A question is: may this event help this waiting pod? For an ordinary pod an answer takes 10 to 40 us, which is one unit
of work (`queue.work_allowance`). A pod with 400 affinity terms takes up to 0.26 ms for each answer: 5 units, so that
large pods take no more of a turn than ordinary ones. The weight of an event is the memory of its old and new object.
Both estimates take 1 us for an ordinary pod, and time in proportion to its entries for a large one.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.framework.pod_limits import NAMESPACES, POD_KEYS, POD_REQUIREMENTS, SPREAD, TERMS, VALUES, count_entries

# What hints parse once for many questions. An entry takes 4 us to parse, and up to 0.2 us in each question.
_PARSED_ONCE: Final = frozenset({TERMS, SPREAD, POD_REQUIREMENTS, POD_KEYS, NAMESPACES, VALUES})
_PARSED_PER_UNIT: Final = 256
_ENTRIES_PER_UNIT: Final = 8
# The share of the parsing that each further series of questions pays, in case the result was dropped meanwhile
# (`base.identity_memo`): a turn stays below 100 ms even if nothing is ever kept.
_PARSED_AGAIN: Final = 4
_FREE_ENTRIES: Final = 32  # of an ordinary pod
# A job class whose questions about one event cost more is woken without a question. The sum is not continued beyond.
MAX_PRICE: Final = 500

_OBJECT_BYTES: Final = 4096  # of an object with a few labels
_ENTRY_BYTES: Final = 256  # of a label: 2 MB were measured for 8,000


class QuestionCost(NamedTuple):
    """Units of work: `first` for the first series of questions about a job class, `again` for each further series, and
    `each` for each event in it."""

    first: int
    again: int
    each: int


class EventCost(NamedTuple):
    """The memory that an event holds, in bytes, and the units that it adds to each question about it."""

    size: int
    price: int


def question_cost(pods: Iterable[Pod]) -> QuestionCost:
    """Returns what it costs to check an event for all these pods. Sums beyond `MAX_PRICE` are not exact."""
    first = each = 0
    for pod in pods:
        counts = count_entries(pod)
        parsed = sum([number for entry, number in counts.items() if entry in _PARSED_ONCE])
        others = max(sum(counts.values()) - parsed - _FREE_ENTRIES, 0)
        first += max(parsed - _FREE_ENTRIES, 0) // _ENTRIES_PER_UNIT
        each += 1 + parsed // _PARSED_PER_UNIT + others // _ENTRIES_PER_UNIT
        if each > MAX_PRICE:
            break
    return QuestionCost(first, first // _PARSED_AGAIN, each)


def event_cost(event: ClusterEvent) -> EventCost:
    """Returns what the event weighs, and what its own terms add to each question: hints parse those of `old`."""
    size = price = 0
    for thing in (event.old, event.new):
        if thing is None:
            continue
        entries = sum(count_entries(thing).values()) if isinstance(thing, Pod) else 0
        size += _object_size(thing) + _ENTRY_BYTES * entries
        if event.old is not None:
            price += max(entries - _FREE_ENTRIES, 0) // _ENTRIES_PER_UNIT
    return EventCost(size, price)


def _object_size(thing: Any) -> int:
    metadata = thing.metadata
    size = _OBJECT_BYTES + _ENTRY_BYTES * (len(metadata.labels) + len(metadata.annotations))
    if metadata.annotations:
        size += sum(map(len, metadata.annotations.values()))
    if isinstance(thing, Pod):
        size += _ENTRY_BYTES * (len(thing.spec.volumes) + len(thing.status.conditions))
    return size
