"""The active job classes that were refused before, by share: shares of one priority take turns by what they cost.

A share is a priority in a namespace. By age alone, a tenant with 1,000 refused classes delays a class of another
namespace by 1,000 attempts of 15 ms each. So the next class is the one refused the longest ago of the next share, and
each refused attempt moves its share back:

- by one second for each unit of work of the attempt (`queue.question_cost`), so that shares with few and cheap attempts
  come first;
- to at most `MAX_CHARGE` from now. Shares that are moved back that far take turns: the one refused the longest ago is
  the first of them.

The work counts, and not only the number of attempts, since a tenant may have 1,000 namespaces with one class each. A
share that was moved back to a time comes before all that are refused after that time. Hence it waits for at most
`MAX_CHARGE`, and then for one turn of each other share of its priority.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final

from kubenexus.base.heap import Heap, Slot
from kubenexus.queue.job_class import ClassShare, JobClass

# Seconds: longer than a round of 1,000 namespaces with attempts of 20 ms and as many attempts by order, which is 40 s.
MAX_CHARGE: Final = 60.0
MAX_SHARES: Final = 10_000  # with a charge that is kept; the one refused the longest ago is dropped first
_PODS_PER_UNIT: Final = 10  # further members of a gang cost less than its first


class RetryShares:
    """A heap of job classes; `push`, `remove` and `first` as those of `Heap`, each in O(log n).

    _classes  for each share its classes, by their order
    _slots    the slots of these shares in `_turns`, which is sorted by the profile's order of priority and charge
    _charges  until when each share lets others go first; not only of shares that have classes here
    """

    def __init__(self) -> None:
        self._classes: dict[ClassShare, Heap[JobClass]] = {}
        self._turns: Heap[ClassShare] = Heap()
        self._slots: dict[ClassShare, Slot] = {}
        self._charges: OrderedDict[ClassShare, float] = OrderedDict()
        self._count = 0
        self._by_priority = True

    def sort_by_priority(self, by_priority: bool) -> None:
        """Whether shares of higher priority come first. Priorities of different queues are not compared."""
        self._by_priority = by_priority
        for share in list(self._classes):
            self._sort(share)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[JobClass]:
        for job_classes in self._classes.values():
            yield from job_classes

    def first(self) -> JobClass | None:
        share = self._turns.first()
        return None if share is None else self._classes[share].first()

    def push(self, order: Any, job_class: JobClass) -> Slot:
        slot = self._classes.setdefault(job_class.share, Heap()).push(order, job_class)
        self._count += 1
        self._sort(job_class.share)
        return slot

    def remove(self, slot: Slot) -> None:
        job_class: JobClass | None = slot[2]
        if job_class is None:
            return
        self._classes[job_class.share].remove(slot)
        self._count -= 1
        self._sort(job_class.share)

    def charge(self, job_class: JobClass, pods: int, now: float) -> None:
        """Moves the share of this class back, after an attempt for a job of so many pods was in vain."""
        cost = job_class.question_cost
        since = max(self._charges.pop(job_class.share, 0.0), now)
        units = cost.first + cost.each + pods // _PODS_PER_UNIT
        self._charges[job_class.share] = min(since + units, now + MAX_CHARGE)
        if len(self._charges) > MAX_SHARES:
            self._sort(self._charges.popitem(last=False)[0])
        self._sort(job_class.share)

    def _sort(self, share: ClassShare) -> None:
        """Puts the share at its place among the others, or takes it out. A job that was activated by itself
        (`SchedulingQueue.activate`) is the first of all with its priority."""
        job_classes = self._classes.get(share)
        if job_classes is None:
            return
        first, slot = job_classes.first(), self._slots.pop(share, None)
        if first is None:
            del self._classes[share]
            order = None
        else:
            activated = first.single_job and not first.unschedulable_since
            charge = 0.0 if activated else self._charges.get(share, 0.0)
            order = first.profile.order(share.priority if self._by_priority else 0, charge)
        if slot is not None and slot[0] != order:
            self._turns.remove(slot)
            slot = None
        if order is not None:
            self._slots[share] = slot or self._turns.push(order, share)
