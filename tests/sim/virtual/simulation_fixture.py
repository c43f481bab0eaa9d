"""A small world, and how to put things into it."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from kubenexus.client import kinds, verbs
from kubenexus.client.kinds import ApiResource
from kubenexus.config import load
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.virtual.decisions import DecisionLog
from kubenexus.sim.virtual.loop import run
from kubenexus.sim.virtual.simulation import Simulation, SimulationOptions, run_scenario

T = TypeVar("T")
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
"""


def play(scenario: Callable[[Simulation], Awaitable[T]], log: DecisionLog | None = None, **laws: Any) -> T:
    """A scenario in a world of its own, whose nodes are ready."""

    async def whole() -> T:
        laws.setdefault("without", ("TaintNodesByCondition",))
        world = Simulation(load(CONFIGURATION, BUILT_IN), BUILT_IN, SimulationOptions(**laws), log or DecisionLog())
        return await run_scenario(world, scenario)

    return run(whole())


def create(world: Simulation, resource: ApiResource, item: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    answer = world.api.now(verbs.create(resource, item, namespace))
    assert answer.code == 201, answer.body
    return item


def add_node(world: Simulation, name: str, cpu: str = "4") -> None:
    capacity = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    create(world, kinds.NODES, {"metadata": {"name": name}, "status": {"capacity": capacity}})


def add_pod(world: Simulation, name: str = "", cpu: str = "1") -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    named = {"name": name} if name else {"generateName": "pod-"}
    create(world, kinds.PODS, {"metadata": named, "spec": {"containers": [container]}}, "default")


def placed(world: Simulation) -> dict[str, str]:
    """Where every pod is, as the API server has it."""
    return {key: entry.spec.node_name for key, entry in world.roll.pods.items()}
