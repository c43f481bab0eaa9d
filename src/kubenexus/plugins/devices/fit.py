"""DeviceFit: rejects nodes without enough free devices, and names the devices that a pod gets.

A pod asks for devices by number (`nvidia.com/gpu: 4`), or for a part of a GPU by annotation (`gpu-fraction`,
`gpu-memory`), which only nodes give that share their GPUs. NodeResourcesFit counts the numbers. This plugin counts the
cards behind them: parts that other pods hold, cards that are unhealthy, and pods that another scheduler placed.

The devices that it names travel with the bind. Where the kubelet's device plugin picks the card, they are a plan; where
the pod takes a part, they are what it gets (docs/devices.md).
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.devices.device import NodeDevices
from kubenexus.base.arrays import any_true
from kubenexus.framework.extension_points import Depends, Plugin
from kubenexus.framework.job import NO_ASSIGNMENT, Assignment
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, Verdict
from kubenexus.plugins.devices.capacity import CountsDevices, unnamed_cards
from kubenexus.plugins.devices.combined import CombinedDeviceRule
from kubenexus.plugins.devices.fragmentation import ResourceFragmentationScore
from kubenexus.plugins.devices.hints import DEVICE_EVENTS
from kubenexus.plugins.devices.naming import NO_PART, name_parts, name_whole
from kubenexus.plugins.devices.need_text import is_only_a_number, need_text
from kubenexus.plugins.devices.request import FIT, DeviceRequest, available, needs_of, requests_of, suitable
from kubenexus.plugins.devices.shared_columns import largest_part, largest_part_of_row, units_to_take
from kubenexus.plugins.devices.topology import GPUTopology
from kubenexus.state.devices.columns import Hardware, RowDevices
from kubenexus.state.devices.one_node import OneNodeDevices
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

NOT_SHARED: Final = Reason("node(s) didn't share their GPUs", Code.UNRESOLVABLE)
TOO_SMALL: Final = Reason("node(s) didn't have a GPU with so much memory to share", Code.UNRESOLVABLE)
NO_DEVICE: Final = Reason("node(s) didn't have enough free devices")
_MAX_SETS: Final = 4096  # choices of devices that are kept for gangs: members on equal nodes get the same


class _Choice(NamedTuple):
    """What members get on equal nodes. It holds what it is found by, so that no other object gets their identity."""

    machine: Hardware | NodeDevices
    requests: tuple[DeviceRequest, ...]
    assignments: list[Assignment]


class DeviceFit(CountsDevices):
    name = FIT
    reads = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources")
    depends = Depends.USAGE
    supports_one_node = True
    signs_template = True

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._sets: dict[Any, _Choice] = {}

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        signed = needs_of(pod)
        if signed is None:
            return None
        needs = signed.needs
        part = (needs.share, needs.share_memory)
        return (*part, needs.part_problem) if needs.part_problem else part if any(part) else ()

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Verdict | None:
        problem = (pod.signed.get(FIT) or (0, 0))[2:]
        return Verdict(Code.UNRESOLVABLE, tuple(problem)) if problem else None

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        for request in requests_of(pod):
            if request.is_part:
                self._filter_part(request, nodes, verdict)
            else:
                self._filter_whole(request, nodes, verdict)

    def _filter_whole(self, request: DeviceRequest, nodes: Nodes, verdict: NodeVerdict) -> None:
        """Rejects rows where the kubelet has the number free, but not on cards that are. Under time slicing a pod may
        get several replicas of one card, so replicas are counted."""
        if isinstance(nodes, OneNode):
            verdict.reject(nodes.devices.units_to_take(request.resource) < request.number, NO_DEVICE)
        else:
            verdict.reject(units_to_take(request.resource, nodes) < request.number, NO_DEVICE)

    def _filter_part(self, request: DeviceRequest, nodes: Nodes, verdict: NodeVerdict) -> None:
        if isinstance(nodes, OneNode):
            if request.is_plain_part and largest_part_of_row(request.resource, nodes) >= request.share:
                return
            reason = self._lacking_part(request, nodes.devices)
            if reason is not None:
                verdict.reject(True, reason)
            return
        if request.is_plain_part:
            lacking = largest_part(request.resource, nodes) < request.share
        else:
            sets = nodes.devices
            lacking = sets.count(available(request, sets)) - unnamed_cards(request, sets) < request.number
        if not any_true(lacking):
            return
        shared, large = self._giving_parts(request, nodes)
        taken = lacking & large
        verdict.reject(taken, NO_PART)
        if np.count_nonzero(taken) != np.count_nonzero(lacking):
            verdict.reject(~shared, NOT_SHARED)
            verdict.reject(lacking & shared & ~large, TOO_SMALL)

    @staticmethod
    def _giving_parts(request: DeviceRequest, nodes: Nodes) -> Any:
        """Returns the rows that share their devices, and those of them that could serve the part if nothing were
        taken."""

        def of(view: Nodes) -> Any:
            sets = view.devices
            large = sets.count(sets.offered(request.resource) & sets.with_usable(request.memory)) >= request.number
            return sets.shared.copy(), sets.shared & large

        if not request.is_plain_part:
            return of(nodes)
        columns = nodes.columns
        shared, large = columns.cached_until_node_change(
            ("devices of parts", request.resource, request.number), lambda: of(Nodes(columns))
        )
        return (shared, large) if nodes.rows is None else (shared[nodes.rows], large[nodes.rows])

    @staticmethod
    def _lacking_part(request: DeviceRequest, sets: OneNodeDevices) -> Reason | None:
        """The same for one row."""
        if not sets.shared:
            return NOT_SHARED
        if sets.count(available(request, sets)) - unnamed_cards(request, sets) >= request.number:
            return None
        large = sets.offered(request.resource) & sets.with_usable(request.memory)
        return NO_PART if large.bit_count() >= request.number else TOO_SMALL

    def combine(self, others: Mapping[str, Plugin]) -> CombinedDeviceRule:
        topology, fragmentation = others.get(GPUTopology.name), others.get(ResourceFragmentationScore.name)
        return CombinedDeviceRule(
            self,
            topology if isinstance(topology, GPUTopology) else None,
            fragmentation if isinstance(fragmentation, ResourceFragmentationScore) else None,
        )

    # --- names ----------------------------------------------------------------------------------------------------

    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        found = self.assign_members(pod, row, nodes, 1)
        return found if isinstance(found, Verdict) else found[0]

    def assign_members(self, pod: PodClass, row: int, nodes: Nodes, members: int) -> list[Assignment] | Verdict:
        """Returns the devices of several members on one row, none of them twice."""
        columns, requests = nodes.columns.devices, requests_of(pod)
        here = columns.rows.get(row)
        if here is None or not requests:
            return [NO_ASSIGNMENT] * members
        # A hit makes no `OneNodeDevices`: 2 us instead of 5.
        machine: Hardware | NodeDevices = here.node
        if requests[0].is_part or here.hardware.sliced:
            # Nodes with equal labels share one `NodeDevices`: a gang on thousands of them takes a lookup for each.
            key: Any = (id(machine), id(requests), columns.left(row), members)
            known = self._sets.get(key)
            return self._name_parts(requests, here, nodes, row, members, key) if known is None else known.assignments
        if requests[0].is_plain:
            machine = here.hardware
        key = (id(machine), id(requests), columns.free.item(row), members)
        known = self._sets.get(key)
        if known is not None:
            return known.assignments
        sets = OneNodeDevices(nodes.columns, row)
        free = tuple(available(request, sets) for request in requests)
        could = tuple(suitable(request, sets) for request in requests)
        more = self._beyond_known(requests, free, members, sets)
        found = name_whole(requests, here.layout, free, could, members, more=more)
        if isinstance(found, Verdict):
            return found
        # What is beyond the known devices depends on what other pods use of the resource, so it is not kept.
        return found if more is not None else self._keep(key, _Choice(machine, requests, found)).assignments

    def _name_parts(
        self, requests: tuple[DeviceRequest, ...], here: RowDevices, nodes: Nodes, row: int, members: int, key: Any
    ) -> list[Assignment] | Verdict:
        found = name_parts(requests, here, OneNodeDevices(nodes.columns, row), members)
        if isinstance(found, Verdict):
            return found
        return self._keep(key, _Choice(here.node, requests, found)).assignments

    def _keep(self, key: Any, choice: _Choice) -> _Choice:
        if len(self._sets) >= _MAX_SETS:
            self._sets.clear()
        self._sets[key] = choice
        return choice

    def node_need(self, pod: PodClass) -> str:
        requests = requests_of(pod)
        return "" if all(is_only_a_number(request) for request in requests) else need_text(requests)

    @staticmethod
    def _beyond_known(
        requests: tuple[DeviceRequest, ...], free: tuple[int, ...], members: int, sets: OneNodeDevices
    ) -> tuple[bool, ...] | None:
        """Returns for each request whether the kubelet offers more devices than are known; None if none needs them."""
        if all([left.bit_count() >= members * each.number for each, left in zip(requests, free, strict=True)]):  # noqa: C419
            return None
        return tuple(not request.joined and sets.unnamed(request.resource) < 0 for request in requests)

    events_to_register = DEVICE_EVENTS
