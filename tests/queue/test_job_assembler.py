"""Pods come one by one, gangs wait whole: the gate, who counts, and what becomes of a gang that changes."""

from collections.abc import Callable

import msgspec
import pytest

from kubenexus.api.core import Pod, SchedulingGroup
from kubenexus.api.gangs.declaration import POD_GROUP, TopologyRequest
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import a_pod
from tests.api.gangs.builders import LEAST, NAME, a_member, pod_group
from tests.queue.assembler_fixture import AssemblerFixture, names, short, turned

GANG = "gang/llama"


@pytest.fixture
def fixture() -> AssemblerFixture:
    return AssemblerFixture()


# --- the gate -----------------------------------------------------------------------------------------------------


def test_a_gang_is_not_tried_before_it_is_there(fixture: AssemblerFixture) -> None:
    fixture.waits(*(a_member(f"m{i}", least=3) for i in range(2)))
    assert fixture.place(GANG) is QueueState.GATED
    assert fixture.why(GANG) == short("llama", 2, 3)
    assert fixture.pop() is None
    fixture.waits(a_member("m2", least=3))
    assert fixture.place(GANG) is QueueState.ACTIVE
    attempt = turned(fixture)
    assert (names(attempt.job), attempt.job.minimum) == (["m0", "m1", "m2"], 3)


def test_members_in_two_namespaces_are_two_gangs(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("m", least=2, namespace="a"), a_member("m", least=2, namespace="b"))
    fixture.assembler.build_changed()
    assert fixture.queue.gate_verdict("a/gang/llama") is not None
    assert fixture.queue.gate_verdict("b/gang/llama") is not None
    assert fixture.pop() is None


def test_members_behind_gates_are_not_there_and_wait_as_one_entry(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("m0"), *(a_member(f"g{i}", gates=["kueue"]) for i in range(5)))
    assert fixture.why(GANG) == short("llama", 1, 2)
    assert names(fixture.job(f"{GANG}+gated")) == [f"g{i}" for i in range(5)]
    assert len(fixture.queue) == 2
    fixture.waits(a_member("g3"))
    assert names(fixture.job(GANG)) == ["g3", "m0"]
    assert fixture.place(GANG) is QueueState.ACTIVE


def test_a_member_on_its_way_out_is_not_there(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("m0"), a_member("m1"))
    assert fixture.place(GANG) is QueueState.ACTIVE
    fixture.gone("m1")
    assert fixture.why(GANG) == short("llama", 1, 2)


def test_ten_thousand_members_are_one_entry_built_once_a_batch(fixture: AssemblerFixture) -> None:
    for batch in range(20):
        fixture.waits(*(a_member(f"m{batch * 500 + i}", least=10_000) for i in range(500)))
        fixture.assembler.build_changed()
    assert len(fixture.queue) == 1
    assert fixture.assembler.builds == 20
    attempt = turned(fixture)
    assert len(attempt.job.pods) == attempt.job.minimum == 10_000
    assert fixture.assembler.builds == 20, "a turn alone builds nothing"


def test_what_is_written_about_members_does_not_build_them_anew(fixture: AssemblerFixture) -> None:
    """We say to each why it waits, and hear of it."""
    fixture.waits(*(a_member(f"m{i}", least=9) for i in range(5)))
    fixture.assembler.build_changed()
    before = fixture.assembler.builds
    told = {"conditions": [], "phase": ""}
    for i in range(5):
        fixture.waits(a_member(f"m{i}", least=9, status=told))
    fixture.assembler.build_changed()
    assert fixture.assembler.builds == before


def test_the_pod_as_it_was_last_seen(fixture: AssemblerFixture) -> None:
    pod = a_member("m0")
    fixture.waits(pod)
    newer = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, resource_version="7"))
    fixture.waits(newer)
    assert fixture.waiting.latest_pod(pod) is newer
    plain = a_pod("web")
    assert fixture.waiting.latest_pod(plain) is plain


# --- malformed ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0", "-1", "abc", "99999999999"])
def test_a_malformed_minimum_keeps_the_pod_with_a_reason_that_names_the_key(
    fixture: AssemblerFixture, value: str
) -> None:
    fixture.waits(a_member("m0", least=value))
    assert fixture.place("m0") is QueueState.GATED
    assert fixture.why("m0") == f"label {LEAST}: must be a whole number from 1, not {value!r}"
    assert fixture.pop() is None
    fixture.waits(a_member("m0", least=1))
    assert fixture.place("m0") is QueueState.ACTIVE, "and it goes on when that is put right"


def test_a_malformed_group_keeps_its_members(fixture: AssemblerFixture) -> None:
    fixture.waits(in_group("m0"))
    fixture.group(pod_group("llama", -3))
    where = "PodGroup.scheduling.k8s.io default/llama: spec.schedulingPolicy.gang.minCount"
    assert fixture.why("podgroup/llama") == f"{where}: must be a whole number from 1, not -3"


# --- objects ------------------------------------------------------------------------------------------------------


def in_group(name: str) -> Pod:
    return a_pod(name, scheduling_group=SchedulingGroup(pod_group_name="llama"))


def test_f03_pods_before_their_group_wait_for_it(fixture: AssemblerFixture) -> None:
    fixture.waits(*(in_group(f"m{i}") for i in range(3)))
    assert fixture.why("podgroup/llama") == "waiting for PodGroup.scheduling.k8s.io default/llama to appear"
    assert fixture.pop() is None
    fixture.group(pod_group("llama", 4))
    assert fixture.why("podgroup/llama") == short("llama", 3, 4)
    assert fixture.pop() is None


def test_a_group_that_asks_for_less_lets_them_go(fixture: AssemblerFixture) -> None:
    fixture.waits(*(in_group(f"m{i}") for i in range(3)))
    fixture.group(pod_group("llama", 4))
    fixture.group(pod_group("llama", 3, "topology.kubernetes.io/rack"))
    attempt = turned(fixture)
    assert attempt.job.minimum == 3
    assert attempt.job.topology == TopologyRequest(required="topology.kubernetes.io/rack")


def test_a_group_that_is_deleted_is_waited_for_again(fixture: AssemblerFixture) -> None:
    fixture.waits(in_group("m0"), in_group("m1"))
    fixture.group(pod_group("llama", 2))
    assert fixture.place("podgroup/llama") is QueueState.ACTIVE
    fixture.groups.gone(POD_GROUP, "default/llama")
    fixture.assembler.group_changed(POD_GROUP, "default/llama")
    assert fixture.place("podgroup/llama") is QueueState.GATED


def test_members_of_a_basic_group_go_each_by_itself(fixture: AssemblerFixture) -> None:
    fixture.group(pod_group("llama"))
    fixture.waits(in_group("m0"), in_group("m1"))
    fixture.assembler.build_changed()
    assert {turned(fixture).job.key, turned(fixture).job.key} == {"default/m0", "default/m1"}


# --- who is there already -----------------------------------------------------------------------------------------


def test_members_beyond_the_minimum_join_a_running_gang(fixture: AssemblerFixture) -> None:
    for i in range(3):
        fixture.bound(a_member(f"m{i}"), f"n{i}")
    fixture.waits(a_member("m3"), a_member("m4"))
    job = fixture.job(GANG)
    assert job is not None
    assert (names(job), job.minimum, job.bound_nodes) == (["m3", "m4"], 1, ("n0", "n1", "n2"))


def test_a_restart_in_the_middle_of_a_gang_asks_for_the_rest_of_it(fixture: AssemblerFixture) -> None:
    fixture.bound(a_member("m0", least=4), "n0")
    fixture.waits(*(a_member(f"m{i}", least=4) for i in range(1, 4)))
    job = fixture.job(GANG)
    assert job is not None
    assert (job.minimum, job.bound_nodes) == (3, ("n0",))


def test_a_gang_that_lost_a_member_waits_for_as_many_as_it_needs(fixture: AssemblerFixture) -> None:
    for i in range(3):
        fixture.bound(a_member(f"m{i}", least=3))
    fixture.gone("m0", "m1")
    fixture.waits(a_member("m0", least=3, uid="another"))
    assert fixture.why(GANG) == short("llama", 2, 3)


def test_members_that_found_no_place_wait_on_beside_the_others(fixture: AssemblerFixture) -> None:
    fixture.waits(*(a_member(f"m{i}", least=2) for i in range(4)))
    attempt = turned(fixture)
    fixture.land(attempt, fixture.assume(attempt, most=3))
    job = fixture.job(GANG)
    assert job is not None
    assert (names(job), job.minimum, job.bound_nodes) == (["m3"], 1, ("n-m0", "n-m1", "n-m2"))


def test_f08_members_whose_bind_failed_are_tried_again_and_nobody_is_forgotten(fixture: AssemblerFixture) -> None:
    fixture.waits(*(a_member(f"m{i}", least=4) for i in range(4)))
    attempt = turned(fixture)
    fixture.land(attempt, fixture.assume(attempt), failed=("m1", "m3"))
    job = fixture.job(GANG)
    assert job is not None
    assert (names(job), job.minimum, job.bound_nodes) == (["m1", "m3"], 2, ("n-m0", "n-m2"))
    again = turned(fixture)
    assert names(again.job) == ["m1", "m3"]
    fixture.land(again, fixture.assume(again))
    assert fixture.place(GANG) is QueueState.GONE


def test_f29_when_all_binds_fail_the_gang_is_whole_again_after_a_backoff(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("m0"), a_member("m1"))
    attempt = turned(fixture)
    fixture.land(attempt, fixture.assume(attempt), failed=("m0", "m1"))
    assert fixture.place(GANG) is QueueState.BACKOFF
    fixture.clock.advance(2.0)
    again = turned(fixture)
    assert (names(again.job), again.job.minimum, again.attempt_number) == (["m0", "m1"], 2, 2)


def test_f09_a_member_deleted_between_its_decision_and_its_bind_does_not_count(fixture: AssemblerFixture) -> None:
    fixture.waits(*(a_member(f"m{i}", least=3) for i in range(3)))
    attempt = turned(fixture)
    seated = fixture.assume(attempt)
    fixture.gone("m1")
    fixture.waits(a_member("m1", least=3, uid="another"))
    fixture.assembler.build_changed()
    assert fixture.place(GANG) is QueueState.IN_FLIGHT, "what is on its way is left alone"
    fixture.land(attempt, seated)
    job = fixture.job(GANG)
    assert job is not None
    assert ([pod.metadata.uid for pod in job.pods], job.minimum, len(job.bound_nodes)) == (["another"], 1, 2)


def test_f30_a_gang_that_is_deleted_at_any_step_leaves_nothing_behind(fixture: AssemblerFixture) -> None:
    for step in ("waits", "in flight", "landed"):
        fixture.waits(a_member("m0"), a_member("m1"))
        fixture.assembler.build_changed()
        attempt = None if step == "waits" else turned(fixture)
        seated = [] if attempt is None else fixture.assume(attempt)
        if attempt is not None and step == "landed":
            fixture.land(attempt, seated)
        fixture.gone("m0", "m1")
        if attempt is not None and step == "in flight":
            fixture.land(attempt, seated, failed=("m0", "m1"))
        fixture.assembler.build_changed()
        assert len(fixture.queue) == 0
        registry = fixture.assembler.registry
        assert (registry.members, registry.gangs, registry.changed._named) == ({}, {}, {})


def test_a_gang_that_takes_the_name_of_one_that_is_gone_starts_afresh(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("m0"), a_member("m1"), since=5.0)
    for _ in range(3):
        fixture.fixture.refuse("Room", attempt=turned(fixture))
        fixture.clock.advance(400.0)
    fixture.gone("m0", "m1")
    fixture.waits(a_member("m0", uid="x"), a_member("m1", uid="y"), since=90.0)
    attempt = turned(fixture)
    assert (attempt.attempt_number, attempt.since) == (1, 90.0)


def test_a_gang_counts_its_own_attempts(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("m0"), a_member("m1"))
    for attempt in (1, 2, 3):
        turn = turned(fixture)
        assert turn.attempt_number == attempt
        fixture.fixture.refuse("Room", attempt=turn)
        fixture.clock.advance(400.0)
    assert fixture.queue.attempts(f"default/{GANG}") == 3


# --- order --------------------------------------------------------------------------------------------------------


def test_a_gang_is_as_old_as_its_oldest_member(fixture: AssemblerFixture) -> None:
    fixture.waits(a_pod("web"), since=20.0)
    fixture.waits(a_member("m0"), since=30.0)
    fixture.waits(a_member("m1"), since=10.0)
    assert [turned(fixture).job.key, turned(fixture).job.key] == [f"default/{GANG}", "default/web"]


def test_an_older_member_that_comes_later_makes_it_older(fixture: AssemblerFixture) -> None:
    fixture.waits(a_pod("web"), since=20.0)
    fixture.waits(a_member("m0"), a_member("m1"), since=30.0)
    fixture.assembler.build_changed()
    fixture.waits(a_member("m2"), since=10.0)
    assert turned(fixture).job.key == f"default/{GANG}"


def test_members_stand_by_priority_then_age_then_name(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("b"), a_member("a"), since=20.0)
    fixture.waits(a_member("old"), since=10.0)
    fixture.waits(a_member("urgent", priority=5), since=90.0)
    assert names(fixture.job(GANG)) == ["urgent", "old", "a", "b"]


def test_f56_neither_a_waiting_gang_nor_its_age_goes_before_a_higher_priority(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("m0"), a_member("m1"), since=0.0)
    fixture.waits(a_pod("urgent", priority=10), since=50.0)
    assert turned(fixture).job.key == "default/urgent"
    assert turned(fixture).job.key == f"default/{GANG}"


def test_f58_a_big_gang_that_is_refused_does_not_stand_in_the_way(fixture: AssemblerFixture) -> None:
    fixture.waits(*(a_member(f"m{i}", least=50) for i in range(50)), since=0.0)
    fixture.waits(a_pod("small"), since=50.0)
    fixture.fixture.refuse("Room", attempt=turned(fixture))
    assert turned(fixture).job.key == "default/small"


# --- changes ------------------------------------------------------------------------------------------------------


def test_a_refused_gang_that_gets_another_member_is_tried_again(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("m0"), a_member("m1"))
    fixture.fixture.refuse("Room", attempt=turned(fixture))
    fixture.clock.advance(10.0)
    assert fixture.place(GANG) is QueueState.UNSCHEDULABLE
    fixture.waits(a_member("m2"))
    assert fixture.place(GANG) is QueueState.ACTIVE


def test_a_pod_that_changes_its_labels_changes_its_gang(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("m0"), a_member("m1"), a_member("x", "other"))
    fixture.waits(a_member("m1", "other"))
    assert fixture.place("gang/other") is QueueState.ACTIVE
    assert fixture.why(GANG) == short("llama", 1, 2)
    fixture.waits(a_pod("m1"))
    assert fixture.place("m1") is QueueState.ACTIVE
    assert fixture.why("gang/other") == short("other", 1, 2)
    fixture.waits(a_member("m1"))
    assert fixture.place("m1") is QueueState.GONE
    assert fixture.place(GANG) is QueueState.ACTIVE


def test_different_minimums_are_the_largest_and_a_warning(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("m0", least=2), a_member("m1", least=3))
    assert fixture.why(GANG) == short("llama", 2, 3)
    fixture.assembler.build_changed()
    assert fixture.heard == ["members ask for different minimums (2, 3); the largest counts"]


def test_a_conflict_is_told_once(fixture: AssemblerFixture) -> None:
    other = {"kueue.x-k8s.io/pod-group-name": "other"}
    notes = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    for i in range(3):
        fixture.waits(a_member(f"m{i}", labels=other, annotations=notes))
        fixture.assembler.build_changed()
    assert len(fixture.heard) == 1
    assert fixture.heard[0].startswith(f"{NAME} is used; kueue.x-k8s.io/pod-group-name says otherwise")


def test_of_many_minimums_a_warning_names_five(fixture: AssemblerFixture) -> None:
    fixture.waits(*(a_member(f"m{i:03}", least=10**9 + i) for i in range(100)))
    fixture.assembler.build_changed()
    shown = "1000000000, 1000000001, 1000000002, 1000000003 and 95 more up to 1000000099"
    assert fixture.heard == [f"members ask for different minimums ({shown}); the largest counts"]


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(lambda i: {LEAST: str(1000 + i)}, id="its minimum"),
        pytest.param(lambda i: {LEAST: "2", "kueue.x-k8s.io/pod-group-name": f"g{i}"}, id="the name of another gang"),
    ],
)
def test_what_was_warned_of_stays_small_however_often_a_label_changes(
    fixture: AssemblerFixture, labels: Callable[[int], dict[str, str]]
) -> None:
    fixture.waits(a_member("m0", least=2), a_member("m1", least=2))
    for i in range(100):
        notes = {"kueue.x-k8s.io/pod-group-total-count": "2"}
        fixture.waits(a_member("m1", labels=labels(i), annotations=notes))
        fixture.assembler.build_changed()
    gang_state = fixture.assembler.registry.gangs[f"default/{GANG}"]
    assert len(fixture.heard) <= 1
    assert sum(map(len, gang_state.reported_warnings)) <= 200


def test_gangs_that_are_alike_share_a_line_and_others_do_not(fixture: AssemblerFixture) -> None:
    for gang, notes in (("a", {}), ("b", {}), ("c", {"scheduling.kubenexus.io/co-locate": "strict"})):
        fixture.waits(*(a_member(f"{gang}{i}", gang, annotations=notes) for i in range(2)))
    fixture.fixture.refuse("Room", attempt=turned(fixture))
    assert fixture.place("gang/a") is fixture.place("gang/b") is QueueState.UNSCHEDULABLE
    assert fixture.place("gang/c") is QueueState.ACTIVE


def test_what_is_usual_goes_for_gangs_that_say_nothing_of_their_own() -> None:
    fixture = AssemblerFixture(usual=TopologyRequest("rack", "clique"))
    said = {"quiet": {}, "none": {"scheduling.kubenexus.io/co-locate": "none"}, "own": {}}
    said["own"] = {"kueue.x-k8s.io/podset-preferred-topology": "zone"}
    for gang, notes in said.items():
        fixture.waits(*(a_member(f"{gang}{i}", gang, annotations=notes) for i in range(2)))
    fixture.waits(a_member("alone", "single", 1))
    found = {gang: job.topology for gang in said if (job := fixture.job(f"gang/{gang}")) is not None}
    assert found == {
        "quiet": TopologyRequest("rack", "clique"),
        "none": TopologyRequest(),
        "own": TopologyRequest(preferred="zone"),
    }
    assert fixture.job("alone") is not None, "one is no gang, whatever is usual"


def test_where_the_job_of_a_pod_is(fixture: AssemblerFixture) -> None:
    fixture.waits(a_member("m0"), a_member("g0", gates=["x"]), a_pod("web"))
    fixture.assembler.build_changed()
    jobs = {name: fixture.waiting.job_key(f"default/{name}") for name in ("m0", "g0", "web", "nobody")}
    assert jobs == {
        "m0": f"default/{GANG}",
        "g0": f"default/{GANG}+gated",
        "web": "default/web",
        "nobody": "default/nobody",
    }


def test_who_still_waits(fixture: AssemblerFixture) -> None:
    pods = [a_member("m0"), a_member("m1"), a_pod("web")]
    fixture.waits(*pods)
    fixture.assembler.build_changed()
    assert all(fixture.waiting.is_waiting(pod) for pod in pods)
    assert not fixture.waiting.is_waiting(a_member("m0", uid="another"))
    attempt = turned(fixture)
    assert not any(fixture.waiting.is_waiting(pod) for pod in attempt.job.pods)
