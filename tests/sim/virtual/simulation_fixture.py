"""A small simulation, and functions that create objects in it."""

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


def play(scenario: Callable[[Simulation], Awaitable[T]], log: DecisionLog | None = None, **options: Any) -> T:
    """Runs a scenario in a simulation of its own, whose nodes are ready."""

    async def whole() -> T:
        options.setdefault("without", ("TaintNodesByCondition",))
        simulation = Simulation(
            load(CONFIGURATION, BUILT_IN), BUILT_IN, SimulationOptions(**options), log or DecisionLog()
        )
        return await run_scenario(simulation, scenario)

    return run(whole())


def create(simulation: Simulation, resource: ApiResource, item: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    answer = simulation.api.now(verbs.create(resource, item, namespace))
    assert answer.code == 201, answer.body
    return item


def add_node(simulation: Simulation, name: str, cpu: str = "4") -> None:
    capacity = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    create(simulation, kinds.NODES, {"metadata": {"name": name}, "status": {"capacity": capacity}})


def add_pod(simulation: Simulation, name: str = "", cpu: str = "1") -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    named = {"name": name} if name else {"generateName": "pod-"}
    create(simulation, kinds.PODS, {"metadata": named, "spec": {"containers": [container]}}, "default")


def placed(simulation: Simulation) -> dict[str, str]:
    """Where every pod is, as the API server has it."""
    return {key: entry.spec.node_name for key, entry in simulation.tracker.pods.items()}
