"""Preemptions under way, as the ledger sees them: when a job is ready, and what ends its wait."""

from kubenexus.state.preemptions import PreemptionEnd, Preemptions
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.app.preemption_fixture import nominated, terminating

NODES = {"m0": "n0", "m1": "n1"}


def begun(minimum: int = 2, deadline: float = 10.0) -> Preemptions:
    preemptions = Preemptions()
    preemptions.begin("job", NODES, {"v0", "v1"}, minimum=minimum, deadline=deadline)
    return preemptions


def ends(preemptions: Preemptions) -> list[tuple[str, PreemptionEnd]]:
    return [(each.preemption.job, each.end) for each in preemptions.take_ended()]


def test_a_job_is_ready_when_its_last_victim_is_gone() -> None:
    preemptions = begun()
    assert "m0" in preemptions
    preemptions.victim_gone("v0")
    assert preemptions.take_ready() == []
    preemptions.victim_gone("v1")
    assert preemptions.take_ready() == ["job"]
    assert "m0" not in preemptions, "it waits for nothing more"
    assert preemptions.node_of("m1") == "n1", "and its node is kept"


def test_a_pod_that_is_no_victim_is_counted_as_a_change_of_the_state() -> None:
    preemptions = begun()
    preemptions.victim_gone("v0")
    preemptions.victim_gone("other")
    assert preemptions.departures == 1


def test_one_victim_may_be_waited_for_by_two_jobs() -> None:
    preemptions = begun()
    preemptions.begin("other", {"x": "n0"}, {"v0"})
    preemptions.end("job", PreemptionEnd.FAILED)
    assert preemptions.is_victim("v0")
    assert not preemptions.is_victim("v1")
    preemptions.victim_gone("v0")
    assert preemptions.take_ready() == ["other"]


def test_the_preemptions_of_each_namespace_are_counted() -> None:
    preemptions = Preemptions()
    for job in ("a/x", "a/gang/y", "b/z", "a/x"):
        preemptions.begin(job, {job: "n0"}, {"v0"})
    assert [preemptions.in_namespace(each) for each in "abc"] == [2, 1, 0]
    preemptions.end("a/x", PreemptionEnd.FAILED)
    preemptions.member_gone("b/z")
    assert [preemptions.in_namespace(each) for each in "abc"] == [1, 0, 0]


def test_a_gang_that_loses_members_goes_on_until_too_few_are_left() -> None:
    preemptions = begun(minimum=1)
    preemptions.member_gone("m0")
    assert ends(preemptions) == []
    preemptions.member_gone("m1")
    assert ends(preemptions) == [("job", PreemptionEnd.GONE)]
    assert not preemptions.is_victim("v0")


def test_a_member_with_a_node_ends_the_preemption_of_its_job() -> None:
    preemptions = begun()
    preemptions.member_placed("m1")
    assert ends(preemptions) == [("job", PreemptionEnd.LANDED)]
    assert preemptions.node_of("m0") == ""


def test_another_preemption_of_the_job_replaces_the_first() -> None:
    preemptions = begun()
    first = preemptions.get("job")
    assert first is not None
    preemptions.begin("job", NODES, {"v2"})
    assert not preemptions.is_current(first)
    assert not preemptions.is_victim("v0")
    assert ends(preemptions) == [("job", PreemptionEnd.FAILED)]


def test_only_those_past_their_deadline_are_late() -> None:
    preemptions = begun(deadline=10.0)
    preemptions.begin("other", {"x": "n0"}, set(), deadline=20.0)
    assert preemptions.next_deadline == 10.0
    assert [each.job for each in preemptions.past_deadline(10.0)] == ["job"]


def test_a_victim_that_begins_to_terminate_is_not_gone() -> None:
    low = a_pod("low", cpu=2, node="n")
    ledger = a_ledger([a_node("n", cpu=2)], [low])
    urgent = a_pod("urgent", cpu=2, priority=9)
    ledger.begin_preemption(urgent.key, [(urgent, "n")], {low.metadata.uid})
    ledger.upsert_pod(terminating(low))
    assert urgent.metadata.uid in ledger.preemptions
    ledger.remove_pod(low.key)
    assert ledger.preemptions.take_ready() == [urgent.key]


def test_what_was_decided_counts_until_the_end_and_then_what_the_api_server_says() -> None:
    urgent = nominated(a_pod("urgent", cpu=2, priority=9), "old")
    ledger = a_ledger([a_node("old"), a_node("new")], [urgent])
    ledger.begin_preemption(urgent.key, [(urgent, "new")], {"v"})
    ledger.upsert_pod(urgent)  # the watch has not heard of it yet
    assert [each.key for each in ledger.nominees("new")] == [urgent.key]
    assert ledger.nominees("old") == []
    ledger.end_preemption(urgent.key, PreemptionEnd.FAILED, [urgent])
    assert ledger.nominees("new") == []
    assert [each.key for each in ledger.nominees("old")] == [urgent.key]
