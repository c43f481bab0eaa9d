"""A cache of workloads, their pods and the nodes, decoded once and always equal to the store.

It reports which workloads a change affects: the workload itself, and the present and previous controller of a child.
For a child without a controller these are the workloads whose selector matches it.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from kubenexus.api.selectors import LabelSelector, Selector, compile_selector
from kubenexus.sim.apiserver.store import DELETED, Store, StoreChange
from kubenexus.sim.controllers.types import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Item,
    Key,
    Node,
    Owned,
    Pod,
)

# Later kinds read what earlier ones write, and are reconciled after them.
WORKLOADS = (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS, DEPLOYMENTS)
_ADOPTERS = {PODS: (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS), REPLICA_SETS: (DEPLOYMENTS,)}
_decode = msgspec.json.Decoder().decode

Child = TypeVar("Child", bound=Owned)


class ChildIndex(Generic[Child]):
    """Children by controller, and children without one by namespace."""

    def __init__(self) -> None:
        self.all: dict[str, Child] = {}
        self._owned: dict[Key, dict[str, Child]] = {}
        self._free: dict[str, dict[str, Child]] = {}

    def put(self, key: str, child: Child | None) -> tuple[Child | None, Child | None]:
        """Adds, replaces or (None) removes a child. Returns the previous and the new child."""
        before = self.all.pop(key, None)
        if before is not None:
            self._take_away(key, before)
        if child is not None:
            self.all[key] = self._siblings(child)[key] = child
        return before, child

    def of(self, owner: Key) -> list[Child]:
        """Returns the children that name this controller. They may belong to an earlier object of the same name."""
        found = self._owned.get(owner, {})
        return [found[key] for key in sorted(found)]

    def free(self, namespace: str) -> list[Child]:
        return list(self._free.get(namespace, {}).values())

    def _take_away(self, key: str, child: Child) -> None:
        """Removes a child, and the entry of its controller with the last child: jobs come and go by the thousand."""
        place = self._siblings(child)
        place.pop(key, None)
        if not place and child.owner is not None:
            self._owned.pop(child.owner, None)

    def _siblings(self, child: Child) -> dict[str, Child]:
        if child.controller is None:
            return self._free.setdefault(child.metadata.namespace, {})
        owner = child.owner
        return {} if owner is None else self._owned.setdefault(owner, {})


class ControllerCache:
    """`concerned` is called with the key of each affected workload during a commit, and must not write."""

    def __init__(self, store: Store, concerned: Callable[[Key], None]) -> None:
        self._concerned = concerned
        self._by_kind: dict[str, dict[str, Item]] = {resource: {} for resource in WORKLOADS}
        self.pods: ChildIndex[Pod] = ChildIndex()
        self.sets: ChildIndex[Owned] = ChildIndex()
        self.nodes: dict[str, Node] = {}
        self._leave = [store.listen(resource, listener) for resource, listener in self._listeners()]
        for resource, listener in self._listeners():
            collection = store.collection(resource)
            for key in collection.keys():  # noqa: SIM118 - not a dict
                listener(StoreChange(0, "ADDED", key, collection.objects[key], None))

    def close(self) -> None:
        """Unsubscribes from the store."""
        for leave in self._leave:
            leave()

    def item(self, key: Key) -> Item | None:
        return self._by_kind[key[0]].get(key[1])

    def items(self, resource: str) -> Iterable[Item]:
        return self._by_kind[resource].values()

    # ---- changes of the store ----------------------------------------------------------------------------------------

    def _listeners(self) -> Iterator[tuple[str, Callable[[StoreChange], None]]]:
        yield NODES, self._node
        for resource in WORKLOADS:
            yield resource, functools.partial(self._workload, resource)
        yield PODS, self._pod

    def _workload(self, resource: str, change: StoreChange) -> None:
        if change.type == DELETED:
            self._by_kind[resource].pop(change.key, None)
        else:
            self._by_kind[resource][change.key] = _decode(change.data)
        if resource == REPLICA_SETS:
            self._child(REPLICA_SETS, self.sets, change, Owned)
        self._concerned((resource, change.key))

    def _pod(self, change: StoreChange) -> None:
        self._child(PODS, self.pods, change, Pod)

    def _child(self, resource: str, family: ChildIndex[Child], change: StoreChange, kind: type[Child]) -> None:
        child = None if change.type == DELETED else msgspec.json.decode(change.data, type=kind)
        for each in family.put(change.key, child):
            if each is not None and each.owner is not None:
                self._concerned(each.owner)
        if child is not None and child.controller is None and not child.terminating:
            self._offer(resource, child)

    def _offer(self, resource: str, child: Owned) -> None:
        prefix = f"{child.metadata.namespace}/"
        for adopter in _ADOPTERS[resource]:
            for key, item in self._by_kind[adopter].items():
                if key.startswith(prefix) and selector(item).matches(child.metadata.labels):
                    self._concerned((adopter, key))

    def _node(self, change: StoreChange) -> None:
        node = None if change.type == DELETED else msgspec.json.decode(change.data, type=Node)
        before = self.nodes.pop(change.key, None)
        if node is not None:
            self.nodes[change.key] = node
        if node is None or before is None or _shape(node) != _shape(before):
            for key in self._by_kind[DAEMON_SETS]:
                self._concerned((DAEMON_SETS, key))


def selector(item: Item) -> Selector:
    """Returns the selector of a workload; without one it matches nothing."""
    return _compiled(msgspec.json.encode(item["spec"].get("selector") or None))


@functools.lru_cache(4096)
def _compiled(said: bytes) -> Selector:
    return compile_selector(msgspec.json.decode(said, type=LabelSelector | None))


def _shape(node: Node) -> tuple[object, ...]:
    """Returns what decides which pods may run on a node; heartbeats do not change it."""
    return node.metadata.labels, node.spec.taints
