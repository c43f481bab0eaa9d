"""The objects that pods name as their gangs: PodGroups of three kinds, and Workloads. What they mean for a pod is said
by `api.gangs.resolver`; here they are only kept."""

from kubenexus.api.workloads import PodGroup, Workload
from kubenexus.base.errors import Malformed, truncated

MOST_UNREADABLE = 1024  # objects whose problem is remembered; of those that came before, pods say that they are missing


class PodGroupStore:
    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], PodGroup | Workload] = {}
        self._unlisted: set[str] = set()
        self._problems: dict[tuple[str, str, str], Malformed] = {}  # of objects that are there and cannot be read

    def __len__(self) -> int:
        return len(self._found)

    def find(self, kind: str, namespace: str, name: str) -> PodGroup | Workload | None:
        return self._found.get((kind, namespace, name))

    def problem(self, kind: str, namespace: str, name: str) -> Malformed | None:
        """What is wrong with an object that is there and cannot be read."""
        return self._problems.get((kind, namespace, name))

    def unreadable(self, kind: str, key: str, problem: Malformed) -> bool:
        """An object cannot be read. What was known of it stays. Returns whether that is a change."""
        place, told = _place(kind, key), self._problems.pop(_place(kind, key), None)
        self._problems[place] = Malformed(truncated(problem.problem), field=truncated(problem.field))
        if len(self._problems) > MOST_UNREADABLE:
            del self._problems[next(iter(self._problems))]
        return str(told) != str(self._problems[place])

    def unreadable_keys(self, kind: str) -> list[str]:
        return [f"{namespace}/{name}" for held, namespace, name in self._problems if held == kind]

    def listable(self, kind: str) -> bool:
        """Whether the objects of a kind that exist are known; False while the kind cannot be listed."""
        return kind not in self._unlisted

    def unlisted(self, kind: str) -> bool:
        """A kind cannot be listed. Returns whether that is a change."""
        known = kind in self._unlisted
        self._unlisted.add(kind)
        return not known

    def listed(self, kind: str) -> bool:
        """A list of a kind is complete. Returns whether that is a change."""
        known = kind in self._unlisted
        self._unlisted.discard(kind)
        return known

    def seen(self, kind: str, thing: PodGroup | Workload) -> None:
        place = kind, thing.metadata.namespace, thing.metadata.name
        self._found[place] = thing
        self._problems.pop(place, None)

    def gone(self, kind: str, key: str) -> None:
        self._found.pop(_place(kind, key), None)
        self._problems.pop(_place(kind, key), None)


def _place(kind: str, key: str) -> tuple[str, str, str]:
    namespace, _, name = key.partition("/")
    return kind, namespace, name
