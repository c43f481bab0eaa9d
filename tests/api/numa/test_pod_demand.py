"""What a pod asks of the managers: the same for pods of one template, and for no others."""

from pathlib import Path

import msgspec
import pytest

from kubenexus.api.core import Container, Pod, ResourceRequirements
from kubenexus.api.numa.pod_demand import MAX_CONTAINERS, MAX_LIMITS, PodDemand, numa_demand, pod_demand
from kubenexus.testing.numa_oracle.cases import recordings
from tests.api.numa.builders import GPU, a_numa_pod, guaranteed

DATA = Path(__file__).parents[2] / "numa_oracle" / "data"


def test_remembered_demands_are_those_of_the_pod() -> None:
    pods = [pod for _, entries in recordings([DATA]) for entry in entries for pod in entry.case.incoming]
    for pod in [*pods, *pods]:
        asked = pod_demand(pod)
        assert numa_demand(pod) == (asked if asked.cares else None)


GI = 1 << 30
INIT = guaranteed("init", "6", "4Gi")
SIDECAR = msgspec.structs.replace(INIT, restart_policy="Always")


def whole(pod: Pod) -> tuple[int, tuple[tuple[str, int], ...] | None]:
    found = numa_demand(pod) or PodDemand()
    return found.cpus, found.memory


@pytest.mark.parametrize(
    ("pod", "cpus", "memory"),
    [
        pytest.param(
            a_numa_pod(guaranteed("a", "2", "3Gi"), guaranteed("b", "3", "1Gi")), 5, 4, id="containers add up"
        ),
        pytest.param(a_numa_pod(guaranteed("a", "2", "3Gi"), init=[INIT]), 6, 4, id="or the largest init container"),
        pytest.param(a_numa_pod(guaranteed("a", "2", "3Gi"), sidecars=[INIT]), 8, 7, id="sidecars add up"),
        pytest.param(a_numa_pod(guaranteed("a", "2500m", "3Gi")), 0, 3, id="a fraction of a CPU is not pinned"),
    ],
)
def test_the_pod_as_a_whole(pod: Pod, cpus: int, memory: int) -> None:
    assert whole(pod) == (cpus, (("memory", memory * GI),))


def test_memory_that_is_no_whole_number_of_bytes_is_unreadable() -> None:
    assert whole(a_numa_pod(guaranteed("a", "2", "1500m"))) == (2, None)


def test_a_pod_that_is_not_guaranteed_asks_for_devices_only() -> None:
    limits = ResourceRequirements(requests={"cpu": "1", GPU: "2"}, limits={"cpu": "2", GPU: "2"})
    found = numa_demand(a_numa_pod(Container(name="a", resources=limits)))
    assert found is not None
    assert (found.cpus, found.memory, found.devices) == (0, (), ((GPU, 2),))


def test_pods_with_too_many_containers_are_not_predicted() -> None:
    containers = [guaranteed(f"c{number}") for number in range(MAX_CONTAINERS + 1)]
    assert numa_demand(a_numa_pod(*containers)) is None
    assert numa_demand(a_numa_pod(*containers[:-1])) is not None


def test_pods_with_too_many_limits_are_not_predicted() -> None:
    named: dict[str, str | int | float] = {f"example.com/r{number}": "1" for number in range(MAX_LIMITS // 2)}
    half = Container(name="a", resources=ResourceRequirements(limits=named))
    assert numa_demand(a_numa_pod(half, half)) is not None
    assert numa_demand(a_numa_pod(half, half, guaranteed("one-more"))) is None
