"""Gangs in a whole scheduler: they wait until they are there, start together, and nothing that goes wrong on the way
leaves half of one behind by choice."""

import random
from collections import Counter

import msgspec
import pytest

from kubenexus.api.core import Pod, SchedulingGroup
from kubenexus.queue.gangs.gang_jobs import INCOMPLETE
from kubenexus.queue.queued_job import QueueState
from kubenexus.state.digest import digest
from kubenexus.state.pods import PodStage
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.api.gangs.builders import LEAST, NAME, a_member, pod_group
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.async_helpers import wait_until
from tests.bind.server import AWAY, BUSY, FORBIDDEN, LOST, SILENT
from tests.queue.assembler_fixture import short

GANG = "default/gang/llama"


def gang(name: str, size: int, least: int | None = None, **fields: object) -> list[Pod]:
    number = size if least is None else least
    return [a_member(f"{name}-{i}", name, number, **fields) for i in range(size)]


def bound(fixture: SchedulerFixture, name: str) -> int:
    """How many of a gang have a node, by the server's word."""
    return sum(1 for pod in fixture.server.pods.values() if pod.spec.node_name and pod.metadata.name.startswith(name))


# --- who belongs to it --------------------------------------------------------------------------------------------


def said(gang: str = "", node: str = "", uid: str = "x") -> Pod:
    """A pod whose gang, if any, stands in its annotations."""
    return a_pod("x", cpu=1, node=node, uid=uid, annotations={NAME: gang, LEAST: "2"} if gang else {})


@pytest.mark.parametrize(
    ("then", "job"),
    [
        pytest.param(said("llama", "n"), GANG, id="as before"),
        pytest.param(said("llama"), GANG, id="without its node"),
        pytest.param(said("", "n"), "default/x", id="no longer of a gang"),
        pytest.param(said("gemma", "n"), "default/gang/gemma", id="of another"),
        pytest.param(said(uid="new"), "default/x", id="made again, of no gang"),
        pytest.param(said("gemma", uid="new"), "default/gang/gemma", id="made again, of another"),
        pytest.param(said("llama", uid="new"), GANG, id="made again"),
    ],
)
def test_a_bound_member_that_is_seen_again_is_in_the_gang_that_it_says_now(then: Pod, job: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(said("llama", "n"))
        assert fixture.handlers.assembler.waiting.job_key("default/x") == GANG
        fixture.pods(then)
        assert fixture.handlers.assembler.waiting.job_key("default/x") == job

    scheduler_test(life)


# --- waiting and starting -----------------------------------------------------------------------------------------


def test_a_gang_waits_until_it_is_there_and_is_then_bound_as_one_job() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=2) for i in range(4)))
        members = gang("llama", 8, cpu=1)
        fixture.pods(*members[:7])
        assert await fixture.work() == 0
        assert fixture.where() == {}
        assert len(fixture.queue) == 1
        fixture.pods(members[7])
        assert await fixture.work() == 1, "one decision for all"
        assert Counter(fixture.where().values()) == {f"n{i}": 2 for i in range(4)}
        assert bound(fixture, "llama") == 8
        assert len(fixture.queue) == 0

    scheduler_test(life)


def test_members_that_come_later_join_it() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        members = gang("llama", 5, least=3, cpu=1)
        fixture.pods(*members[:3])
        await fixture.work()
        fixture.echo()
        fixture.pods(*members[3:])
        await fixture.work()
        assert bound(fixture, "llama") == 5

    scheduler_test(life)


def test_a_gang_in_a_pod_group_waits_for_the_group() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        pods = [a_pod(f"m{i}", cpu=1, scheduling_group=SchedulingGroup(pod_group_name="g")) for i in range(3)]
        fixture.pods(*pods)
        await fixture.work()
        assert fixture.where() == {}
        fixture.things(pod_group("g", 4))
        await fixture.work()
        assert fixture.where() == {}
        fixture.things(pod_group("g", 3))
        await fixture.work()
        assert bound(fixture, "m") == 3

    scheduler_test(life)


def test_a_gang_that_must_be_close_is_and_its_replacements_go_where_it_is() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        rack = "network.kubenexus.io/rack-id"
        fixture.nodes(*(a_node(f"a{i}", cpu=2, labels={rack: "a"}) for i in range(2)))
        fixture.nodes(*(a_node(f"b{i}", cpu=2, labels={rack: "b"}) for i in range(2)))
        fixture.pods(a_pod("other", cpu=1, node="a0"))
        notes = {"kueue.x-k8s.io/podset-required-topology": "rack"}
        fixture.pods(*gang("llama", 4, cpu=1, annotations=notes))
        await fixture.work()
        fixture.echo()
        assert {node[0] for name, node in fixture.where().items() if name.startswith("llama")} == {"b"}
        fixture.delete("default/llama-2")
        fixture.pods(a_member("llama-2", "llama", 4, cpu=1, annotations=notes, uid="its successor"))
        await fixture.work()
        assert fixture.where()["llama-2"].startswith("b")

    scheduler_test(life)


def test_a_gang_that_no_rack_holds_waits_though_the_cluster_would() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        rack = "network.kubenexus.io/rack-id"
        fixture.nodes(a_node("a", cpu=3, labels={rack: "a"}), a_node("b", cpu=3, labels={rack: "b"}))
        fixture.pods(*gang("llama", 4, cpu=1, annotations={"kueue.x-k8s.io/podset-required-topology": "rack"}))
        await fixture.work()
        assert fixture.where() == {}
        assert fixture.queue.state(GANG) is QueueState.UNSCHEDULABLE
        fixture.nodes(a_node("c", cpu=4, labels={rack: "c"}))
        fixture.clock.advance(20.0)
        await fixture.work()
        assert Counter(fixture.where().values()) == {"c": 4}

    scheduler_test(life)


def test_a_pod_of_the_same_name_as_a_gang_is_another_job() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        fixture.pods(a_pod("llama", cpu=1), *gang("llama", 2, cpu=1))
        assert await fixture.work() == 2
        assert len(fixture.where()) == 3

    scheduler_test(life)


# --- what is said -------------------------------------------------------------------------------------------------


def conditions(fixture: SchedulerFixture) -> list[tuple[str, str, str]]:
    found = [body["status"]["conditions"][0] for body in fixture.server.said("/status")]
    return [(each["status"], each["reason"], each["message"]) for each in found]


def test_every_member_is_told_once_no_more_have_come_for_a_moment_and_the_first_how_many_there_are() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        members = gang("llama", 5)
        fixture.pods(*members[:2])
        await fixture.work()
        await fixture.notes()
        assert conditions(fixture) == []
        fixture.clock.advance(0.9)
        fixture.pods(members[2])
        await fixture.work()
        fixture.clock.advance(0.9)
        await fixture.work()
        await fixture.notes()
        assert conditions(fixture) == [], "one came meanwhile"
        fixture.clock.advance(0.2)
        assert not fixture.scheduler.loop.idle
        await fixture.work()
        await fixture.notes()
        sentences = [short("llama", 3, 5), INCOMPLETE, INCOMPLETE]
        assert conditions(fixture) == [("False", "SchedulingGated", sentence) for sentence in sentences]
        assert fixture.told() == [f"FailedScheduling llama-{i}: {text}" for i, text in enumerate(sentences)]

    scheduler_test(life)


def test_a_gang_that_is_complete_in_a_moment_is_told_nothing() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        members = gang("llama", 5)
        fixture.pods(*members[:4])
        await fixture.work()
        fixture.pods(members[4])
        await fixture.work()
        fixture.clock.advance(5.0)
        await fixture.work()
        await fixture.notes()
        assert conditions(fixture) == []

    scheduler_test(life)


def test_a_malformed_minimum_is_told_to_the_pod() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(a_member("m", least="abc"))
        await fixture.work()
        fixture.clock.advance(2.0)
        await fixture.work()
        await fixture.notes()
        said = f"label {LEAST}: must be a whole number from 1, not 'abc'"
        assert conditions(fixture) == [("False", "SchedulingGated", said)]
        assert fixture.told() == [f"FailedScheduling m: {said}"]
        assert fixture.where() == {}

    scheduler_test(life)


def test_a_conflict_is_an_event() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        labels = {"kueue.x-k8s.io/pod-group-name": "other"}
        notes = {"kueue.x-k8s.io/pod-group-total-count": "2"}
        fixture.pods(*(a_member(f"m{i}", labels=labels, annotations=notes) for i in range(2)))
        await fixture.work()
        (said,) = [text for text in fixture.told() if text.startswith("GangUnclear")]
        assert "kueue.x-k8s.io/pod-group-name says otherwise: gang default/other, at least 2" in said

    scheduler_test(life)


def test_a_gang_that_is_refused_is_told_and_its_first_member_why() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(*gang("llama", 3, cpu=1))
        await fixture.work()
        await fixture.notes()
        assert fixture.where() == {}
        assert fixture.queue.state(GANG) is QueueState.UNSCHEDULABLE
        assert [reason for _, reason, _ in conditions(fixture)] == ["Unschedulable"] * 3
        first, *others = [message for _, _, message in conditions(fixture)]
        assert first.startswith("0/1 nodes are available: 1 of at least 3 members fit in the whole cluster; 2 more")
        assert others == ["its gang was refused as a whole: pod llama-0 says why"] * 2

    scheduler_test(life)


# --- never half of one --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_f01_of_two_gangs_that_need_all_nodes_one_runs_and_the_other_has_nothing(seed: int) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        dice = random.Random(seed)
        fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(6)))
        pods = gang("left", 6, cpu=1) + gang("right", 6, cpu=1)
        dice.shuffle(pods)
        for pod in pods:
            fixture.pods(pod)
            if dice.random() < 0.3:
                await fixture.work()
        await fixture.work()
        assert sorted((bound(fixture, "left"), bound(fixture, "right"))) == [0, 6]

    scheduler_test(life)


@pytest.mark.parametrize("seed", range(3))
def test_f04_many_gangs_on_two_machines_always_drain(seed: int) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        dice = random.Random(seed)
        fixture.nodes(a_node("n0", gpu=8), a_node("n1", gpu=8))
        sizes = {f"g{i:02}": dice.randint(1, 8) for i in range(30)}
        pods = [pod for name, size in sizes.items() for pod in gang(name, size, gpu=1)]
        dice.shuffle(pods)
        fixture.pods(*pods)
        done: set[str] = set()
        for _ in range(200):
            await fixture.work()
            fixture.echo()
            running = {name for name in sizes if bound(fixture, name + "-")}
            assert all(bound(fixture, name + "-") == sizes[name] for name in running)
            for name in sorted(running)[:2]:
                for i in range(sizes[name]):
                    fixture.delete(f"default/{name}-{i}")
                done.add(name)
            fixture.clock.advance(1.0)
            if len(done) == len(sizes):
                return
        raise AssertionError(f"stuck: {sorted(sizes.keys() - done)}")

    scheduler_test(life)


def test_f05_a_member_that_fits_nowhere_leaves_nobody_assumed() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=4) for i in range(10)))
        fixture.pods(*gang("llama", 10, cpu=1)[:9], a_member("llama-9", "llama", 10, cpu=64))
        await fixture.work()
        assert fixture.where() == {}
        fixture.pods(a_pod("other", cpu=4))
        await fixture.work()
        assert bound(fixture, "other") == 1

    scheduler_test(life)


def test_f06_half_of_a_gang_is_never_bound() -> None:
    """Five hundred gangs of two on room for one, with members that come, leave and are looked at in any order."""

    async def life(fixture: SchedulerFixture) -> None:
        dice = random.Random(6)
        fixture.nodes(a_node("n", cpu=1))
        for i in range(500):
            members = gang(f"g{i}", 2, cpu=1)
            for pod in dice.sample(members, 2):
                fixture.pods(pod)
                if dice.random() < 0.5:
                    fixture.scheduler.loop.run_burst()
            await fixture.work()
            for pod in dice.sample(members, dice.randint(0, 2)):
                fixture.delete(pod.key)
            fixture.clock.advance(dice.choice([0.0, 1.0, 15.0]))
        await fixture.work()
        assert fixture.server.binds == []
        assert fixture.where() == {}
        fixture.pods(a_pod("alone", cpu=1, priority=10))
        await fixture.work()
        assert fixture.server.binds == ["alone to n"]

    scheduler_test(life)


# --- when binds fail ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", [1, 2, 3, 4])
def test_f08_members_whose_binds_are_refused_follow_the_others(failing: int) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        fixture.pods(*gang("llama", 4, cpu=1))
        fixture.server.script.extend([FORBIDDEN] * failing)
        await fixture.work()
        assert all(fixture.stage(name) is not PodStage.NOMINATED for name in fixture.where())
        for _ in range(3):
            fixture.clock.advance(20.0)
            await fixture.work()
            fixture.echo()
        assert bound(fixture, "llama") == 4
        assert len(fixture.queue) == 0
        assert fixture.scheduler.handlers.assembler.waiting.job_key("default/llama-0") == GANG

    scheduler_test(life)


@pytest.mark.parametrize("fault", [AWAY, BUSY, FORBIDDEN, LOST, SILENT], ids=str)
@pytest.mark.parametrize("turn", range(4))
def test_f14_what_was_decided_reaches_the_server_or_is_taken_back(fault: Exception | str, turn: int) -> None:
    """Whatever becomes of one bind of a gang: the ledger has nobody on a node where the server will not have it."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        fixture.pods(*gang("llama", 4, cpu=1))
        fixture.server.script.extend([*[None] * turn, fault])
        await fixture.calm_down()
        assert fixture.where() == fixture.bound() == {f"llama-{i}": "n" for i in range(4)}
        assert (len(fixture.queue), fixture.scheduler.dispatcher.open_count) == (0, 0)

    scheduler_test(life)


@pytest.mark.parametrize("leads", [True, False], ids=["refused for ever", "no longer the leader"])
def test_f14_a_decision_that_never_reaches_the_server_holds_no_room(leads: bool) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        fixture.pods(*gang("llama", 4, cpu=1))
        fixture.server.outage = lambda: FORBIDDEN
        fixture.scheduler.loop.run_burst()
        assert len(fixture.where()) == 4, "decided"
        fixture.guard.leads = leads
        await wait_until(lambda: fixture.scheduler.dispatcher.open_count == 0)
        assert fixture.where() == fixture.bound() == {}
        assert fixture.queue.state(GANG) in (QueueState.BACKOFF, QueueState.ACTIVE)
        assert digest(fixture.ledger) == digest(a_ledger([a_node("n", cpu=4)], []))

    scheduler_test(life)


def test_while_some_are_missing_the_rest_of_the_gang_is_asked_for_beside_those_that_are_there() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        fixture.pods(*gang("llama", 4, cpu=1))
        fixture.server.script.extend([None, FORBIDDEN, FORBIDDEN])  # the first bind of a namespace goes alone
        fixture.scheduler.loop.run_burst()
        fixture.nodes(a_node("n", cpu=8, cordoned=True))  # what comes back finds no room
        await fixture.work()
        job = fixture.queue.job(GANG)
        assert job is not None
        assert (len(job.pods), job.minimum, job.bound_nodes) == (2, 2, ("n", "n"))

    scheduler_test(life)


def test_f09_a_member_that_is_being_deleted_between_decision_and_bind() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        pods = gang("llama", 3, cpu=1)
        fixture.pods(*pods)
        fixture.scheduler.loop.run_burst()
        leaving = msgspec.structs.replace(pods[1].metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        fixture.pods(msgspec.structs.replace(pods[1], metadata=leaving))
        await fixture.work()
        fixture.delete("default/llama-1")
        fixture.pods(a_member("llama-1", "llama", 3, cpu=1, uid="its successor"))
        await fixture.work()
        assert bound(fixture, "llama") == 3
        assert len(fixture.queue) == 0

    scheduler_test(life)


def test_a_gang_that_is_deleted_as_a_whole_leaves_its_room_to_the_next_at_once() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=3))
        fixture.pods(*gang("llama", 3, cpu=1))
        await fixture.work()
        fixture.echo()
        fixture.pods(*gang("next", 3, cpu=1))
        for i in range(3):  # first all are told to go, then they are gone
            pod = fixture.server.pods[f"default/llama-{i}"]
            leaving = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            fixture.pods(msgspec.structs.replace(pod, metadata=leaving))
        await fixture.work()
        for i in range(3):
            fixture.delete(f"default/llama-{i}")
        await fixture.work()
        assert bound(fixture, "next") == 3

    scheduler_test(life)


def test_f41_a_restart_in_the_middle_of_a_gang_completes_it() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n0", cpu=2), a_node("n1", cpu=2))
        pods = gang("llama", 4, cpu=1)
        there = [msgspec.structs.replace(p, spec=msgspec.structs.replace(p.spec, node_name="n0")) for p in pods[:2]]
        fixture.pods(*there, *pods[2:])
        await fixture.work()
        assert Counter(fixture.where().values()) == {"n0": 2, "n1": 2}
        assert bound(fixture, "llama") == 4

    scheduler_test(life)


def test_f35_members_that_have_ended_are_not_there_after_a_restart() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        pods = gang("llama", 3, cpu=1)
        fixture.pods(a_member("llama-0", "llama", 3, phase="Succeeded"), *pods[1:])
        await fixture.work()
        assert bound(fixture, "llama") == 0
        held = fixture.queue.gate_verdict(GANG)
        assert held is not None
        assert held.reasons == (short("llama", 2, 3),)

    scheduler_test(life)


def test_busy_binds_leave_no_member_behind() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        fixture.pods(*gang("llama", 4, cpu=1))
        fixture.server.script.extend([None, BUSY, None, BUSY])
        for _ in range(5):
            await fixture.work()
            fixture.clock.advance(20.0)
            fixture.echo()
        assert bound(fixture, "llama") == 4

    scheduler_test(life)


def test_a_gang_whose_members_were_just_listed_is_not_told_what_it_lacked_before() -> None:
    """More gangs than one turn of the loop builds, listed member by member for seconds: none is said to be short."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n0", cpu=999, pods=999))
        names = [f"g{i:03d}" for i in range(150)]
        fixture.things(*(pod_group(name, 3) for name in names))
        for number in range(3):
            for name in names:
                fixture.pods(a_pod(f"{name}-{number}", cpu=1, scheduling_group=SchedulingGroup(pod_group_name=name)))
            for _ in range(2 if number == 0 else 0):
                fixture.handlers.assembler.build_changed()
            fixture.clock.advance(1.5)
        await fixture.work()
        assert Counter(line.split()[0] for line in fixture.told()) == {"Scheduled": 3 * len(names)}

    scheduler_test(life)
