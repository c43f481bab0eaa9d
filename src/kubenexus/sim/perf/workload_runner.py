"""Executes a workload in a simulation, operation by operation, until all pods that must have a node have one."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec

from kubenexus.sim.perf import object_creation
from kubenexus.sim.perf.background_ops import BackgroundOps
from kubenexus.sim.perf.claim_allocation import allocation_calls
from kubenexus.sim.perf.files import Case, InvalidWorkload, PerfWorkload
from kubenexus.sim.perf.object_creation import ObjectCreator
from kubenexus.sim.perf.ops import (
    AllocResourceClaims,
    AnyOp,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePodGroups,
    CreatePods,
    CreatePodSets,
    DeletePods,
    Measure,
    Sleep,
    UpdateAny,
)
from kubenexus.sim.perf.params import Params
from kubenexus.sim.perf.required_features import pod_count
from kubenexus.sim.perf.template_cache import Item, TemplateCache
from kubenexus.sim.perf.waits import Waits
from kubenexus.sim.virtual.simulation import Simulation

AT_ONCE = 30  # concurrent creators, as in scheduler_perf


class WorkloadRunner:
    """Executes one workload, once."""

    def __init__(self, case: Case, workload: PerfWorkload, simulation: Simulation, templates: TemplateCache) -> None:
        self._case, self._workload, self._simulation, self._templates = case, workload, simulation, templates
        self._params = Params(workload.params, f"{case.name}/{workload.name}")
        self._make = ObjectCreator(simulation)
        self._background = BackgroundOps(simulation, self._make)
        self._paths: dict[str, Path] = {}
        self._pending: dict[str, list[str]] = {}  # pods that no operation has waited for yet, by namespace
        self.nodes = 0
        self.waits = Waits(simulation)
        self._play: dict[type[AnyOp], Callable[[Any, int], Coroutine[Any, Any, None]]] = {
            CreateNodes: self._create_nodes,
            CreateNamespaces: self._create_namespaces,
            CreatePods: self._create_pods,
            CreatePodSets: self._create_pod_sets,
            CreatePodGroups: self._create_any,
            CreateAny: self._create_any,
            UpdateAny: self._update_any,
            AllocResourceClaims: self._allocate_claims,
            DeletePods: self._delete_pods,
            Churn: self._churn,
            Barrier: self._barrier,
            Sleep: self._sleep,
            Measure: self._measure,
        }

    async def play(self) -> None:
        """Executes all operations in order; stops after a wait that timed out. Raises InvalidWorkload and
        CreateRejected."""
        try:
            for index, op in enumerate(self._case.ops):
                if type(op) not in self._play:
                    raise InvalidWorkload(f"{self._params.where}: {op.opcode} is not played here")
                await self._play[type(op)](op, index)
                if self.waits.problem:
                    return
        finally:
            await self._background.close()

    # ---- nodes and namespaces ----------------------------------------------------------------------------------------

    async def _create_nodes(self, op: CreateNodes, index: int) -> None:
        count = self._params.number(op.count, op.count_param)
        params = self._params.template(op.template_params)
        for number in range(count):
            item = object_creation.base_node(f"node-{index}-")
            if op.node_template_path:
                item = self._item(op.node_template_path, params, number, count)
            self._create_node(op, item, number)
            await self._pause(number)

    def _create_node(self, op: CreateNodes, item: Item, number: int) -> None:
        labels = {}
        if op.label_node_prepare_strategy is not None:
            values = op.label_node_prepare_strategy.label_values
            labels = {op.label_node_prepare_strategy.label_key: values[number % len(values)]}
        elif op.unique_node_label_strategy is not None:
            labels = {op.unique_node_label_strategy.label_key: f"{self.nodes}"}
        node, more = object_creation.named_node(item, self.nodes, labels), op.node_allocatable_strategy
        status = dict(node.get("status") or {})
        if more is not None:
            status["allocatable"] = {**(status.get("allocatable") or status.get("capacity") or {})}
            status["allocatable"] |= more.node_allocatable
        if declared := self._workload.params.get("numNodeDeclaredFeatures"):
            status["declaredFeatures"] = [f"Feature{each}" for each in range(1, declared + 1)]
        name = self._make.create({**node, "status": status})
        if more is not None:
            drivers = {driver: offer.count for driver, offer in more.csi_node_allocatable.items()}
            self._make.create(object_creation.csi_node(name, drivers, more.migrated_plugins))
        self.nodes += 1

    async def _create_namespaces(self, op: CreateNamespaces, _: int) -> None:
        item = None
        if op.namespace_template_path:
            item = self._item(op.namespace_template_path)
        for number in range(self._params.number(op.count, op.count_param)):
            self._make.namespace(f"{op.prefix}-{number}", item)

    # ---- pods --------------------------------------------------------------------------------------------------------

    async def _create_pods(self, op: CreatePods, index: int) -> None:
        namespace = op.namespace or f"namespace-{index}"
        self._make.namespace(namespace)
        made = await self._make_pods(op, namespace)
        if op.skip_wait_to_completion:
            self._pending.setdefault(namespace, []).extend(made)
        else:
            await self.waits.until_placed(made)

    async def _create_pod_sets(self, op: CreatePodSets, index: int) -> None:
        for number in range(self._params.number(op.count, op.count_param)):
            pods = msgspec.structs.replace(op.create_pods_op, namespace=f"{op.namespace_prefix}-{number}")
            await self._create_pods(pods, index)
            if self.waits.problem:
                return

    async def _make_pods(self, op: CreatePods, namespace: str) -> list[str]:
        """Creates the pods and returns their keys."""
        count, params = pod_count(op, self._params), self._params.template(op.template_params)
        path, made = op.pod_template_path or self._case.default_pod, []
        last: Item | None = None
        body = b""
        for number in range(count):
            item = self._item(path, params, number, count) if path else object_creation.base_pod()
            if op.persistent_volume_claim_template_path:
                item = self._with_volume(op, item, namespace, number)
            if item is not last:  # most templates create the same pod repeatedly: encoded once
                last, body = item, msgspec.json.encode(item)
            made.append(f"{namespace}/{self._make.post(self._make.kind(item), body, namespace)}")
            await self._pause(number)
        return made

    def _with_volume(self, op: CreatePods, pod: Item, namespace: str, number: int) -> Item:
        volume = self._item(op.persistent_volume_template_path)
        claim = self._item(op.persistent_volume_claim_template_path)
        volume, claim = object_creation.bound_volume(volume, claim, namespace, number)
        self._make.create(claim, namespace)
        self._make.update(claim, namespace, "status")
        self._make.create(volume)
        self._make.update(volume, "", "status")
        return object_creation.with_claim(pod, claim["metadata"]["name"])

    async def _delete_pods(self, op: DeletePods, _: int) -> None:
        keys = [key for key in self._simulation.tracker.pods if key.startswith(f"{op.namespace}/")]
        doing = self._background.delete(
            self._simulation.tracker.matching(keys, op.label_selector), op.delete_pods_per_second
        )
        if op.skip_wait_to_completion:
            self._background.start(doing)
        else:
            await doing

    # ---- other objects -----------------------------------------------------------------------------------------------

    async def _create_any(self, op: CreateAny | CreatePodGroups, _: int) -> None:
        if op.namespace:
            self._make.namespace(op.namespace)
        count, params = self._params.number(op.count, op.count_param, 1), self._params.template(op.template_params)
        for number in range(count):
            self._make.create(self._item(op.template_path, params, number, count), op.namespace or "default")
            await self._pause(number)

    async def _update_any(self, op: UpdateAny, _: int) -> None:
        count = self._params.number(op.count, op.count_param, 1)
        for number in range(count):
            if op.update_per_second:
                await asyncio.sleep(1 / op.update_per_second)
            item = self._item(op.template_path, {}, number, count)
            self._make.update(item, op.namespace, "/".join(op.subresources))
            self._make.update(item, op.namespace, "status")

    async def _allocate_claims(self, op: AllocResourceClaims, _: int) -> None:
        for call in allocation_calls(self._simulation.server.core.store, op.namespace, self._simulation.rng):
            self._make.send(call)
            await asyncio.sleep(0)

    async def _churn(self, op: Churn, index: int) -> None:
        namespace = op.namespace or f"namespace-{index}"
        self._make.namespace(namespace)
        items = [self._item(path) for path in op.template_paths]
        self._background.start(self._background.churn(op, items, namespace))

    # ---- waiting -----------------------------------------------------------------------------------------------------

    async def _barrier(self, op: Barrier, _: int) -> None:
        for namespace in op.namespaces or list(self._pending):
            keys = self._simulation.tracker.matching(self._pending.get(namespace, ()), op.label_selector)
            if op.stage_requirement == "Attempted":
                await self.waits.until_tried(keys)
            else:
                await self.waits.until_placed(keys)
                self._pending.pop(namespace, None)
            if self.waits.problem:
                return

    async def _sleep(self, op: Sleep, _: int) -> None:
        await asyncio.sleep(self._params.seconds(op.duration, op.duration_param))

    async def _measure(self, op: Measure, _: int) -> None:
        """Does nothing: time is virtual."""

    async def _pause(self, number: int) -> None:
        """Waits for the latency after each `AT_ONCE` objects."""
        if number % AT_ONCE == AT_ONCE - 1:
            await asyncio.sleep(self._simulation.options.latency)

    def _item(self, path: str, params: dict[str, Any] | None = None, number: int = 0, count: int = 1) -> Item:
        found = self._paths.get(path)
        if found is None:
            found = self._paths[path] = self._case.path(path)
        return self._templates.item(found, params, number, count)
