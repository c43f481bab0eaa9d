"""Determines which scheduler features a workload needs, from its operations and templates, and which of them we lack.

Feature gates say what kube-scheduler has to enable, not what is used. A workload with `DynamicResourceAllocation` whose
pods request plain resources does not need it. The created objects therefore decide.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kubenexus.api.codec import decode_pod
from kubenexus.api.quantity import to_milli
from kubenexus.api.resources import pod_requests
from kubenexus.config.catalogue import Catalogue
from kubenexus.framework.profile import Factory
from kubenexus.sim.perf import object_creation
from kubenexus.sim.perf.files import Case, PerfWorkload
from kubenexus.sim.perf.ops import (
    AnyOp,
    Barrier,
    Churn,
    CreateAny,
    CreateNodes,
    CreatePodGroups,
    CreatePods,
    CreatePodSets,
)
from kubenexus.sim.perf.params import Params
from kubenexus.sim.perf.template_cache import Item, TemplateCache

DEVICES = "resource.k8s.io"


class Feature(msgspec.Struct, frozen=True):
    """A feature of a scheduler. We have it if the named plugin is built; without a name, never."""

    name: str
    plugin: str = ""


CLAIMS = Feature("device claims", "DynamicResources")
GANGS = Feature("gang scheduling", "Coscheduling")
TOPOLOGY = Feature("topology-aware gangs", "Coscheduling")
PREEMPTION = Feature("preemption", "DefaultPreemption")
LISTS = Feature("attributes that are lists")  # off by default in Kubernetes
GROUPS = Feature("compatibility groups of devices")  # the same
STEADY = Feature("pods created in a steady state")


def missing(case: Case, workload: PerfWorkload, templates: TemplateCache, plugins: Mapping[str, Factory]) -> list[str]:
    """Returns the names of the features that this workload needs and we lack. Raises InvalidWorkload."""
    catalogue = Catalogue(plugins)
    found = needed(case, workload, templates)
    return [each.name for each in found if not each.plugin or not catalogue.is_built(each.plugin)]


def needed(case: Case, workload: PerfWorkload, templates: TemplateCache) -> list[Feature]:
    """Returns all features that this workload needs."""
    return list(dict.fromkeys(_Look(case, workload, templates).needs()))


def pod_count(op: CreatePods, params: Params) -> int:
    count = params.number(op.count, op.count_param)
    return count * params.number(None, op.count_multiplier_param, 1)


class _Look:
    """The analysis of one workload. Capacity and demand are in milli-CPUs.

    Preemption is needed if pods that must get a node have a higher priority than others that must, and not all fit.
    """

    def __init__(self, case: Case, workload: PerfWorkload, templates: TemplateCache) -> None:
        self._case, self._templates = case, templates
        self._params = Params(workload.params, f"{case.name}/{workload.name}")
        self._capacity = self._wanted = 0
        self._lowest: int | None = None
        self._outranked = False
        self._grouped = False  # pods name a group
        self._policies: list[Feature] = []  # what the groups require

    def needs(self) -> Iterator[Feature]:
        for index, op in enumerate(self._case.ops):
            yield from self._of(op, waited=_waited(self._case, index))
        if self._grouped:
            yield from self._policies
        if self._outranked and self._wanted > self._capacity:
            yield PREEMPTION

    def _of(self, op: AnyOp, *, waited: bool) -> Iterator[Feature]:
        if isinstance(op, CreateNodes):
            self._add_nodes(op)
        elif isinstance(op, CreateAny | CreatePodGroups):
            item = self._item(op.template_path, op.template_params)
            self._policies.extend(_of_group(item))
            yield from _of_object(item)
        elif isinstance(op, Churn):
            for path in op.template_paths:
                yield from _of_object(self._item(path, {}))
        elif isinstance(op, CreatePodSets):
            times = self._params.number(op.count, op.count_param)
            yield from self._of_pods(op.create_pods_op, times, waited=waited)
        elif isinstance(op, CreatePods):
            yield from self._of_pods(op, 1, waited=waited)

    def _of_pods(self, op: CreatePods, times: int, *, waited: bool) -> Iterator[Feature]:
        if self._params.truth(op.steady_state, op.steady_state_param):
            yield STEADY
        count, path = pod_count(op, self._params), op.pod_template_path or self._case.default_pod
        if not count or not path:
            return
        item = self._item(path, op.template_params, count)
        self._grouped |= "schedulingGroup" in (item.get("spec") or {})
        yield from _of_object(item)
        if waited:
            self._add_pods(item, count * times)

    def _add_nodes(self, op: CreateNodes) -> None:
        count = self._params.number(op.count, op.count_param)
        item = object_creation.base_node("")
        if op.node_template_path:
            item = self._item(op.node_template_path, op.template_params, count)
        status = item.get("status") or {}
        offered = status.get("allocatable") or status.get("capacity") or {}
        self._capacity += count * to_milli(offered.get("cpu", 0))

    def _add_pods(self, item: Item, count: int) -> None:
        pod = decode_pod(msgspec.json.encode({**item, "metadata": {"name": "p", "namespace": "n"}}))
        cpu = pod_requests(pod, status=False).get("cpu")
        self._wanted += count * (0 if cpu is None else cpu.milli())
        rank = (item.get("spec") or {}).get("priority") or 0
        self._outranked |= self._lowest is not None and rank > self._lowest
        self._lowest = rank if self._lowest is None else min(rank, self._lowest)

    def _item(self, path: str, params: dict[str, Any], count: int = 1) -> Item:
        return self._templates.item(self._case.path(path), self._params.template(params), 0, count)


def _of_object(item: Item) -> Iterator[Feature]:
    spec = item.get("spec") or {}
    if str(item.get("apiVersion", "")).startswith(DEVICES) or spec.get("resourceClaims"):
        yield CLAIMS
        for device in spec.get("devices") or () if item.get("kind") == "ResourceSlice" else ():
            if any(
                isinstance(held, list) for each in (device.get("attributes") or {}).values() for held in each.values()
            ):
                yield LISTS
            if any(each.get("compatibilityGroups") for each in device.get("consumesCounters") or ()):
                yield GROUPS


def _of_group(item: Item) -> Iterator[Feature]:
    spec = item.get("spec") or {}
    if "gang" in (spec.get("schedulingPolicy") or {}):
        yield GANGS
    if (spec.get("schedulingConstraints") or {}).get("topology"):
        yield TOPOLOGY


def _waited(case: Case, index: int) -> bool:
    """Whether the workload waits until these pods have nodes."""
    op = case.ops[index]
    skips = isinstance(op, CreatePods) and op.skip_wait_to_completion
    later = (each for each in case.ops[index:] if isinstance(each, Barrier))
    return not skips or any(each.stage_requirement == "Scheduled" for each in later)
