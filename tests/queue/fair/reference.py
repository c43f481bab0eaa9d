"""The order of queues in plain Python: all waiting jobs are looked at for each turn, and nothing is remembered but the
turns of namespaces."""

from typing import NamedTuple

from kubenexus.api.queues.settings import QueueSettings


class Waiting(NamedTuple):
    name: str
    namespace: str
    cpu: int
    priority: int
    since: float
    number: int


class Reference:
    """`queues` by name, the queue of each namespace, and what runs: by namespace, milli cpu."""

    def __init__(self, queues: dict[str, QueueSettings], namespaces: dict[str, str], total: int) -> None:
        self.queues, self.namespaces, self.total = queues, namespaces, total
        self.used: dict[str, list[int]] = {}
        self.turns: dict[str, int] = {}
        self._turn = 0

    def path(self, namespace: str) -> list[str]:
        """The queues of a namespace, the topmost first."""
        found: list[str] = []
        name = self.namespaces[namespace]
        while name:
            found.insert(0, name)
            name = self.queues[name].parent
        return found

    def uses(self, queue: str) -> int:
        return sum(sum(used) for namespace, used in self.used.items() if queue in self.path(namespace))

    def guarantee(self, queue: str) -> int:
        below = sum(self.guarantee(name) for name, each in self.queues.items() if each.parent == queue)
        return max(below, self.queues[queue].guaranteed.get("cpu", 0))

    def share(self, queue: str) -> tuple[int, float]:
        used, guaranteed, weight = self.uses(queue), self.guarantee(queue), self.queues[queue].weight
        if guaranteed and used < guaranteed:
            return 0, used / guaranteed
        borrowed = max(0, used - guaranteed) / self.total
        return (1, borrowed / weight) if weight else (2, borrowed)

    def fits(self, job: Waiting) -> bool:
        for queue in self.path(job.namespace):
            most = self.queues[queue].most.get("cpu")
            if most is not None and self.uses(queue) + job.cpu > most:
                return False
        most = self.queues[self.namespaces[job.namespace]].namespace_limit.get("cpu")
        return most is None or sum(self.used.get(job.namespace, ())) + job.cpu <= most

    def next(self, waiting: list[Waiting]) -> Waiting | None:
        """The job whose turn it is, of those that no limit keeps waiting."""
        waiting = [job for job in waiting if self.fits(job)]
        level = 0
        while waiting and any(len(self.path(job.namespace)) > level for job in waiting):
            queues = {self.path(job.namespace)[level] for job in waiting}

            def key(queue: str, at: int = level, jobs: list[Waiting] = waiting) -> tuple[object, ...]:
                return *self.share(queue), min(_order(job) for job in jobs if self.path(job.namespace)[at] == queue)

            first = min(queues, key=key)
            waiting = [job for job in waiting if self.path(job.namespace)[level] == first]
            level += 1
        return min(
            waiting,
            key=lambda job: (-job.priority, self.turns.get(job.namespace, 0), job.since, job.number),
            default=None,
        )

    def place(self, job: Waiting) -> None:
        self._turn += 1
        self.turns[job.namespace] = self._turn
        self.used.setdefault(job.namespace, []).append(job.cpu)


def _order(job: Waiting) -> tuple[float, ...]:
    return -job.priority, job.since, job.number


def ideal(
    total: float, queues: dict[str, QueueSettings], demand: dict[str, float], parent: str = ""
) -> dict[str, float]:
    """What each leaf gets of one resource by weighted max-min fairness along the tree: all children of a queue rise
    together, above their guarantees and by their weights, until all is given away. `demand` is of leaves."""
    children = {name: queue for name, queue in queues.items() if queue.parent == parent}
    wanted = {name: _wanted(name, queues, demand) for name in children}
    given = _level(min(total, sum(wanted.values())), children, wanted, {n: _guarantee(n, queues) for n in children})
    found: dict[str, float] = {}
    for name in children:
        if any(queue.parent == name for queue in queues.values()):
            found |= ideal(given[name], queues, demand, name)
        else:
            found[name] = given[name]
    return found


def _wanted(name: str, queues: dict[str, QueueSettings], demand: dict[str, float]) -> float:
    below = [_wanted(child, queues, demand) for child, queue in queues.items() if queue.parent == name]
    return min(sum(below) if below else demand.get(name, 0.0), queues[name].most.get("cpu", float("inf")))


def _guarantee(name: str, queues: dict[str, QueueSettings]) -> float:
    below = sum(_guarantee(child, queues) for child, queue in queues.items() if queue.parent == name)
    return max(below, queues[name].guaranteed.get("cpu", 0))


def _level(
    total: float, children: dict[str, QueueSettings], wanted: dict[str, float], guaranteed: dict[str, float]
) -> dict[str, float]:
    """Shares the total: first guarantees, in equal parts of each; then by weight; then among those without weight."""
    first = {name: min(wanted[name], guaranteed[name]) for name in children}

    def risen(level: float) -> dict[str, float]:
        parts = {name: min(first[name], level * guaranteed[name]) for name in children}
        if level > 1:
            parts = {
                name: min(wanted[name], first[name] + (level - 1) * queue.weight) for name, queue in children.items()
            }
        return parts

    low, high = 0.0, 1.0 + sum(wanted.values())
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(risen(middle).values()) < total else (low, middle)
    given = risen(high)
    left = total - sum(given.values())
    idle = [name for name in sorted(children, key=lambda name: wanted[name] - given[name]) if not children[name].weight]
    for position, name in enumerate(idle):
        more = min(wanted[name] - given[name], max(left, 0.0) / (len(idle) - position))
        given[name] += more
        left -= more
    return given
