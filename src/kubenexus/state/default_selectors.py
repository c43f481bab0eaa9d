"""The default selector of a pod: the combined selectors of its services and its controller. Pods without topology
spread constraints of their own are spread by it."""

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.selectors import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    Operator,
    Requirement,
    Selector,
    compile_selector,
)
from kubenexus.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubenexus.base.errors import Malformed

_MAX_KNOWN = 1024
_MAX_LABELS = 1_000  # of an owner's selector: it is matched against all pods of its namespace
_MAX_COMPARED = 1_000  # labels of services that are compared with one pod: 0.1 ms
Pairs = tuple[tuple[str, str], ...]
T = TypeVar("T", bound=Hashable)

_KINDS = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicationController": "v1",
}


class DefaultSelector(msgspec.Struct, frozen=True):
    """A selector as plain data, with those labels of the pod that the selector refers to."""

    labels: dict[str, str]
    wanted: list[tuple[str, str, tuple[str, ...]]]


_UNKNOWN = DefaultSelector({}, [])


class DefaultSelectors:
    """The services and controllers of the cluster, and the default selectors that follow from them. Only the ledger
    writes here."""

    def __init__(self) -> None:
        self.version = 0  # grows with every change
        # By what the selector depends on: pods of one template share an entry.
        self._known: dict[Hashable, DefaultSelector | None] = {}
        self._services: dict[str, dict[str, Pairs]] = {}  # by namespace and name: the labels a service selects by
        self._keys: dict[str, dict[str, int]] = {}  # by namespace: how many services refer to a label key
        self._uses: dict[str, dict[tuple[str, str], int]] = {}  # by namespace: how many services select by a label
        # By namespace: each set of labels that services select by, under the label of it that the fewest services had
        # when the set came, with the number of its services.
        self._by_label: dict[str, dict[tuple[str, str], dict[Pairs, int]]] = {}
        self._index: dict[str, dict[Pairs, tuple[str, str]]] = {}  # by namespace: where `_by_label` has a set
        self.compared = 0  # labels of services that were compared with pods
        self._selectors: dict[tuple[str, str, str], Selector] = {}  # by kind, namespace and name of a controller

    def seen(self, owner: Service | ReplicationController | ReplicaSet | StatefulSet) -> None:
        """Records a service or controller. Raises Malformed if its selector is too large or cannot be compiled; the
        owner then selects nothing."""
        namespace, name = owner.metadata.namespace, owner.metadata.name
        self._known.clear()
        self.gone(type(owner), namespace, name)
        _refuse_large(owner)
        if isinstance(owner, Service):
            pairs = tuple(sorted(owner.spec.selector.items()))
            if pairs:
                self._services.setdefault(namespace, {})[name] = pairs
                self._add_service(namespace, pairs)
            return
        key = (type(owner).__name__, namespace, name)
        if isinstance(owner, ReplicationController):
            self._selectors[key] = _exactly(owner.spec.selector.items())
            return
        try:
            self._selectors[key] = compile_selector(owner.spec.selector)
        except Malformed as problem:
            raise problem.within("spec.selector", f"{key[0]} {namespace}/{name}") from None

    def gone(self, kind: type[Any], namespace: str, name: str) -> None:
        """Removes a service or controller."""
        self._known.clear()
        self.version += 1
        self._selectors.pop((kind.__name__, namespace, name), None)
        pairs = self._services.get(namespace, {}).pop(name, None) if kind is Service else None
        if pairs:
            self._remove_service(namespace, pairs)

    def _add_service(self, namespace: str, pairs: Pairs) -> None:
        index, uses = self._index.setdefault(namespace, {}), self._uses.setdefault(namespace, {})
        label = index.get(pairs)
        if label is None:
            label = index[pairs] = min(pairs, key=lambda pair: uses.get(pair, 0))
        alike = self._by_label.setdefault(namespace, {}).setdefault(label, {})
        alike[pairs] = alike.get(pairs, 0) + 1
        self._count_labels(namespace, pairs, +1)

    def _remove_service(self, namespace: str, pairs: Pairs) -> None:
        label = self._index[namespace][pairs]
        alike = self._by_label[namespace][label]
        alike[pairs] -= 1
        if not alike[pairs]:
            del alike[pairs], self._index[namespace][pairs]
        if not alike:
            del self._by_label[namespace][label]
        self._count_labels(namespace, pairs, -1)
        if not self._services[namespace]:
            del self._services[namespace], self._index[namespace], self._by_label[namespace]

    def _count_labels(self, namespace: str, pairs: Pairs, by: int) -> None:
        _count(self._keys, namespace, [key for key, _ in pairs], by)
        _count(self._uses, namespace, pairs, by)

    def of(self, pod: Pod) -> DefaultSelector | None:
        """Returns the default selector of the pod, or None if no service or controller selects it."""
        meta, labels = pod.metadata, pod.metadata.labels
        owners: Pairs = ()
        for owner in meta.owner_references if self._selectors else ():
            if owner.controller and _KINDS.get(owner.kind) == owner.api_version:
                owners += ((owner.kind, owner.name),)
        if not owners:
            services = self._by_label.get(meta.namespace)
            if services is None or services.keys().isdisjoint(labels.items()):
                return None
            keys = self._keys[meta.namespace]
            few = labels if len(labels) < len(keys) else keys
            labels = {key: labels[key] for key in sorted(few) if key in labels and key in keys}
        asked = (meta.namespace, owners, (*labels.items(),))
        known = self._known.get(asked, _UNKNOWN)
        if known is _UNKNOWN:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[asked] = self._belonging(pod)
        return known

    def _belonging(self, pod: Pod) -> DefaultSelector | None:
        selector = self.selector_of(pod)
        if not selector.requirements:
            return None
        labels = {key: pod.metadata.labels[key] for key in selector.keys if key in pod.metadata.labels}
        return DefaultSelector(labels, [(r.key, r.op.value, r.values) for r in selector.requirements])

    def selector_of(self, pod: Pod) -> Selector:
        """Returns the requirements of the pod's services and its controller together; empty if there are none."""
        owners = pod.metadata.owner_references if self._selectors else ()
        merged = self._service_labels(pod) if self._services else None
        if not owners and not merged:
            return EVERYTHING
        wanted = list(_exactly(merged.items()).requirements) if merged else []
        for owner in owners:
            if owner.controller and _KINDS.get(owner.kind) == owner.api_version:
                selector = self._selectors.get((owner.kind, pod.metadata.namespace, owner.name), NOTHING)
                if owner.kind == "ReplicationController":
                    by_key = {r.key: r for r in (*wanted, *selector.requirements)}
                    wanted = [by_key[key] for key in sorted(by_key)]
                elif not selector.nothing:
                    wanted += selector.requirements
        return Selector(tuple(wanted))

    def _service_labels(self, pod: Pod) -> dict[str, str]:
        """Returns the merged selectors of the services that select this pod, found by its labels.

        Compares at most `_MAX_COMPARED` labels of services. Services beyond that do not count for the pod, which is
        then spread less evenly: a namespace may have thousands of services that select by the same labels.
        """
        labels, services = pod.metadata.labels, self._by_label.get(pod.metadata.namespace)
        merged: dict[str, str] = {}
        if not services:
            return merged
        present, left = labels.items(), _MAX_COMPARED
        for label in present:
            for pairs in services.get(label, ()):
                left -= len(pairs)
                if left < 0:
                    return merged
                self.compared += len(pairs)
                if all([pair in present for pair in pairs]):  # noqa: C419
                    merged.update(pairs)
        return merged


def _count(counts: dict[str, dict[T, int]], namespace: str, things: Iterable[T], by: int) -> None:
    """Changes how often each thing is used in a namespace; keeps none that is not."""
    of_namespace = counts.setdefault(namespace, {})
    for each in things:
        of_namespace[each] = of_namespace.get(each, 0) + by
        if not of_namespace[each]:
            del of_namespace[each]
    if not of_namespace:
        del counts[namespace]


def _refuse_large(owner: Service | ReplicationController | ReplicaSet | StatefulSet) -> None:
    selector = owner.spec.selector
    size = 0 if selector is None else selector.size if isinstance(selector, LabelSelector) else len(selector)
    if size > _MAX_LABELS:
        subject = f"{type(owner).__name__} {owner.metadata.namespace}/{owner.metadata.name}"
        raise Malformed(f"has {size} entries; at most {_MAX_LABELS} are read", field="spec.selector", subject=subject)


def _exactly(labels: Any) -> Selector:
    return Selector(tuple(Requirement(key, Operator.IN, (value,)) for key, value in sorted(labels)))
