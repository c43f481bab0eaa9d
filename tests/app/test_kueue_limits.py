"""Limits of queues beside Kueue: only what Kueue admitted goes past them, each pod once and no larger."""

import pytest

from kubenexus.api.core import Pod
from kubenexus.testing.builders import a_node
from tests.app.kueue_objects import a_workload, pods_of
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.app.test_kueue import sees
from tests.app.test_queues import a_queue, queues

GANG = "pod-group.scheduling.kubenexus.io/name"
LEAST = "pod-group.scheduling.kubenexus.io/min-available"


def gang_of(name: str) -> list[Pod]:
    return pods_of("w", 2, "a", name=name, labels={GANG: name, LEAST: "2"})


@pytest.mark.parametrize(
    ("admitted", "pods", "placed"),
    [
        pytest.param(1, pods_of("w", 8, "a"), 2, id="more single pods than were admitted"),
        pytest.param(2, [*gang_of("x"), *gang_of("y"), *gang_of("z")], 2, id="several gangs that name one Workload"),
        pytest.param(
            8,
            pods_of("w", 8, "a", annotations={"kueue.x-k8s.io/workload-slice-name": "w"}),
            8,
            id="an elastic job with as many pods as were admitted",
        ),
        pytest.param(
            3,
            pods_of("w", 8, "a", annotations={"kueue.x-k8s.io/workload-slice-name": "w"}),
            3,
            id="and with more of them",
        ),
        pytest.param(1, pods_of("w", 1, "a", cpu="5"), 0, id="a pod that asks for more than was admitted"),
        pytest.param(2, pods_of("w", 2, "a", cpu="5"), 0, id="and a gang that does"),
    ],
)
def test_what_goes_past_a_limit_is_what_kueue_admitted(admitted: int, pods: list[Pod], placed: int) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu="10"))
        queues(fixture, a_queue("ml", limit={"cpu": 2}, namespaces=["a"]))
        sees(fixture, a_workload("w", admitted, namespace="a"))
        fixture.pods(*pods)
        await fixture.work()
        assert len(fixture.bound()) == placed

    scheduler_test(life)
