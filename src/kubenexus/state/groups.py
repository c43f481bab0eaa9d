"""The objects that pods name as their gangs: PodGroups of three kinds, and Workloads. What they mean for a pod is said
by `api.gangs.resolver`; here they are only kept."""

from kubenexus.api.workloads import PodGroup, Workload


class Groups:
    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], PodGroup | Workload] = {}
        self._unlisted: set[str] = set()

    def __len__(self) -> int:
        return len(self._found)

    def find(self, kind: str, namespace: str, name: str) -> PodGroup | Workload | None:
        return self._found.get((kind, namespace, name))

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
        self._found[kind, thing.metadata.namespace, thing.metadata.name] = thing

    def gone(self, kind: str, key: str) -> None:
        namespace, _, name = key.partition("/")
        self._found.pop((kind, namespace, name), None)
