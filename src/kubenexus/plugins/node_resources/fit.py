"""NodeResourcesFit: rejects nodes without enough free resources, and scores nodes by how full they would be.

Filter: the pod's requests must be free; a request of 0 is not checked. A node whose total is smaller than the request
cannot be helped by evictions. Score: the weighted mean over some resources of how empty (LeastAllocated), how full
(MostAllocated) or how well-shaped (RequestedToCapacityRatio) the node would be.
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.resource_names import is_basic, is_extended
from kubenexus.base.arrays import AmountVector, IntColumn, any_true
from kubenexus.base.errors import truncated
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import AS_IS, Depends
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import MAX_REASONS, Code, NodeVerdict, Reason
from kubenexus.plugins.node_resources import hints
from kubenexus.plugins.node_resources.strategies import LEAST_ALLOCATED, Strategy, amounts_of, strategy_from
from kubenexus.state.view import ALLOC, FREE, FREE_NONZERO, NONZERO, USED, Nodes, OneNode

_TOGETHER = 8  # resources that are compared as one table
_TOO_MANY_PODS = Reason("Too many pods")


class NodeResourcesFit:
    name = "NodeResourcesFit"
    reads = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources")
    depends = Depends.USAGE
    normalize = AS_IS
    supports_one_node = True

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._ignored = frozenset(args.get("ignoredResources") or ())
        self._ignored_groups = frozenset(args.get("ignoredResourceGroups") or ())
        self._strategy: Strategy = strategy_from(args.get("scoringStrategy") or {})

    @property
    def plain(self) -> bool:
        """Whether the strategy is the default: empty nodes first, by cpu and memory alike."""
        return self._strategy.formula is LEAST_ALLOCATED and self._strategy.resources == [("cpu", 1), ("memory", 1)]

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        asked = pod.cached("NodeResourcesFit", lambda: self._asked(pod))
        if isinstance(nodes, OneNode):
            self._filter_one(asked, nodes, verdict)
            return
        if nodes.rows is None and asked.within(nodes.min_free(asked.names)):
            return
        if len(asked.names) > _TOGETHER:
            self._one_by_one(asked, nodes, verdict)
            return
        if nodes.rows is None:
            amounts = nodes.amounts(asked.names)[0]
            there, lacking = amounts[ALLOC], amounts[FREE] < asked.like(amounts)
        else:  # from the rows' own amounts: 30 instead of 65 us for 40 rows and four resources
            held = nodes.by_row[:, : USED + 1, nodes.columns.resources.layout(asked.names).rows].T
            there = held[:, ALLOC]
            lacking = there - held[:, USED] < asked.like(held)
        if any_true(lacking):
            for i, name in enumerate(asked.names):
                if any_true(lacking[i]):
                    self._reject(name, lacking[i], there[i] < asked.values[i], nodes, verdict)

    @staticmethod
    def _filter_one(asked: AmountVector, node: OneNode, verdict: NodeVerdict) -> None:
        """The same for one row. A resource that a DeviceClass backs is lacking only where a device plugin offers it."""
        allocs, uses = node.allocs, node.uses
        for i, (r, amount) in enumerate(asked.cells(node.rows_of(asked.names))):
            if amount > allocs[r] - uses[r]:
                name = asked.names[i]
                if name == "pods":
                    verdict.reject(True, _TOO_MANY_PODS)
                elif allocs[r] > 0 or not node.is_device_class_resource(name):
                    code = Code.UNRESOLVABLE if allocs[r] < amount else Code.UNSCHEDULABLE
                    verdict.reject(True, _insufficient(name, code))

    def _one_by_one(self, asked: AmountVector, nodes: Nodes, verdict: NodeVerdict) -> None:
        """Does the same for a pod with many resources: a table of all of them takes 40 bytes a resource and node. Of
        the resources that no node ever offered, it names at most as many as a verdict can hold."""
        everywhere, offered, unnamed = np.ones(nodes.width, np.bool_), nodes.columns.resources.index, 0
        for name, amount in zip(asked.names, asked.values, strict=True):
            if name in offered:
                capacity = nodes.alloc(name)
                lacking = capacity - nodes.used(name) < amount
                if any_true(lacking):
                    self._reject(name, lacking, capacity < amount, nodes, verdict)
            elif unnamed < MAX_REASONS and not nodes.is_device_class_resource(name):
                unnamed += 1
                verdict.reject(everywhere, _insufficient(name, Code.UNRESOLVABLE))

    def _reject(self, name: str, lacking: Any, too_small: Any, nodes: Nodes, verdict: NodeVerdict) -> None:
        if name == "pods":
            verdict.reject(lacking, _TOO_MANY_PODS)
            return
        if nodes.is_device_class_resource(name):  # where no device plugin offers it, DynamicResources decides
            lacking &= nodes.alloc(name) > 0
        never = lacking & too_small
        if any_true(never):
            verdict.reject(never, _insufficient(name, Code.UNRESOLVABLE))
            lacking = lacking & ~never
        verdict.reject(lacking, _insufficient(name, Code.UNSCHEDULABLE))

    def _asked(self, pod: PodClass) -> AmountVector:
        """Returns the requests of the pod's containers, and one pod."""
        wanted = dict(pod.demand.amounts)
        if self._ignored or self._ignored_groups:
            wanted = {name: amount for name, amount in wanted.items() if not self._ignores(name)}
        common: dict[str, int] = {name: wanted.pop(name) for name in ("cpu", "memory") if name in wanted}
        return AmountVector({**common, "pods": 1, **wanted})

    def _ignores(self, resource: str) -> bool:
        if not is_extended(resource):
            return False
        return resource in self._ignored or resource.partition("/")[0] in self._ignored_groups

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        wanted, weights = pod.cached("NodeResourcesFit score", lambda: self._scored(pod))
        result: IntColumn | int
        if not weights:
            result = 0
        elif isinstance(nodes, OneNode):
            counted, allocs, cells = nodes.nonzero, nodes.allocs, wanted.cells(nodes.rows_of(wanted.names))
            result = self._strategy.mean_of_one(weights, [(counted[r] + v, allocs[r]) for r, v in cells])
        else:
            amounts, offered = nodes.amounts(wanted.names)
            more = wanted.like(amounts)
            left = amounts[FREE_NONZERO] - more if self._strategy.formula.spare else amounts[NONZERO] + more
            result = self._strategy.mean(weights, left, amounts[ALLOC], offered)
        return result

    def _scored(self, pod: PodClass) -> tuple[AmountVector, list[int]]:
        """Returns the pod's requests of the resources to score, and their weights."""
        asked = dict(pod.demand.with_defaults)
        wanted = {n: w for n, w in self._strategy.resources if asked.get(n) or is_basic(n)}
        return amounts_of(pod, tuple(wanted), pod.demand.with_defaults), list(wanted.values())

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Limits `capacity` to how often the request fits into the free amounts."""
        asked = pod.cached("NodeResourcesFit", lambda: self._asked(pod))
        for name, amount in zip(asked.names, asked.values, strict=True):
            alloc = nodes.alloc(name)
            times = np.maximum(alloc - nodes.used(name), 0) // amount
            offered = (alloc > 0) if nodes.is_device_class_resource(name) else True
            np.minimum(capacity, times, out=capacity, where=offered)

    def amounts(self, pod: PodClass) -> Mapping[str, int]:
        """Returns the counted amounts of one pod. The gang planner adds up pods of several classes with them."""
        asked = pod.cached("NodeResourcesFit", lambda: self._asked(pod))
        return dict(zip(asked.names, asked.values, strict=True))

    def _has_capacity(self, pod: Pod, event: ClusterEvent) -> bool:
        return hints.node_has_capacity(self._ignores, pod, event)

    events_to_register = (
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, hints.pod_left),
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN, hints.pod_shrank),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE_POD_SCALE_DOWN),
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE, _has_capacity),
        ClusterEventWithHint(EventResource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE, hints.device_class_backs),
    )


@functools.lru_cache(maxsize=256)
def _insufficient(name: str, code: Code) -> Reason:
    return Reason(f"Insufficient {truncated(name)}", code)
