"""Reservations that the scheduler makes itself: for the first gang in the queue, and for the workers of drivers."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.classification.driver import is_driver
from kubenexus.api.codec import from_data
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.app.reservations.own_objects import GRACE, PERIOD
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.reservation_fixture import a_reservation
from tests.app.scheduler_fixture import CONFIG, SchedulerFixture, scheduler_test

OURS = {"app.kubernetes.io/managed-by": "kubenexus-scheduler"}
SPARK = CONFIG.replace(
    "{schedulerName: packing}",
    "{schedulerName: packing, pluginConfig: "
    "[{name: ResourceReservation, args: {namespaces: [spark], maxPercent: 50}}]}",
)
SIZES = {
    "kubenexus.io/executor-count": "2",
    "kubenexus.io/executor-cpu": "4",
    "kubenexus.io/executor-memory": "1Gi",
}
DRIVER = {"spark-role": "driver", "spark-app-selector": "app-1"}


def waiting(fixture: SchedulerFixture) -> list[tuple[str, str, Any]]:
    """The calls that wait to be sent: method, path and body."""
    patches = fixture.scheduler.own_reservations.status_patcher._latest.values()
    calls = [patch.call for patch in patches]
    return [(call.method, call.path.partition("/namespaces/")[2], msgspec.json.decode(call.body)) for call in calls]


def shown(fixture: SchedulerFixture) -> list[tuple[str, str, Any]]:
    fixture.scheduler.own_reservations.step()
    return waiting(fixture)


def served(fixture: SchedulerFixture) -> None:
    fixture.scheduler.own_reservations._served = lambda: True


def first_in_line(fixture: SchedulerFixture) -> None:
    """A gang that finds two of the three nodes it needs."""
    fixture.nodes(*(a_node(f"n{i}", cpu=2) for i in range(3)))
    fixture.pods(a_pod("runs", cpu=1, node="n0", restart_policy="Never"))
    fixture.pods(*(a_member(name, "llama", 3, cpu=2, scheduler_name="packing") for name in "abc"))


def test_what_the_first_gang_keeps_is_an_object_with_its_owner_and_without_a_finalizer() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        served(fixture)
        first_in_line(fixture)
        await fixture.work()
        ((method, path, body),) = shown(fixture)
        assert (method, path) == ("POST", "default/resourcereservations")
        meta, spec = body["metadata"], body["spec"]
        assert meta["name"] == "llama-reservation"
        assert meta["labels"] == OURS | {"pod-group": "llama"}
        assert [(each["kind"], each["name"]) for each in meta["ownerReferences"]] == [("Pod", "a")]
        assert "finalizers" not in meta
        assert (spec["podGroupName"], spec["minMember"]) == ("llama", 3)
        assert [each["resources"] for each in spec["reservations"].values()] == [{"cpu": "2000m"}] * 3

    scheduler_test(life)


def test_it_is_made_once_reported_on_and_deleted_when_the_gang_is_placed() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        served(fixture)
        first_in_line(fixture)
        await fixture.work()
        ((_, _, body),) = shown(fixture)
        fixture.clock.advance(PERIOD)
        assert len(shown(fixture)) == 1
        fixture.scheduler.own_reservations.status_patcher.cancel("create default/llama-reservation")
        made = from_data(body | {"metadata": body["metadata"] | {"uid": "u"}}, ResourceReservation)
        fixture.things(made)
        assert shown(fixture) == []
        report = fixture.scheduler.reservation_reporter._last["default/llama-reservation"][2]
        assert (report.phase, report.reason, report.owner) == ("Active", "FirstInLine", "gang llama of default")
        assert not fixture.ledger.reservations  # an object in a tenant's namespace keeps nothing by itself
        fixture.delete("default/runs")
        await fixture.work()
        assert sorted(fixture.where()) == ["a", "b", "c"]
        ((method, path, options),) = shown(fixture)
        assert (method, path) == ("DELETE", "default/resourcereservations/llama-reservation")
        assert options["preconditions"] == {"uid": "u"}

    scheduler_test(life)


def test_without_the_kind_nothing_is_written_and_the_gang_keeps_its_room_all_the_same() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        first_in_line(fixture)
        await fixture.work()
        assert shown(fixture) == []
        fixture.pods(a_pod("small", cpu=2, scheduler_name="packing"))
        await fixture.work()
        assert "small" not in fixture.where()

    scheduler_test(life)


def test_objects_of_an_earlier_process_stay_for_a_while_and_then_go_if_nothing_needs_them() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        served(fixture)
        fixture.nodes(a_node("n0", cpu=2))
        labels = OURS | {"pod-group": "gone"}
        fixture.things(a_reservation("gone-reservation", namespace="ml", labels=labels, resources={"cpu": 1}))
        fixture.things(a_reservation("users", namespace="ml", resources={"cpu": 1}))
        await fixture.work()
        assert shown(fixture) == []
        fixture.clock.advance(GRACE + 1)
        assert [(method, path) for method, path, _ in shown(fixture)] == [
            ("DELETE", "ml/resourcereservations/gone-reservation")
        ]

    scheduler_test(life)


# --- drivers -----------------------------------------------------------------------------------------------------


def spark_nodes(fixture: SchedulerFixture) -> None:
    fixture.nodes(*(a_node(f"n{i}", cpu=10, memory="32Gi") for i in range(2)))


def executor(name: str, namespace: str = "spark") -> Any:
    labels = {"spark-role": "executor", "spark-app-selector": "app-1"}
    return a_pod(name, namespace=namespace, cpu=4, memory="1Gi", labels=labels)


def test_a_driver_reserves_for_its_executors_before_they_exist() -> None:
    """RR-7: by what each of them will request, and not by what the driver does."""

    async def life(fixture: SchedulerFixture) -> None:
        served(fixture)
        spark_nodes(fixture)
        fixture.pods(a_pod("driver", namespace="spark", cpu=1, labels=DRIVER, annotations=SIZES))
        await fixture.work()
        record = fixture.ledger.reservations.by_key["spark/driver-reservation"]
        assert [dict(entry.amounts) for entry in record.entries.values()] == [{"cpu": 4000, "memory": 1 << 30}] * 2
        fixture.pods(*(a_pod(f"other-{i}", namespace="spark", cpu=6) for i in range(2)))
        await fixture.work()
        ((method, path, body),) = shown(fixture)
        assert (method, path) == ("POST", "spark/resourcereservations")
        assert body["metadata"]["ownerReferences"][0]["name"] == "driver"
        fixture.pods(executor("e0"), executor("e1"))
        await fixture.work()
        assert {"e0", "e1"} <= set(fixture.where())
        fixture.echo()
        fixture.clock.advance(2)
        await fixture.work()
        assert not fixture.ledger.reservations

    scheduler_test(life, config=SPARK)


@pytest.mark.parametrize("how", ["the driver is gone", "its time is over"])
def test_the_reservation_of_a_driver_ends(how: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        spark_nodes(fixture)
        fixture.pods(a_pod("driver", namespace="spark", cpu=1, labels=DRIVER, annotations=SIZES))
        await fixture.work()
        assert fixture.ledger.reservations
        if how == "the driver is gone":
            fixture.delete("spark/driver")
        else:
            fixture.clock.advance(601)
        fixture.scheduler.own_reservations.step()
        await fixture.work()
        assert not fixture.ledger.reservations

    scheduler_test(life, config=SPARK)


def test_the_next_process_goes_on_with_the_object_of_a_driver_and_deletes_it_in_the_end() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        served(fixture)
        spark_nodes(fixture)
        owner = {"podSelector": {"matchLabels": {"spark-app-selector": "app-1"}}}
        spec: dict[str, Any] = {"reservations": {"worker-0": {"cpu": 8}}, "owner": owner, "duration": "600s"}
        thing = a_reservation("driver-reservation", namespace="spark", labels=OURS, **spec)
        status = {"phase": "Active", "observedGeneration": 1, "nodes": {"worker-0": "n1"}}
        data = msgspec.json.decode(msgspec.json.encode(thing)) | {"status": status}
        fixture.things(from_data(data, ResourceReservation))
        await fixture.work()
        record = fixture.ledger.reservations.by_key["spark/driver-reservation"]
        assert [entry.node for entry in record.entries.values()] == ["n1"]
        fixture.clock.advance(GRACE + 1)
        assert shown(fixture) == []
        fixture.clock.advance(600)
        await fixture.work()
        assert not fixture.ledger.reservations
        assert [method for method, *_ in shown(fixture)] == ["DELETE"]

    scheduler_test(life, config=SPARK)


@pytest.mark.parametrize(
    ("namespace", "labels", "annotations"),
    [
        pytest.param("other", DRIVER, SIZES, id="in a namespace that may not reserve"),
        pytest.param("spark", DRIVER, {}, id="without sizes"),
        pytest.param("spark", {"spark-role": "driver"}, SIZES, id="without a label that its executors have, too"),
        pytest.param("spark", {**DRIVER, "spark-role": "executor"}, SIZES, id="which is no driver"),
        pytest.param("spark", DRIVER, {**SIZES, "kubenexus.io/executor-count": "1000"}, id="for more than the limit"),
    ],
)
def test_a_pod_for_which_nothing_is_reserved(namespace: str, labels: Any, annotations: Any) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        spark_nodes(fixture)
        fixture.pods(a_pod("driver", namespace=namespace, cpu=1, labels=labels, annotations=annotations))
        await fixture.work()
        assert "driver" in fixture.where()
        assert not fixture.ledger.reservations

    scheduler_test(life, config=SPARK)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"spark-role": "driver"}, True),
        ({"ray.io/node-type": "head"}, True),
        ({"training.kubeflow.org/replica-type": "Launcher"}, True),
        ({"training.kubeflow.org/replica-type": "master"}, True),
        ({"mpi-job-role": "launcher"}, True),
        ({"scheduling.kubenexus.io/role": "driver"}, True),
        ({"spark-role": "executor"}, False),
        ({"ray.io/node-type": "worker"}, False),
        ({}, False),
    ],
    ids=str,
)
def test_which_pods_are_drivers(labels: dict[str, str], expected: bool) -> None:
    assert is_driver(labels) is expected
