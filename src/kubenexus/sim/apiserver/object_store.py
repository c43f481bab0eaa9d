"""The shared state of the server: store, kinds, clock and random numbers. All request handlers read and write through
it."""

import random
from collections.abc import Collection, Mapping
from types import MappingProxyType

import msgspec

from kubenexus.base.clock import Clock
from kubenexus.sim.apiserver.kinds import Registry, ServedKind
from kubenexus.sim.apiserver.meta import MetadataSource
from kubenexus.sim.apiserver.optional_kinds import serve_optional_kinds
from kubenexus.sim.apiserver.rules.events import inward, outward
from kubenexus.sim.apiserver.status_errors import Json
from kubenexus.sim.apiserver.store import Store

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
NAMESPACES = "namespaces"


class ObjectStore:
    """Store, registry and metadata source of one server; implements `rules.ClusterReader`.

    `without` names disabled admission plugins, `gates` the feature gates that are on, `versions` the versions that are
    served or not other than by default.
    """

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        store: Store | None = None,
        without: Collection[str] = (),
        gates: Collection[str] = (),
        versions: Mapping[str, bool] = MappingProxyType({}),
    ) -> None:
        self._without, self._gates = frozenset(without), frozenset(gates)
        self.store = store or Store()
        self.registry = Registry()
        serve_optional_kinds(self.registry, gates, versions)
        self.stamps = MetadataSource(clock, rng)

    # The interface of the rules.

    def now(self) -> str:
        return self.stamps.now()

    def find(self, resource: str, key: str) -> Json | None:
        data = self.store.get(resource, key)
        return None if data is None else decode(data)

    def all(self, resource: str, namespace: str = "", holding: bytes = b"") -> list[Json]:
        prefix = f"{namespace}/" if namespace else ""
        objects = self.store.collection(resource).objects
        return [decode(data) for key, data in objects.items() if key.startswith(prefix) and holding in data]

    def number(self, below: int) -> int:
        return self.stamps.rng.randrange(below)

    def admits(self, plugin: str) -> bool:
        return plugin not in self._without

    def has_gate(self, gate: str) -> bool:
        return gate in self._gates

    # Writing.

    def write(self, kind: ServedKind, key: str, item: Json) -> bytes:
        """Commits an object and returns it as stored."""
        data = self._stamped(item)
        self.store.commit(kind.store, key, data)
        return data

    def remove(self, kind: ServedKind, key: str, item: Json) -> bytes:
        """Commits a deletion and returns the last state, with the version of the deletion."""
        data = self._stamped(item)
        self.store.commit(kind.store, key, data, deleted=True)
        return data

    def _stamped(self, item: Json) -> bytes:
        item.pop("kind", None)
        item.pop("apiVersion", None)
        item["metadata"]["resourceVersion"] = str(self.store.next_version())
        return encode(item)


def decode(data: bytes) -> Json:
    found: Json = _decode(data)
    return found


def kept(kind: ServedKind, item: Json) -> Json:
    """Returns an object as the store keeps it."""
    return inward(item) if kind.group == "events.k8s.io" else item


def shown(kind: ServedKind, data: bytes) -> bytes:
    """Returns an object as clients of this kind see it, still without `kind` and `apiVersion`."""
    return encode(outward(decode(data))) if kind.group == "events.k8s.io" else data
