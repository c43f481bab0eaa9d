"""Queueing hints of NodeResourcesFit: events that may help a pod it rejected.

Each function takes one event and one waiting pod. It does not know how full nodes are, and returns False only if the
event cannot have made a difference.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kubenexus.api.allocatable import allocatable
from kubenexus.api.core import Node, Pod
from kubenexus.api.resource_names import PODS
from kubenexus.api.resources import Demand, demand, footprint
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.state.claims.store import IMPLICIT_RESOURCE

Ignores = Callable[[str], bool]
_MAX_KNOWN = 32


def pod_left(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a pod is gone that took capacity on a node, or was nominated to one."""
    return bool(event.old.spec.node_name or event.old.status.nominated_node_name)


def pod_shrank(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a pod on a node takes less of a resource that this one requests."""
    if not event.new.spec.node_name:
        return False
    before, after = dict(footprint(event.old).amounts), dict(footprint(event.new).amounts)
    return any(after.get(name, 0) < before.get(name, 0) for name, _ in footprint(pod).amounts)


def node_has_capacity(ignores: Ignores, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether the pod would fit the node if it were empty. If the node is not new, it must also offer more than
    before of what the pod requests."""
    asked = {name: amount for name, amount in _demand(pod).amounts if not ignores(name)}
    offered = _offered(event.new)
    # Resources that no device plugin offers there, but a device class backs, are left to DynamicResources.
    delegated = {name for name in asked if name in event.delegated and not offered.get(name)}
    if not _fits(asked, offered, delegated):
        return False
    before = {} if event.old is None else _offered(event.old)
    more = any(offered.get(name, 0) > before.get(name, 0) for name in (PODS, *asked))
    return event.old is None or more or bool(delegated)


def device_class_backs(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a device class now backs an extended resource that the pod requests."""
    old, new = event.old, event.new
    asked = dict(_demand(pod).amounts)
    if old is None and IMPLICIT_RESOURCE + new.metadata.name in asked:
        return True
    unchanged = old is not None and old.spec.extended_resource_name == new.spec.extended_resource_name
    return not unchanged and new.spec.extended_resource_name in asked


_known: list[tuple[Pod, Demand]] = []


def _demand(pod: Pod) -> Demand:
    """Returns the demand of a pod, cached for the last few pods by identity. Each event is checked for the same waiting
    pods again, and counting thousands of containers takes milliseconds."""
    for i, (known, counted) in enumerate(_known):
        if known is pod:
            if i:
                _known.insert(0, _known.pop(i))
            return counted
    counted = demand(pod)
    _known.insert(0, (pod, counted))
    del _known[_MAX_KNOWN:]
    return counted


def _fits(asked: Mapping[str, int], offered: Mapping[str, int], delegated: set[str]) -> bool:
    if offered.get(PODS, 0) < 1:
        return False
    return all(amount <= offered.get(name, 0) for name, amount in asked.items() if name not in delegated)


def _offered(node: Node) -> dict[str, int]:
    return dict(allocatable(node))
