"""Pods come one by one, gangs wait whole: the gate, who counts, and what becomes of a gang that changes."""

from collections.abc import Callable

import msgspec
import pytest

from kubenexus.api.core import Pod, SchedulingGroup
from kubenexus.api.gangs.claim import POD_GROUP, Nearness
from kubenexus.queue.entry import Place
from kubenexus.testing.builders import a_pod
from tests.api.gangs.small import LEAST, NAME, a_member, pod_group
from tests.queue.hall import Hall, names, short, turned

GANG = "gang/llama"


@pytest.fixture
def hall() -> Hall:
    return Hall()


# --- the gate -----------------------------------------------------------------------------------------------------


def test_a_gang_is_not_tried_before_it_is_there(hall: Hall) -> None:
    hall.waits(*(a_member(f"m{i}", least=3) for i in range(2)))
    assert hall.place(GANG) is Place.GATED
    assert hall.why(GANG) == short("llama", 2, 3)
    assert hall.room.pop() is None
    hall.waits(a_member("m2", least=3))
    assert hall.place(GANG) is Place.ACTIVE
    turn = turned(hall)
    assert (names(turn.job), turn.job.minimum) == (["m0", "m1", "m2"], 3)


def test_members_in_two_namespaces_are_two_gangs(hall: Hall) -> None:
    hall.waits(a_member("m", least=2, namespace="a"), a_member("m", least=2, namespace="b"))
    hall.assembly.flush()
    assert hall.room.gate("a/gang/llama") is not None
    assert hall.room.gate("b/gang/llama") is not None
    assert hall.room.pop() is None


def test_members_behind_gates_are_not_there_and_wait_as_one_entry(hall: Hall) -> None:
    hall.waits(a_member("m0"), *(a_member(f"g{i}", gates=["kueue"]) for i in range(5)))
    assert hall.why(GANG) == short("llama", 1, 2)
    assert names(hall.job(f"{GANG}+gated")) == [f"g{i}" for i in range(5)]
    assert len(hall.room) == 2
    hall.waits(a_member("g3"))
    assert names(hall.job(GANG)) == ["g3", "m0"]
    assert hall.place(GANG) is Place.ACTIVE


def test_a_member_on_its_way_out_is_not_there(hall: Hall) -> None:
    hall.waits(a_member("m0"), a_member("m1"))
    assert hall.place(GANG) is Place.ACTIVE
    hall.gone("m1")
    assert hall.why(GANG) == short("llama", 1, 2)


def test_ten_thousand_members_are_one_entry_built_once_a_batch(hall: Hall) -> None:
    for batch in range(20):
        hall.waits(*(a_member(f"m{batch * 500 + i}", least=10_000) for i in range(500)))
        hall.assembly.flush()
    assert len(hall.room) == 1
    assert hall.assembly.formations == 20
    turn = turned(hall)
    assert len(turn.job.pods) == turn.job.minimum == 10_000
    assert hall.assembly.formations == 20, "a turn alone builds nothing"


def test_what_is_written_about_members_does_not_build_them_anew(hall: Hall) -> None:
    """We say to each why it waits, and hear of it."""
    hall.waits(*(a_member(f"m{i}", least=9) for i in range(5)))
    hall.assembly.flush()
    before = hall.assembly.formations
    told = {"conditions": [], "phase": ""}
    for i in range(5):
        hall.waits(a_member(f"m{i}", least=9, status=told))
    hall.assembly.flush()
    assert hall.assembly.formations == before


def test_the_pod_as_it_was_last_seen(hall: Hall) -> None:
    pod = a_member("m0")
    hall.waits(pod)
    newer = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, resource_version="7"))
    hall.waits(newer)
    assert hall.assembly.latest(pod) is newer
    plain = a_pod("web")
    assert hall.assembly.latest(plain) is plain


# --- malformed ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0", "-1", "abc", "99999999999"])
def test_a_malformed_minimum_keeps_the_pod_with_a_reason_that_names_the_key(hall: Hall, value: str) -> None:
    hall.waits(a_member("m0", least=value))
    assert hall.place("m0") is Place.GATED
    assert hall.why("m0") == f"label {LEAST}: must be a whole number from 1, not {value!r}"
    assert hall.room.pop() is None
    hall.waits(a_member("m0", least=1))
    assert hall.place("m0") is Place.ACTIVE, "and it goes on when that is put right"


def test_a_malformed_group_keeps_its_members(hall: Hall) -> None:
    hall.waits(in_group("m0"))
    hall.group(pod_group("llama", -3))
    where = "PodGroup.scheduling.k8s.io default/llama: spec.schedulingPolicy.gang.minCount"
    assert hall.why("podgroup/llama") == f"{where}: must be a whole number from 1, not -3"


# --- objects ------------------------------------------------------------------------------------------------------


def in_group(name: str) -> Pod:
    return a_pod(name, scheduling_group=SchedulingGroup(pod_group_name="llama"))


def test_f03_pods_before_their_group_wait_for_it(hall: Hall) -> None:
    hall.waits(*(in_group(f"m{i}") for i in range(3)))
    assert hall.why("podgroup/llama") == "waiting for PodGroup.scheduling.k8s.io default/llama to appear"
    assert hall.room.pop() is None
    hall.group(pod_group("llama", 4))
    assert hall.why("podgroup/llama") == short("llama", 3, 4)
    assert hall.room.pop() is None


def test_a_group_that_asks_for_less_lets_them_go(hall: Hall) -> None:
    hall.waits(*(in_group(f"m{i}") for i in range(3)))
    hall.group(pod_group("llama", 4))
    hall.group(pod_group("llama", 3, "topology.kubernetes.io/rack"))
    turn = turned(hall)
    assert turn.job.minimum == 3
    assert turn.job.topology == Nearness(required="topology.kubernetes.io/rack")


def test_a_group_that_is_deleted_is_waited_for_again(hall: Hall) -> None:
    hall.waits(in_group("m0"), in_group("m1"))
    hall.group(pod_group("llama", 2))
    assert hall.place("podgroup/llama") is Place.ACTIVE
    hall.groups.gone(POD_GROUP, "default/llama")
    hall.assembly.group_changed(POD_GROUP, "default/llama")
    assert hall.place("podgroup/llama") is Place.GATED


def test_members_of_a_basic_group_go_each_by_itself(hall: Hall) -> None:
    hall.group(pod_group("llama"))
    hall.waits(in_group("m0"), in_group("m1"))
    hall.assembly.flush()
    assert {turned(hall).job.key, turned(hall).job.key} == {"default/m0", "default/m1"}


# --- who is there already -----------------------------------------------------------------------------------------


def test_members_beyond_the_minimum_join_a_running_gang(hall: Hall) -> None:
    for i in range(3):
        hall.bound(a_member(f"m{i}"), f"n{i}")
    hall.waits(a_member("m3"), a_member("m4"))
    job = hall.job(GANG)
    assert job is not None
    assert (names(job), job.minimum, job.anchors) == (["m3", "m4"], 1, ("n0", "n1", "n2"))


def test_a_restart_in_the_middle_of_a_gang_asks_for_the_rest_of_it(hall: Hall) -> None:
    hall.bound(a_member("m0", least=4), "n0")
    hall.waits(*(a_member(f"m{i}", least=4) for i in range(1, 4)))
    job = hall.job(GANG)
    assert job is not None
    assert (job.minimum, job.anchors) == (3, ("n0",))


def test_a_gang_that_lost_a_member_waits_for_as_many_as_it_needs(hall: Hall) -> None:
    for i in range(3):
        hall.bound(a_member(f"m{i}", least=3))
    hall.gone("m0", "m1")
    hall.waits(a_member("m0", least=3, uid="another"))
    assert hall.why(GANG) == short("llama", 2, 3)


def test_members_that_found_no_place_wait_on_beside_the_others(hall: Hall) -> None:
    hall.waits(*(a_member(f"m{i}", least=2) for i in range(4)))
    turn = turned(hall)
    hall.land(turn, hall.assume(turn, most=3))
    job = hall.job(GANG)
    assert job is not None
    assert (names(job), job.minimum, job.anchors) == (["m3"], 1, ("n-m0", "n-m1", "n-m2"))


def test_f08_members_whose_bind_failed_are_tried_again_and_nobody_is_forgotten(hall: Hall) -> None:
    hall.waits(*(a_member(f"m{i}", least=4) for i in range(4)))
    turn = turned(hall)
    hall.land(turn, hall.assume(turn), failed=("m1", "m3"))
    job = hall.job(GANG)
    assert job is not None
    assert (names(job), job.minimum, job.anchors) == (["m1", "m3"], 2, ("n-m0", "n-m2"))
    again = turned(hall)
    assert names(again.job) == ["m1", "m3"]
    hall.land(again, hall.assume(again))
    assert hall.place(GANG) is Place.GONE


def test_f29_when_all_binds_fail_the_gang_is_whole_again_after_a_backoff(hall: Hall) -> None:
    hall.waits(a_member("m0"), a_member("m1"))
    turn = turned(hall)
    hall.land(turn, hall.assume(turn), failed=("m0", "m1"))
    assert hall.place(GANG) is Place.BACKOFF
    hall.clock.advance(2.0)
    again = turned(hall)
    assert (names(again.job), again.job.minimum, again.attempt) == (["m0", "m1"], 2, 2)


def test_f09_a_member_deleted_between_its_decision_and_its_bind_does_not_count(hall: Hall) -> None:
    hall.waits(*(a_member(f"m{i}", least=3) for i in range(3)))
    turn = turned(hall)
    seated = hall.assume(turn)
    hall.gone("m1")
    hall.waits(a_member("m1", least=3, uid="another"))
    hall.assembly.flush()
    assert hall.place(GANG) is Place.IN_FLIGHT, "what is on its way is left alone"
    hall.land(turn, seated)
    job = hall.job(GANG)
    assert job is not None
    assert ([pod.metadata.uid for pod in job.pods], job.minimum, len(job.anchors)) == (["another"], 1, 2)


def test_f30_a_gang_that_is_deleted_at_any_step_leaves_nothing_behind(hall: Hall) -> None:
    for step in ("waits", "in flight", "landed"):
        hall.waits(a_member("m0"), a_member("m1"))
        hall.assembly.flush()
        turn = None if step == "waits" else turned(hall)
        seated = [] if turn is None else hall.assume(turn)
        if turn is not None and step == "landed":
            hall.land(turn, seated)
        hall.gone("m0", "m1")
        if turn is not None and step == "in flight":
            hall.land(turn, seated, failed=("m0", "m1"))
        hall.assembly.flush()
        assert len(hall.room) == 0
        roll = hall.assembly.roll
        assert (roll.members, roll.rosters, roll._named) == ({}, {}, {})
        assert not hall.assembly._held


def test_a_gang_that_takes_the_name_of_one_that_is_gone_starts_afresh(hall: Hall) -> None:
    hall.waits(a_member("m0"), a_member("m1"), since=5.0)
    for _ in range(3):
        hall.easy.refuse("Room", turn=turned(hall))
        hall.clock.advance(400.0)
    hall.gone("m0", "m1")
    hall.waits(a_member("m0", uid="x"), a_member("m1", uid="y"), since=90.0)
    turn = turned(hall)
    assert (turn.attempt, turn.since) == (1, 90.0)


def test_a_gang_counts_its_own_attempts(hall: Hall) -> None:
    hall.waits(a_member("m0"), a_member("m1"))
    for attempt in (1, 2, 3):
        turn = turned(hall)
        assert turn.attempt == attempt
        hall.easy.refuse("Room", turn=turn)
        hall.clock.advance(400.0)
    assert hall.room.attempts(f"default/{GANG}") == 3


# --- order --------------------------------------------------------------------------------------------------------


def test_a_gang_is_as_old_as_its_oldest_member(hall: Hall) -> None:
    hall.waits(a_pod("web"), since=20.0)
    hall.waits(a_member("m0"), since=30.0)
    hall.waits(a_member("m1"), since=10.0)
    assert [turned(hall).job.key, turned(hall).job.key] == [f"default/{GANG}", "default/web"]


def test_an_older_member_that_comes_later_makes_it_older(hall: Hall) -> None:
    hall.waits(a_pod("web"), since=20.0)
    hall.waits(a_member("m0"), a_member("m1"), since=30.0)
    hall.assembly.flush()
    hall.waits(a_member("m2"), since=10.0)
    assert turned(hall).job.key == f"default/{GANG}"


def test_members_stand_by_priority_then_age_then_name(hall: Hall) -> None:
    hall.waits(a_member("b"), a_member("a"), since=20.0)
    hall.waits(a_member("old"), since=10.0)
    hall.waits(a_member("urgent", priority=5), since=90.0)
    assert names(hall.job(GANG)) == ["urgent", "old", "a", "b"]


def test_f56_neither_a_waiting_gang_nor_its_age_goes_before_a_higher_priority(hall: Hall) -> None:
    hall.waits(a_member("m0"), a_member("m1"), since=0.0)
    hall.waits(a_pod("urgent", priority=10), since=50.0)
    assert turned(hall).job.key == "default/urgent"
    assert turned(hall).job.key == f"default/{GANG}"


def test_f58_a_big_gang_that_is_refused_does_not_stand_in_the_way(hall: Hall) -> None:
    hall.waits(*(a_member(f"m{i}", least=50) for i in range(50)), since=0.0)
    hall.waits(a_pod("small"), since=50.0)
    hall.easy.refuse("Room", turn=turned(hall))
    assert turned(hall).job.key == "default/small"


# --- changes ------------------------------------------------------------------------------------------------------


def test_a_refused_gang_that_gets_another_member_is_tried_again(hall: Hall) -> None:
    hall.waits(a_member("m0"), a_member("m1"))
    hall.easy.refuse("Room", turn=turned(hall))
    hall.clock.advance(10.0)
    assert hall.place(GANG) is Place.UNSCHEDULABLE
    hall.waits(a_member("m2"))
    assert hall.place(GANG) is Place.ACTIVE


def test_a_pod_that_changes_its_labels_changes_its_gang(hall: Hall) -> None:
    hall.waits(a_member("m0"), a_member("m1"), a_member("x", "other"))
    hall.waits(a_member("m1", "other"))
    assert hall.place("gang/other") is Place.ACTIVE
    assert hall.why(GANG) == short("llama", 1, 2)
    hall.waits(a_pod("m1"))
    assert hall.place("m1") is Place.ACTIVE
    assert hall.why("gang/other") == short("other", 1, 2)
    hall.waits(a_member("m1"))
    assert hall.place("m1") is Place.GONE
    assert hall.place(GANG) is Place.ACTIVE


def test_different_minimums_are_the_largest_and_a_warning(hall: Hall) -> None:
    hall.waits(a_member("m0", least=2), a_member("m1", least=3))
    assert hall.why(GANG) == short("llama", 2, 3)
    hall.assembly.flush()
    assert hall.heard == ["members ask for different minimums (2, 3); the largest counts"]


def test_a_conflict_is_told_once(hall: Hall) -> None:
    other = {"kueue.x-k8s.io/pod-group-name": "other"}
    notes = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    for i in range(3):
        hall.waits(a_member(f"m{i}", labels=other, annotations=notes))
        hall.assembly.flush()
    assert len(hall.heard) == 1
    assert hall.heard[0].startswith(f"{NAME} is used; kueue.x-k8s.io/pod-group-name says otherwise")


def test_of_many_minimums_a_warning_names_five(hall: Hall) -> None:
    hall.waits(*(a_member(f"m{i:03}", least=10**9 + i) for i in range(100)))
    hall.assembly.flush()
    shown = "1000000000, 1000000001, 1000000002, 1000000003 and 95 more up to 1000000099"
    assert hall.heard == [f"members ask for different minimums ({shown}); the largest counts"]


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(lambda i: {LEAST: str(1000 + i)}, id="its minimum"),
        pytest.param(lambda i: {LEAST: "2", "kueue.x-k8s.io/pod-group-name": f"g{i}"}, id="the name of another gang"),
    ],
)
def test_what_was_warned_of_stays_small_however_often_a_label_changes(
    hall: Hall, labels: Callable[[int], dict[str, str]]
) -> None:
    hall.waits(a_member("m0", least=2), a_member("m1", least=2))
    for i in range(100):
        notes = {"kueue.x-k8s.io/pod-group-total-count": "2"}
        hall.waits(a_member("m1", labels=labels(i), annotations=notes))
        hall.assembly.flush()
    roster = hall.assembly.roll.rosters[f"default/{GANG}"]
    assert len(hall.heard) <= 1
    assert sum(map(len, roster.told)) <= 200


def test_gangs_that_are_alike_share_a_line_and_others_do_not(hall: Hall) -> None:
    for gang, notes in (("a", {}), ("b", {}), ("c", {"scheduling.kubenexus.io/co-locate": "strict"})):
        hall.waits(*(a_member(f"{gang}{i}", gang, annotations=notes) for i in range(2)))
    hall.easy.refuse("Room", turn=turned(hall))
    assert hall.place("gang/a") is hall.place("gang/b") is Place.UNSCHEDULABLE
    assert hall.place("gang/c") is Place.ACTIVE


def test_what_is_usual_goes_for_gangs_that_say_nothing_of_their_own() -> None:
    hall = Hall(usual=Nearness("rack", "clique"))
    said = {"quiet": {}, "none": {"scheduling.kubenexus.io/co-locate": "none"}, "own": {}}
    said["own"] = {"kueue.x-k8s.io/podset-preferred-topology": "zone"}
    for gang, notes in said.items():
        hall.waits(*(a_member(f"{gang}{i}", gang, annotations=notes) for i in range(2)))
    hall.waits(a_member("alone", "single", 1))
    found = {gang: job.topology for gang in said if (job := hall.job(f"gang/{gang}")) is not None}
    assert found == {"quiet": Nearness("rack", "clique"), "none": Nearness(), "own": Nearness(preferred="zone")}
    assert hall.job("alone") is not None, "one is no gang, whatever is usual"


def test_where_the_job_of_a_pod_is(hall: Hall) -> None:
    hall.waits(a_member("m0"), a_member("g0", gates=["x"]), a_pod("web"))
    hall.assembly.flush()
    jobs = {name: hall.assembly.job_of(f"default/{name}") for name in ("m0", "g0", "web", "nobody")}
    assert jobs == {
        "m0": f"default/{GANG}",
        "g0": f"default/{GANG}+gated",
        "web": "default/web",
        "nobody": "default/nobody",
    }


def test_who_still_waits(hall: Hall) -> None:
    pods = [a_member("m0"), a_member("m1"), a_pod("web")]
    hall.waits(*pods)
    hall.assembly.flush()
    assert all(hall.assembly.still_waits(pod) for pod in pods)
    assert not hall.assembly.still_waits(a_member("m0", uid="another"))
    turn = turned(hall)
    assert not any(hall.assembly.still_waits(pod) for pod in turn.job.pods)
