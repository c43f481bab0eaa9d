"""The objects that pods name as their gangs: PodGroups of three kinds, Workloads and those of Kueue. This module only
stores them; `api.gangs.resolver` interprets them."""

from kubenexus.api.gangs.resolver import GroupObject, gang_terms
from kubenexus.base.errors import Malformed, truncated

MAX_UNREADABLE = 1024  # the oldest are dropped: their pods then report them as missing


class PodGroupStore:
    """The objects by kind, namespace and name. The event handlers add and remove them, and report kinds that cannot be
    listed and objects that cannot be decoded."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], GroupObject] = {}
        self._unlisted: set[str] = set()
        self._problems: dict[tuple[str, str, str], Malformed] = {}  # of objects that exist and cannot be decoded
        self._changed: dict[tuple[str, str, str], None] = {}

    def __len__(self) -> int:
        return len(self._found)

    def find(self, kind: str, namespace: str, name: str) -> GroupObject | None:
        return self._found.get((kind, namespace, name))

    def problem(self, kind: str, namespace: str, name: str) -> Malformed | None:
        """Returns the problem of an object that exists and cannot be decoded, or None."""
        return self._problems.get((kind, namespace, name))

    def unreadable(self, kind: str, key: str, problem: Malformed) -> bool:
        """Records that an object cannot be decoded; its last readable version stays. Returns whether the problem is
        new."""
        place, told = _place(kind, key), self._problems.pop(_place(kind, key), None)
        self._problems[place] = Malformed(truncated(problem.problem), field=truncated(problem.field))
        if len(self._problems) > MAX_UNREADABLE:
            del self._problems[next(iter(self._problems))]
        return str(told) != str(self._problems[place])

    def unreadable_keys(self, kind: str) -> list[str]:
        return [f"{namespace}/{name}" for held, namespace, name in self._problems if held == kind]

    def listable(self, kind: str) -> bool:
        """Returns whether the store knows which objects of a kind exist; False while the kind cannot be listed."""
        return kind not in self._unlisted

    def unlisted(self, kind: str) -> bool:
        """Records that a kind cannot be listed. Returns whether that is a change."""
        known = kind in self._unlisted
        self._unlisted.add(kind)
        return not known

    def listed(self, kind: str) -> bool:
        """Records that a list of a kind is complete. Returns whether that is a change."""
        known = kind in self._unlisted
        self._unlisted.discard(kind)
        return known

    def seen(self, kind: str, thing: GroupObject) -> None:
        place = kind, thing.metadata.namespace, thing.metadata.name
        before = self._found.get(place)
        if before is None or gang_terms(before) != gang_terms(thing):
            self._changed[place] = None
        self._found[place] = thing
        self._problems.pop(place, None)

    def gone(self, kind: str, key: str) -> None:
        if self._found.pop(_place(kind, key), None) is not None:
            self._changed[_place(kind, key)] = None
        self._problems.pop(_place(kind, key), None)

    def take_changed(self) -> list[tuple[str, str, str]]:
        """Returns the kind, namespace and name of objects that came, went or changed since the last call. There is one
        caller: the columns that preemption reads."""
        changed = list(self._changed)
        self._changed.clear()
        return changed


def _place(kind: str, key: str) -> tuple[str, str, str]:
    namespace, _, name = key.partition("/")
    return kind, namespace, name
