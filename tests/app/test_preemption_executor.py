"""The execution of preemptions of jobs: what is written in which order, what is kept free, and what ends them early."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.selectors import LabelSelector
from kubenexus.app.preemption.preemption_rules import ProfileRules
from kubenexus.client.calls import ApiError
from kubenexus.queue.queued_job import QueueState
from kubenexus.state.preemptions import PreemptionEnd
from kubenexus.testing.builders import a_node, a_pod
from tests.app.preemption_fixture import (
    OURS,
    PreemptionFixture,
    gang,
    nominated,
    preemption_test,
    terminating,
)
from tests.async_helpers import yield_to_loop
from tests.bind.server import AWAY, BUSY, FORBIDDEN, SILENT
from tests.sim.virtual.virtual_time import elapse
from tests.state.test_disruption_budgets import a_budget

BUDGET = ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
CONFLICT = ApiError(409, "Conflict", "the object has been modified")
JOB = "default/gang/llama"
HOLDER = "low-0", "low-1"


def ends(fixture: PreemptionFixture) -> dict[str, float]:
    counter = fixture.scheduler.metrics.preemptions_ended
    return {end.value: counter.labels(end.value).value for end in PreemptionEnd if counter.labels(end.value).value}


async def begun(fixture: PreemptionFixture, priority: int = 9, **fields: Any) -> None:
    """A pod of low priority on each of two nodes, and a gang of two that preempts both."""
    fixture.nodes(a_node("n0", cpu=2), a_node("n1", cpu=2))
    fixture.pods(*(a_pod(f"low-{i}", cpu=2, node=f"n{i}", **fields) for i in range(2)))
    fixture.plans[JOB] = (("low-0", "low-1"), ("n0", "n1"))
    fixture.pods(*gang("llama", 2, cpu=2, priority=priority))
    await fixture.turn()


def test_all_members_are_nominated_before_the_first_victim_goes() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        await begun(fixture)
        writes = [call for call in fixture.server.calls if call.path.endswith(("/eviction", "/status"))]
        said = [msgspec.json.decode(call.body) for call in writes]
        kinds = [
            "nominated" if "nominatedNodeName" in body.get("status", {}) else "evicted"
            for call, body in zip(writes, said, strict=True)
            if call.path.endswith("/eviction") or "nominatedNodeName" in body.get("status", {})
        ]
        assert kinds == ["nominated", "nominated", "evicted", "evicted"]
        assert sorted(fixture.nominations) == [("llama-0", "n0"), ("llama-1", "n1")]
        eviction = fixture.server.said("/low-0/eviction")[0]
        assert eviction["apiVersion"] == "policy/v1"
        assert eviction["deleteOptions"]["preconditions"] == {"uid": fixture.server.pods["default/low-0"].metadata.uid}
        assert "gracePeriodSeconds" not in eviction["deleteOptions"], "its own"
        assert sorted(line.partition(":")[0] for line in fixture.told() if line.startswith("Preempted")) == [
            "Preempted low-0",
            "Preempted low-1",
        ]

    preemption_test(life)


def test_the_nomination_carries_the_condition_that_says_why_the_pod_waits() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        fixture.pods(a_pod("low", cpu=2, node="n"))
        fixture.plans["default/high"] = (["low"], ["n"])
        fixture.pods(a_pod("high", cpu=2, priority=9, scheduler_name=OURS))
        await fixture.turn()
        await elapse(5.0)
        (patch,) = fixture.server.said("/high/status")
        assert patch["status"]["nominatedNodeName"] == "n"
        (condition,) = patch["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "PodScheduled",
            "False",
            "Unschedulable",
        )

    preemption_test(life)


def test_the_condition_is_written_by_itself_if_the_nomination_fails() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        fixture.pods(a_pod("low", cpu=2, node="n"))
        fixture.plans["default/high"] = (["low"], ["n"])
        fixture.server.patches.append(FORBIDDEN)
        fixture.pods(a_pod("high", cpu=2, priority=9, scheduler_name=OURS))
        await fixture.turn()
        assert not fixture.evicted
        said = [body["status"] for body in fixture.server.said("/high/status")]
        assert [status["nominatedNodeName"] for status in said] == ["n", None]
        assert fixture.server.pods["default/high"].metadata.uid in fixture.scheduler.status_patcher

    preemption_test(life)


@pytest.mark.parametrize("slow", [True, False], ids=["a victim that terminates", "a victim that is gone at once"])
def test_the_reason_is_written_into_victims_that_still_exist(slow: bool) -> None:
    async def life(fixture: PreemptionFixture) -> None:
        await begun(fixture)
        assert sorted(fixture.evicted) == ["low-0", "low-1"]
        assert not fixture.server.said("/low-0/status"), "the watch has not shown yet what became of it"
        fixture.end_slowly("low-0", "low-1")
        await fixture.turn()
        if not slow:
            fixture.gone("low-0", "low-1")
        await elapse(1.0)
        marks = [body["status"]["conditions"][0] for body in fixture.server.said("/low-0/status")]
        expected = [("DisruptionTarget", "True", "PreemptionByScheduler")] if slow else []
        assert [(mark["type"], mark["status"], mark["reason"]) for mark in marks] == expected

    preemption_test(life)


@pytest.mark.parametrize("thief", ["single pod", "gang"])
def test_f46_victims_that_end_at_different_times_leave_their_room_to_the_preemptor(thief: str) -> None:
    async def life(fixture: PreemptionFixture) -> None:
        await begun(fixture)
        fixture.end_slowly("low-0", "low-1")
        fixture.gone("low-0")
        alike = gang("thief", 2, cpu=1, priority=9) if thief == "gang" else [a_pod("thief-0", cpu=1, priority=9)]
        lower = a_pod("lower", cpu=1, priority=5, scheduler_name=OURS)
        fixture.pods(*alike, lower)
        await fixture.turn(1)
        assert set(fixture.where()) == {"low-1"}, "the first half waits for the other"
        fixture.gone("low-1")
        await fixture.turn()
        assert {name: node for name, node in fixture.where().items() if name.startswith("llama")} == {
            "llama-0": "n0",
            "llama-1": "n1",
        }
        assert not {"thief-0", "thief-1", "lower"} & set(fixture.where())
        assert ends(fixture) == {"landed": 1.0}

    preemption_test(life)


def test_of_two_jobs_that_share_a_node_the_first_keeps_its_room_until_the_victims_of_both_are_gone() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        fixture.pods(*(a_pod(f"low-{i}", cpu=1, node="n") for i in range(2)))
        fixture.plans = {"default/first": (["low-0"], ["n"]), "default/second": (["low-0", "low-1"], ["n"])}
        for name in ("first", "second"):
            fixture.pods(a_pod(name, cpu=1, priority=9, scheduler_name=OURS))
            await fixture.turn()
        fixture.end_slowly("low-0", "low-1")
        fixture.gone("low-0")
        fixture.pods(a_pod("third", cpu=1, priority=9, scheduler_name=OURS))
        await fixture.turn(1)
        fixture.gone("low-1")
        await fixture.turn(20)
        assert fixture.where() == {"first": "n", "second": "n"}
        assert ends(fixture) == {"landed": 2.0}

    preemption_test(life)


def test_f50_a_slow_victim_is_waited_for_and_not_evicted_twice() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        await begun(fixture)
        fixture.end_slowly("low-0", "low-1")
        for _ in range(5):
            await fixture.turn(20)
        assert sorted(fixture.evicted) == ["low-0", "low-1"]
        assert fixture.ledger.preemptions.get(JOB) is not None
        fixture.gone("low-0", "low-1")
        await fixture.turn()
        assert fixture.where() == {"llama-0": "n0", "llama-1": "n1"}

    preemption_test(life)


def test_a_job_is_seldom_decided_again_while_its_victims_end_and_at_once_afterwards() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        await begun(fixture)
        fixture.end_slowly("low-0", "low-1")
        before = fixture.scheduler.loop.decisions
        for _ in range(60):
            await fixture.turn(1)
        assert fixture.scheduler.loop.decisions - before <= 5, "the longest backoff of two pods is 14 seconds"
        fixture.gone("low-0", "low-1")
        await fixture.turn()
        assert fixture.where() == {"llama-0": "n0", "llama-1": "n1"}

    preemption_test(life)


def test_a_victim_that_never_ends_keeps_the_room_until_the_deadline_only() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        await begun(fixture)
        fixture.nominate("llama-0", "n0")
        fixture.nominate("llama-1", "n1")
        fixture.end_slowly("low-0", "low-1")
        fixture.gone("low-0")
        fixture.pods(a_pod("other", cpu=2, priority=9, scheduler_name=OURS))
        await fixture.turn(299)
        assert "other" not in fixture.where()
        await fixture.turn(2)
        assert sorted(fixture.nominations[2:]) == [("llama-0", ""), ("llama-1", "")]
        fixture.pods(nominated(fixture.server.pods["default/llama-0"], ""))
        fixture.pods(nominated(fixture.server.pods["default/llama-1"], ""))
        await fixture.turn(10)
        assert fixture.where()["other"] == "n0"
        assert sorted(fixture.evicted) == ["low-0", "low-1"]
        assert ends(fixture) == {"expired": 1.0}

    preemption_test(life)


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([BUDGET, BUDGET], id="a budget that allows it later"),
        pytest.param([BUSY], id="a busy server"),
        pytest.param([CONFLICT, CONFLICT], id="a conflict with another writer"),
        pytest.param([AWAY, SILENT, BUSY], id="a server that is away, does not answer, is busy"),
    ],
)
def test_f47_an_eviction_that_fails_is_tried_again(faults: list[Exception]) -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.server.script.extend(faults)
        await begun(fixture)
        await elapse(40)
        await fixture.turn()
        assert len(fixture.evicted) == 2 + len(faults)
        assert set(fixture.evicted) == {"low-0", "low-1"}
        fixture.gone("low-0", "low-1")
        await fixture.turn()
        assert fixture.where() == {"llama-0": "n0", "llama-1": "n1"}

    preemption_test(life)


@pytest.mark.parametrize("answer", [CONFLICT, SILENT, BUSY], ids=["conflict", "no answer", "busy"])
def test_f48_an_eviction_without_a_clear_answer_is_followed_by_a_look(answer: Exception) -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.nodes(a_node("n0", cpu=2))
        low = a_pod("low-0", cpu=2, node="n0")
        fixture.pods(low)
        fixture.server.pods[low.key] = terminating(low)
        fixture.server.script.append(answer)
        fixture.plans["default/urgent"] = (["low-0"], ["n0"])
        fixture.pods(a_pod("urgent", cpu=2, priority=9, scheduler_name=OURS))
        await fixture.turn()
        await elapse(40)
        assert fixture.evicted == ["low-0"]
        assert fixture.ledger.preemptions.get("default/urgent") is not None

    preemption_test(life)


def test_a_budget_that_never_allows_it_ends_the_preemption_before_others_are_hurt() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.nodes(a_node("n0", cpu=2), a_node("n1", cpu=2))
        fixture.things(a_budget("db", LabelSelector(match_labels={"app": "db"})))
        fixture.pods(a_pod("low-0", cpu=2, node="n0"), a_pod("low-1", cpu=2, node="n1", labels={"app": "db"}))
        fixture.plans[JOB] = (("low-0", "low-1"), ("n0", "n1"))
        fixture.server.script.extend([BUDGET] * 6)
        fixture.pods(*gang("llama", 2, cpu=2, priority=9))
        await fixture.turn()
        await elapse(60)
        await fixture.turn()
        assert fixture.evicted == ["low-1"] * 6
        assert ends(fixture) == {"failed": 1.0}
        assert fixture.ledger.nominees("n0") == []
        job = fixture.queue.job(JOB)
        assert job is not None
        assert fixture.preemption.spared(job) == {fixture.server.pods["default/low-1"].metadata.uid}

    preemption_test(life)


def test_a_job_without_victims_is_tried_again_when_a_budget_allows_more() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.nodes(a_node("n0", cpu=2))
        selector = LabelSelector(match_labels={"app": "db"})
        fixture.things(a_budget("db", selector))
        fixture.pods(a_pod("low-0", cpu=2, node="n0", labels={"app": "db"}))
        fixture.pods(a_pod("urgent", cpu=2, priority=9, scheduler_name=OURS))
        await fixture.turn()
        assert fixture.queue.state("default/urgent") is QueueState.UNSCHEDULABLE
        attempts = fixture.queue.attempts("default/urgent")
        fixture.things(a_budget("db", selector, 1))
        await fixture.turn(1)
        assert fixture.queue.attempts("default/urgent") == attempts + 1

    preemption_test(life)


def test_pods_whose_budget_the_decision_violates_are_deleted_and_others_evicted() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.violations = 1
        fixture.nodes(a_node("n0", cpu=2), a_node("n1", cpu=2))
        fixture.things(a_budget("db", LabelSelector(match_labels={"app": "db"})))
        fixture.pods(a_pod("low-0", cpu=2, node="n0"), a_pod("low-1", cpu=2, node="n1", labels={"app": "db"}))
        fixture.plans[JOB] = (("low-0", "low-1"), ("n0", "n1"))
        fixture.pods(*gang("llama", 2, cpu=2, priority=9))
        await fixture.turn()
        calls = [call for call in fixture.server.calls if call.method == "DELETE" or call.path.endswith("/eviction")]
        assert [(call.method, call.path.split("/")[6]) for call in calls] == [("DELETE", "low-1"), ("POST", "low-0")]

    preemption_test(life)


def test_a_refusal_for_good_ends_the_preemption() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.server.script.append(FORBIDDEN)
        await begun(fixture)
        assert fixture.evicted == ["low-0"]
        assert ends(fixture) == {"failed": 1.0}
        assert fixture.queue.state(JOB) is QueueState.BACKOFF

    preemption_test(life)


def test_nothing_more_is_evicted_once_the_preemptor_is_gone() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.server.script.append(BUDGET)
        await begun(fixture)
        fixture.gone("llama-1")  # a gang of two with one member needs no room
        await elapse(60)
        assert fixture.evicted == ["low-0"]
        assert ends(fixture) == {"gone": 1.0} or not len(fixture.ledger.preemptions)

    preemption_test(life)


def test_f49_nothing_more_is_evicted_once_a_higher_pod_took_the_room() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.server.script.append(BUDGET)
        await begun(fixture)
        assert fixture.evicted == ["low-0"]
        fixture.gone("low-1")
        fixture.pods(a_pod("higher", cpu=2, priority=99, scheduler_name=OURS))
        await fixture.turn()
        assert fixture.where()["higher"] == "n1"
        await elapse(60)
        await fixture.turn()
        assert fixture.evicted == ["low-0"]
        assert ends(fixture) == {"outranked": 1.0}

    preemption_test(life)


def test_a_higher_preemptor_on_the_same_nodes_ends_the_lower_preemption() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        await begun(fixture)
        fixture.end_slowly("low-0", "low-1")
        fixture.pods(a_pod("mid", cpu=0, node="n0"))
        fixture.plans["default/higher"] = (["mid"], ["n0"])
        fixture.pods(a_pod("higher", cpu=2, priority=99, scheduler_name=OURS))
        await fixture.turn()
        assert ends(fixture) == {"outranked": 1.0}
        assert ("llama-0", "") in fixture.nominations
        assert ("llama-1", "") in fixture.nominations

    preemption_test(life)


def test_without_leadership_nothing_is_evicted() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.guard.leads = False
        await begun(fixture)
        await elapse(60)
        assert fixture.evicted == []
        assert not len(fixture.ledger.preemptions)

    preemption_test(life)


def test_a_job_that_did_not_fit_afterwards_is_held_back_longer_each_time() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        await begun(fixture)
        fixture.pods(a_pod("higher", cpu=2, priority=99, node="n0"))  # another scheduler binds it, on top
        fixture.gone("low-0", "low-1")
        await fixture.turn()
        assert ends(fixture) == {"failed": 1.0}
        seconds = []
        for number in (2, 3):
            low = f"low-{number}"
            fixture.pods(a_pod(low, cpu=2, node="n1"))
            fixture.plans[JOB] = ([low], ["n0", "n1"])
            since = fixture.clock.now()
            while low not in fixture.evicted:
                await fixture.turn(10)
            seconds.append(fixture.clock.now() - since)
            fixture.gone(low)
            await fixture.turn()
        assert seconds == [pytest.approx(30, abs=10), pytest.approx(60, abs=10)]
        assert ends(fixture) == {"failed": 3.0}

    preemption_test(life)


def test_after_a_restart_the_room_is_kept_and_the_victims_are_waited_for() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.nodes(a_node("n0", cpu=2), a_node("n1", cpu=2))
        low = [a_pod(f"low-{i}", cpu=2, node=f"n{i}") for i in range(2)]
        fixture.pods(terminating(low[0]), low[1])  # killed between two evictions
        llama = gang("llama", 2, cpu=2, priority=9)
        fixture.pods(*(nominated(pod, f"n{i}") for i, pod in enumerate(llama)))
        fixture.plans[JOB] = (HOLDER, ("n0", "n1"))
        fixture.scheduler.assembler.build_changed()
        assert fixture.preemption.adopt()
        fixture.preemption.rules.restarted()
        fixture.pods(a_pod("thief", cpu=2, priority=9, scheduler_name=OURS))
        await fixture.turn(5)
        assert fixture.evicted == []
        fixture.gone("low-0")
        await fixture.turn(5)
        assert "thief" not in fixture.where()
        for _ in range(4):
            await fixture.turn(20)
        assert fixture.evicted == ["low-1"], "the rest, after one cooldown"
        fixture.gone("low-1")
        await fixture.turn()
        assert fixture.where() == {"llama-0": "n0", "llama-1": "n1"}

    preemption_test(life)


def test_f51_a_nomination_that_leads_nowhere_ends() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.nodes(a_node("n0", cpu=2))
        fixture.pods(a_pod("phantom", cpu=2, priority=9, nominated="n0", scheduler_name=OURS, selects={"no": "where"}))
        fixture.pods(a_pod("other", cpu=2, priority=9, scheduler_name=OURS))
        await fixture.turn(31)
        assert "other" not in fixture.where()
        await fixture.turn(301)
        assert fixture.nominations == [("phantom", "")]
        fixture.pods(nominated(fixture.server.pods["default/phantom"], ""))
        await fixture.turn(10)
        assert fixture.where()["other"] == "n0"

    preemption_test(life)


def test_the_number_of_preemptions_is_bounded_and_the_next_begins_when_one_ends() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.preemption.rules._profiles = {OURS: ProfileRules(limit=2)}
        fixture.nodes(*(a_node(f"n{i}", cpu=2) for i in range(3)))
        fixture.pods(*(a_pod(f"low-{i}", cpu=2, node=f"n{i}") for i in range(3)))
        for i, namespace in enumerate(("a", "a", "b")):
            fixture.plans[f"{namespace}/urgent-{i}"] = ([f"low-{i}"], [f"n{i}"])
            fixture.pods(a_pod(f"urgent-{i}", namespace=namespace, cpu=2, priority=9, scheduler_name=OURS))
        await fixture.turn()
        assert sorted(fixture.evicted) == ["low-0", "low-2"], "one of each namespace"
        fixture.gone("low-0")
        await fixture.turn()
        assert sorted(fixture.evicted) == ["low-0", "low-1", "low-2"]

    preemption_test(life)


def test_the_room_of_a_preempted_member_is_not_held_for_its_replacement() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.nodes(a_node("n0", cpu=2), a_node("n1", cpu=2))
        batch = gang("batch", 2, cpu=2)
        running = [
            msgspec.structs.replace(
                pod,
                spec=msgspec.structs.replace(pod.spec, node_name=f"n{i}"),
                status=msgspec.structs.replace(pod.status, phase="Running"),
            )
            for i, pod in enumerate(batch)
        ]
        fixture.pods(*running)
        fixture.clock.advance(60)
        fixture.plans["default/urgent"] = (["batch-0"], ["n0"])
        fixture.pods(a_pod("urgent", cpu=2, priority=0, scheduler_name=OURS))
        await fixture.turn()
        fixture.end_slowly("batch-0")
        fixture.gone("batch-0")
        await fixture.turn()
        assert fixture.where()["urgent"] == "n0"

    preemption_test(life)


@pytest.mark.parametrize("first", ["goes on", "is deleted"])
def test_f22_a_victim_that_two_jobs_need_is_evicted_once(first: str) -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.nodes(a_node("n0", cpu=4))
        fixture.pods(a_pod("low-0", cpu=4, node="n0"))
        fixture.server.script.append(BUDGET)
        for name in ("one", "two"):
            fixture.plans[f"default/{name}"] = (["low-0"], ["n0"])
            fixture.pods(a_pod(name, cpu=2, priority=9, scheduler_name=OURS))
        await fixture.turn()
        assert fixture.evicted == ["low-0"], "the budget refuses, and both wait"
        if first == "is deleted":
            fixture.gone("one")
        await elapse(60)
        await fixture.turn()
        assert fixture.evicted == ["low-0", "low-0"]
        fixture.gone("low-0")
        await fixture.turn()
        assert set(fixture.where()) == ({"one", "two"} if first == "goes on" else {"two"})

    preemption_test(life)


def test_without_an_api_nothing_hangs() -> None:
    async def life(fixture: PreemptionFixture) -> None:
        fixture.server.patches.append(BUSY)
        await begun(fixture)
        await yield_to_loop()
        assert fixture.evicted == [], "no victim goes before all members are nominated"
        assert ends(fixture) == {"failed": 1.0}

    preemption_test(life)


def test_a_job_beyond_the_limit_is_not_searched_again_before_another_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search takes milliseconds, and hundreds of jobs may wait here."""

    async def life(fixture: PreemptionFixture) -> None:
        few = ProfileRules(limit=4)
        monkeypatch.setattr(fixture.preemption.rules, "of", lambda profile: few)
        fixture.nodes(*(a_node(f"n{i}", cpu=2) for i in range(4)))
        fixture.pods(*(a_pod(f"low-{i}", cpu=2, node=f"n{i}") for i in range(4)))
        for i in range(4):
            fixture.plans[f"default/high-{i}"] = ([f"low-{i}"], [f"n{i}"])
            fixture.pods(a_pod(f"high-{i}", cpu=2, priority=9, scheduler_name=OURS))
            await fixture.turn()
        assert len(fixture.ledger.preemptions) == 2, "half of the limit: they are of one namespace"
        before = fixture.scheduler.loop.decisions
        for _ in range(8):
            await fixture.turn(1)
        assert fixture.scheduler.loop.decisions == before
        fixture.delete("default/high-2")  # it waited, and its turn is that of the next one
        fixture.gone("low-0")
        await fixture.turn()
        await fixture.turn()
        assert fixture.evicted == ["low-0", "low-1", "low-3"]

    preemption_test(life)
