"""Kueue admits, the scheduler places: what is admitted is a gang, and what is not waits."""

import pytest

from kubenexus.api.gangs.declaration import KUEUE_WORKLOAD
from kubenexus.api.gangs.resolver import declared_gang
from kubenexus.api.kueue import KueueWorkload
from kubenexus.testing.builders import a_node, a_pod
from tests.app.kueue_objects import WORKLOAD, a_workload, pods_of
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.app.test_queues import a_queue, queues

GATES = ["kueue.x-k8s.io/admission"]


def sees(fixture: SchedulerFixture, workload: KueueWorkload) -> None:
    fixture.handlers.objects.on_update(KUEUE_WORKLOAD, workload)
    fixture.handlers.assembler.build_changed()


@pytest.mark.parametrize(
    ("workload", "cpus", "placed"),
    [
        pytest.param(a_workload("w", 4), 4, 4, id="all pods of an admitted Workload start together"),
        pytest.param(a_workload("w", 4), 3, 0, id="none starts if they do not all fit"),
        pytest.param(a_workload("w", 1, 3), 3, 0, id="pod sets of a Workload are one gang"),
        pytest.param(a_workload("w", 2), 3, 3, id="of more pods than admitted as many start as fit"),
        pytest.param(a_workload("w", 6), 9, 0, id="the gang waits for the pods that do not exist yet"),
        pytest.param(a_workload("w", 6, ended={"s0": 2}), 9, 4, id="but not for those that ended and are not replaced"),
        pytest.param(a_workload("w", 4, admitted=False), 9, 0, id="nothing starts before Kueue admits it"),
    ],
)
def test_an_admitted_workload_is_placed_as_a_whole(workload: KueueWorkload, cpus: int, placed: int) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(cpus)))
        sees(fixture, workload)
        fixture.pods(*pods_of("w", 4))
        await fixture.work()
        assert len(fixture.bound()) == placed

    scheduler_test(life)


def test_pods_that_are_seen_before_their_workload_wait_for_it() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        fixture.pods(*pods_of("w", 2))
        await fixture.work()
        assert fixture.bound() == {}
        sees(fixture, a_workload("w", 2, admitted=False))
        await fixture.work()
        assert fixture.bound() == {}
        sees(fixture, a_workload("w", 2))
        await fixture.work()
        assert set(fixture.bound()) == {"w-0", "w-1"}

    scheduler_test(life)


def test_gated_pods_are_left_alone_until_the_last_gate_of_their_workload_is_open() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        sees(fixture, a_workload("w", 3))
        closed = pods_of("w", 3, gates=["kueue.x-k8s.io/topology"])
        open_ = pods_of("w", 3)
        fixture.pods(*closed[:1], *open_[1:])
        await fixture.work()
        assert fixture.bound() == {}
        fixture.pods(open_[0])
        await fixture.work()
        assert len(fixture.bound()) == 3

    scheduler_test(life)


def test_without_kueue_the_annotation_means_nothing() -> None:
    """Kueue was removed, and a template still has what it wrote: the kind cannot be listed."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        fixture.handlers.objects.unlisted(KUEUE_WORKLOAD)
        fixture.pods(*pods_of("w", 2))
        await fixture.work()
        assert set(fixture.bound()) == {"w-0", "w-1"}

    scheduler_test(life)


@pytest.mark.parametrize(
    "note",
    [
        pytest.param({"kueue.x-k8s.io/workload-slice-name": "w"}, id="an elastic job may change its size at any time"),
        pytest.param({"kueue.x-k8s.io/pod-group-serving": "true"}, id="pods of a server come one after the other"),
    ],
)
def test_what_is_no_gang(note: dict[str, str]) -> None:
    labels = {"kueue.x-k8s.io/pod-group-name": "w"}
    notes = {WORKLOAD: "w", "kueue.x-k8s.io/pod-group-total-count": "3"} if "serving" in str(note) else {WORKLOAD: "w"}
    assert declared_gang(a_pod("a", labels=labels if "serving" in str(note) else {}, annotations=notes | note)) is None


def test_a_group_of_plain_pods_is_the_same_gang_before_and_after_kueue_writes_its_workload_on_it() -> None:
    labels, notes = {"kueue.x-k8s.io/pod-group-name": "w"}, {"kueue.x-k8s.io/pod-group-total-count": "3"}
    before = declared_gang(a_pod("a", labels=labels, annotations=notes))
    after = declared_gang(a_pod("a", labels=labels, annotations={**notes, WORKLOAD: "w"}))
    alone = declared_gang(a_pod("a", annotations={WORKLOAD: "w"}))
    assert before is not None
    assert after is not None
    assert alone is not None
    assert before.key == after.key == alone.key == "default/kueue/w"
    assert (before.minimum, after.minimum, after.warnings) == (3, 3, ())


def test_the_domains_that_kueue_assigned_count_and_not_the_request_for_them() -> None:
    """Two pod sets, each within a rack: together they need two racks, which one gang in one rack would not get."""

    async def life(fixture: SchedulerFixture) -> None:
        for rack in ("a", "b"):
            fixture.nodes(*(a_node(f"{rack}{i}", cpu=1, labels={"rack": rack}) for i in range(2)))
        sees(fixture, a_workload("w", 2, 2))
        asks = {"kueue.x-k8s.io/podset-required-topology": "rack"}
        for rack in ("a", "b"):
            fixture.pods(*pods_of("w", 2, name=rack, annotations=asks, selects={"rack": rack}))
        await fixture.work()
        assert {pod: node[0] for pod, node in fixture.where().items()} == {
            "a-0": "a",
            "a-1": "a",
            "b-0": "b",
            "b-1": "b",
        }

    scheduler_test(life)


# --- queues of our own ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "pods", "placed"),
    [
        pytest.param(a_workload("w", 4, namespace="a"), 4, 4, id="what Kueue admitted is not refused by a limit"),
        pytest.param(None, 4, 2, id="what it does not know is"),
        pytest.param(a_workload("w", 2, namespace="a"), 4, 0, id="and so is a job with more pods than it admitted"),
    ],
)
def test_limits_stand_aside_for_kueue(workload: KueueWorkload | None, pods: int, placed: int) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu="10"))
        queues(fixture, a_queue("ml", limit={"cpu": 2}, namespaces=["a"]))
        if workload is None:
            fixture.pods(*(a_pod(f"p{i}", namespace="a", cpu="1") for i in range(pods)))
        else:
            sees(fixture, workload)
            fixture.pods(*pods_of("w", pods, "a"))
        await fixture.work()
        assert len(fixture.bound()) == placed

    scheduler_test(life)


def test_a_group_of_plain_pods_is_tried_once_kueue_is_seen_to_have_admitted_it() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu="10"))
        queues(fixture, a_queue("ml", limit={"cpu": 2}, namespaces=["a"]))
        notes, labels = {"kueue.x-k8s.io/pod-group-total-count": "4"}, {"kueue.x-k8s.io/pod-group-name": "w"}
        fixture.pods(*pods_of("w", 4, "a", annotations=notes, labels=labels))
        await fixture.work()
        assert fixture.bound() == {}
        sees(fixture, a_workload("w", 4, namespace="a"))
        await fixture.work()
        assert len(fixture.bound()) == 4

    scheduler_test(life)
