"""The first gang in line keeps the room it waits for: who comes after it goes where that does no harm, or waits."""

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Node, NodeSelectorRequirement, NodeSelectorTerm, Pod
from kubenexus.api.meta import OwnerReference
from kubenexus.app.gangs.replacement_holds import HOLD_SECONDS
from kubenexus.framework.decision import Decision
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.decision_fixture import DecisionFixture
from tests.rounds import rounds

RACK = "network.kubenexus.io/rack-id"
IN_ONE_RACK = {"kueue.x-k8s.io/podset-required-topology": "rack"}
KEPT = "is kept for gang default/llama, which comes first"


def gang(name: str, size: int, **fields: Any) -> list[Pod]:
    return [a_member(f"{name}-{i}", name, size, **fields) for i in range(size)]


def waiting(fixture: DecisionFixture) -> None:
    """Two nodes of four CPUs, one of them taken; a gang waits that needs both."""
    fixture.nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    fixture.come(a_pod("busy", cpu=4))
    fixture.work()
    fixture.come(*gang("llama", 2, cpu=4))
    fixture.work()
    assert fixture.where("llama") == {}


def test_who_would_push_it_back_waits_and_is_told_for_whom() -> None:
    fixture = DecisionFixture()
    waiting(fixture)
    fixture.come(a_pod("late", cpu=1))
    fixture.work()
    assert fixture.where("late") == {}
    assert fixture.why("late") == f"0/2 nodes are available: the room that is left {KEPT}."
    fixture.end("busy")
    fixture.work()
    assert len(fixture.where("llama")) == 2
    fixture.end("llama-0", "llama-1")
    fixture.work()
    assert len(fixture.where("late")) == 1


def test_without_patience_nothing_is_kept() -> None:
    fixture = DecisionFixture(patience=0.0)
    waiting(fixture)
    fixture.come(a_pod("late", cpu=1))
    fixture.work()
    assert len(fixture.where("late")) == 1


def test_who_takes_what_the_gang_cannot_use_does_not_wait() -> None:
    fixture = DecisionFixture()
    fixture.nodes(*(a_node(f"n{i}", cpu=16, gpu=8) for i in range(2)))
    fixture.come(a_pod("busy", gpu=8))
    fixture.work()
    fixture.come(*gang("llama", 2, cpu=8, gpu=8))
    fixture.work()
    fixture.come(*(a_pod(f"small{i}", cpu=4) for i in range(8)))
    fixture.work()
    assert len(fixture.where("small")) == 4, "half the CPUs of each node: the others will be needed"
    fixture.end("busy")
    fixture.work()
    assert len(fixture.where("llama")) == 2


def test_who_is_more_urgent_goes_first() -> None:
    fixture = DecisionFixture()
    waiting(fixture)
    fixture.come(a_pod("urgent", cpu=1, priority=10))
    fixture.work()
    assert len(fixture.where("urgent")) == 1


@pytest.mark.parametrize(
    ("owners", "goes"),
    [
        pytest.param([OwnerReference(kind="DaemonSet", controller=True)], True, id="a daemon"),
        pytest.param([], False, id="any pod may name a node"),
        pytest.param([OwnerReference(kind="DaemonSet")], False, id="a DaemonSet that is not its controller"),
        pytest.param([OwnerReference(kind="ReplicaSet", controller=True)], False, id="another controller"),
    ],
)
def test_of_pods_made_for_one_node_daemons_alone_take_what_is_kept(owners: list[OwnerReference], goes: bool) -> None:
    """Also when another pod that asks for the same was refused before."""
    fixture = DecisionFixture()
    waiting(fixture)
    free = next(name for name in ("n0", "n1") if name != fixture.where("busy")["busy"])
    named = NodeSelectorRequirement(key="metadata.name", operator="In", values=[free])
    pinned = [a_pod(name, cpu=1, requires=[NodeSelectorTerm(match_fields=[named])]) for name in ("other", "pinned")]
    meta = msgspec.structs.replace(pinned[1].metadata, owner_references=owners)
    fixture.come(pinned[0])
    fixture.work()
    assert fixture.where("other") == {}
    fixture.come(msgspec.structs.replace(pinned[1], metadata=meta))
    fixture.work()
    assert fixture.where("pinned") == ({"pinned": free} if goes else {})


def two_racks() -> list[Node]:
    return [a_node(f"{rack}{i}", cpu=4, labels={RACK: rack}) for rack in "ab" for i in range(2)]


def test_only_the_domain_where_it_comes_closest_is_kept() -> None:
    fixture = DecisionFixture()
    fixture.nodes(*two_racks())
    fixture.come(a_pod("b-busy", cpu=4, node="b0"), a_pod("b-too", cpu=2, node="b1"), a_pod("a-busy", cpu=4, node="a0"))
    fixture.come(*gang("llama", 4, cpu=2, annotations=IN_ONE_RACK))
    fixture.work()
    assert "2 of at least 4 members fit in rack a" in fixture.why("gang/llama")
    fixture.come(a_pod("first", cpu=2), a_pod("second", cpu=2))
    fixture.work()
    assert fixture.where("first") == {"first": "b1"}
    assert fixture.where("second") == {}
    assert fixture.why("second").endswith(f"the room that is left in rack a {KEPT}.")
    fixture.end("a-busy")
    fixture.work()
    assert {node[0] for node in fixture.where("llama").values()} == {"a"}


def test_a_gang_that_comes_after_it_yields_as_well() -> None:
    fixture = DecisionFixture()
    waiting(fixture)
    fixture.come(*gang("small", 2, cpu=1))
    fixture.work()
    assert fixture.where("small") == {}
    assert KEPT in fixture.why("gang/small")


def begun(fixture: DecisionFixture) -> None:
    """A gang of four has run for two minutes when one comes that needs the whole node."""
    fixture.nodes(a_node("n", cpu=6), a_node("m", cpu=2))
    fixture.come(*gang("begun", 4, cpu=1, selects={"kubernetes.io/hostname": "n"}))
    fixture.work()
    fixture.run("begun", HOLD_SECONDS)
    fixture.come(*gang("llama", 6, cpu=1, priority=10, selects={"kubernetes.io/hostname": "n"}))
    fixture.work()
    assert len(fixture.where("begun")) == 4


def test_the_rest_of_a_gang_that_has_begun_follows_it_whoever_waits() -> None:
    fixture = DecisionFixture()
    begun(fixture)
    fixture.lose("begun-3")
    fixture.come(a_pod("late", cpu=3), a_member("begun-3", "begun", 4, cpu=1, uid="its successor"))
    fixture.work()
    assert len(fixture.where("begun")) == 4, "else each would wait for the other"
    assert KEPT in fixture.why("late")


@pytest.mark.parametrize(
    ("lost", "sizes", "waited", "placed"),
    [
        pytest.param(1, [1], 0.0, 4, id="one as large as the lost one goes where that was"),
        pytest.param(1, ["500m"], 0.0, 4, id="one that is smaller does, too"),
        pytest.param(1, [2], 0.0, 3, id="one that is larger waits"),
        pytest.param(2, [1, 1], 0.0, 4, id="two go where two were"),
        pytest.param(2, [1, 2], 0.0, 2, id="of two that the gang needs one is larger"),
        pytest.param(1, [1, 1, 1], 0.0, 4, id="those that the gang can do without wait"),
        pytest.param(1, [1], HOLD_SECONDS, 3, id="nothing is held for it any longer"),
    ],
)
def test_members_that_a_gang_lacks_take_of_what_is_kept_only_the_room_that_lost_ones_left(
    lost: int, sizes: list[Any], waited: float, placed: int
) -> None:
    """A tenant may let members go and make larger ones, or more of them, as often as it likes."""
    fixture = DecisionFixture()
    begun(fixture)
    for i in range(lost):
        fixture.lose(f"begun-{i}")
    fixture.work()
    fixture.clock.advance(waited)
    fixture.replacement_holds.expire()
    here = {"kubernetes.io/hostname": "n"}
    fixture.come(*(a_member(f"begun-{4 + i}", "begun", 4, cpu=size, selects=here) for i, size in enumerate(sizes)))
    fixture.work()
    assert len(fixture.where("begun")) == placed


def test_a_member_that_names_its_node_lets_no_others_pass() -> None:
    """A pod of one millicore, and the gang has begun; but it never was complete, and no member of it was lost."""
    fixture = DecisionFixture()
    waiting(fixture)
    fixture.come(a_member("anchor", "small", 3, cpu="1m", node=fixture.where("busy")["busy"]))
    fixture.come(*(a_member(f"small-{i}", "small", 3, cpu=1) for i in range(2)))
    fixture.work()
    assert fixture.where("small") == {}
    assert KEPT in fixture.why("gang/small")


def test_members_beyond_what_their_gang_needs_respect_what_is_kept() -> None:
    """A gang of two that goes on making members would take every place that becomes free, for ever."""
    fixture = DecisionFixture()
    fixture.nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    fixture.come(*(a_member(f"more-{i}", "more", 2, cpu=1) for i in range(8)))
    fixture.work()
    fixture.come(*gang("llama", 2, cpu=3))
    fixture.work()
    for i in range(8):
        fixture.end(next(iter(fixture.where("more"))))
        fixture.come(a_member(f"more-{8 + i}", "more", 2, cpu=1))
        fixture.work()
    assert len(fixture.where("llama")) == 2


def test_a_gang_of_a_driver_and_workers() -> None:
    fixture = DecisionFixture()
    fixture.nodes(a_node("n0", cpu=4), a_node("n1", cpu=4), a_node("n2", cpu=4))
    fixture.come(a_pod("busy", cpu=4))
    fixture.work()
    workers = [a_member(f"llama-{i}", "llama", 4, cpu=3) for i in range(3)]
    fixture.come(a_member("llama-driver", "llama", 4, cpu=1), *workers)
    fixture.work()
    fixture.clock.advance(1.0)
    fixture.come(*(a_pod(f"late{i}", cpu=1) for i in range(3)))
    fixture.work()
    placed = len(fixture.where("late"))
    assert placed < 3, "the driver needs a place, too"
    fixture.end("busy")
    fixture.work()
    assert len(fixture.where("llama")) == 4


def test_a_gang_that_waits_for_something_else_than_room_keeps_nothing() -> None:
    fixture = DecisionFixture()
    fixture.nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    fixture.come(*gang("llama", 2, cpu=1, near=["app=nobody per kubernetes.io/hostname"]))
    fixture.work()
    assert fixture.why("gang/llama")
    fixture.clock.advance(1.0)
    fixture.come(*(a_pod(f"late{i}", cpu=4) for i in range(2)))
    fixture.work()
    assert len(fixture.where("late")) == 2


def test_room_that_appears_while_it_backs_off_is_its_own() -> None:
    fixture = DecisionFixture()
    fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(3)))
    fixture.come(*(a_pod(f"busy{i}", cpu=1) for i in range(3)))
    fixture.work()
    fixture.come(*gang("llama", 3, cpu=1))
    fixture.work()
    for i in range(3):
        fixture.clock.advance(0.1)
        fixture.end(f"busy{i}")
        fixture.come(a_pod(f"late{i}", cpu=1))
        fixture.work()
    assert len(fixture.where("llama")) == 3


def test_it_ends_with_the_gang() -> None:
    fixture = DecisionFixture()
    waiting(fixture)
    fixture.come(a_pod("late", cpu=1))
    fixture.work()
    fixture.end("llama-0")
    fixture.work()
    assert len(fixture.where("late")) == 1


def test_it_lapses_when_the_gang_comes_no_closer_and_others_have_their_turn() -> None:
    fixture = DecisionFixture(patience=300.0)
    waiting(fixture)
    fixture.come(a_pod("late", cpu=1))
    fixture.clock.advance(299.0)
    fixture.work()
    assert fixture.where("late") == {}
    assert fixture.reservations.due == pytest.approx(fixture.clock.now() + 1.0)
    fixture.clock.advance(1.0)
    fixture.work()
    assert len(fixture.where("late")) == 1
    fixture.come(a_pod("later", cpu=1))
    fixture.work()
    assert len(fixture.where("later")) == 1
    fixture.clock.advance(301.0)
    fixture.end("late", "later")
    fixture.work()
    fixture.clock.advance(1.0)
    fixture.come(a_pod("latest", cpu=1))
    fixture.work()
    assert fixture.where("latest") == {}, "its turn again"


def stream(fixture: DecisionFixture) -> int:
    """Small jobs come for ever, each when another ends. Returns after how many of them the gang runs; 0: never."""
    fixture.nodes(a_node("n", cpu=4))
    fixture.come(*(a_pod(f"s{i}", cpu=1) for i in range(4)))
    fixture.work()
    fixture.come(*gang("llama", 4, cpu=1))
    fixture.work()
    for i in range(4, 40):
        fixture.clock.advance(1.0)
        fixture.come(a_pod(f"s{i}", cpu=1))
        fixture.work()
        if fixture.where("llama"):
            return i - 4
        gone = sorted(fixture.where("s"), key=lambda name: int(name[1:]))
        fixture.end(*gone[:1])
    return 0


def test_a_stream_of_small_jobs_does_not_starve_a_gang() -> None:
    assert stream(DecisionFixture()) == 4
    assert stream(DecisionFixture(patience=0.0)) == 0, "as it would be without"


def test_nor_one_that_needs_whole_nodes() -> None:
    for annotations in ({}, IN_ONE_RACK):
        fixture = DecisionFixture()
        fixture.nodes(*two_racks())
        fixture.come(*(a_pod(f"s{i}", cpu=1) for i in range(16)))
        fixture.work()
        fixture.come(*gang("llama", 2, cpu=4, annotations=annotations))
        fixture.work()
        for i in range(16, 100):
            fixture.clock.advance(1.0)
            fixture.come(a_pod(f"s{i}", cpu=1))
            fixture.end(random.Random(i).choice(sorted(fixture.where("s"))))
            fixture.work()
        assert len(fixture.where("llama")) == 2
        assert len(fixture.where("s")) >= 6, "the other nodes are used meanwhile"


# --- any jobs, in any order -----------------------------------------------------------------------------------------


class Story:
    """Jobs come and end at random on a small cluster of two racks."""

    def __init__(self, seed: int) -> None:
        self.dice, self.seed = random.Random(seed), seed
        self.fixture = DecisionFixture(patience=self.dice.choice([30.0, 300.0]))
        self.fixture.nodes(*two_racks())
        self.jobs: dict[str, list[Pod]] = {}
        for i in range(self.dice.randint(4, 10)):
            self.jobs[f"j{i}"] = self.job(f"j{i}")

    def job(self, name: str) -> list[Pod]:
        """All of them fit the cluster when it is empty."""
        priority = self.dice.choice([0, 0, 100])
        if self.dice.random() < 0.4:
            return [a_pod(f"{name}-0", cpu=self.dice.randint(1, 4), priority=priority)]
        near = self.dice.random() < 0.5
        cpu = self.dice.choice([1, 2, 4])
        most = (8 if near else 16) // cpu
        notes = IN_ONE_RACK if near else {}
        return gang(name, self.dice.randint(2, min(most, 6)), cpu=cpu, priority=priority, annotations=notes)

    def play(self) -> None:
        coming, left = list(self.jobs), set(self.jobs)
        while left:
            while coming and self.dice.random() < 0.6:
                self.fixture.come(*self.jobs[coming.pop()])
            self.fixture.work()
            running = self.whole()
            if running:
                left.discard(self.over(self.dice.choice(sorted(running))))
            elif not coming:
                raise AssertionError(f"seed {self.seed}: nobody runs, and {sorted(left)} wait")
            self.fixture.clock.advance(self.dice.choice([0.5, 5.0, 70.0]))

    def whole(self) -> set[str]:
        counts = Counter(name.partition("-")[0] for name in self.fixture.where())
        assert all(len(self.jobs[name]) == count for name, count in counts.items()), f"seed {self.seed}"
        return set(counts)

    def over(self, name: str) -> str:
        self.fixture.end(*(pod.metadata.name for pod in self.jobs[name]))
        return name


@pytest.mark.parametrize("part", range(4))
def test_every_job_that_fits_has_run_when_the_others_have_ended(part: int) -> None:
    for seed in range(part, 4 * rounds(25, 100), 4):
        Story(seed).play()


# --- what it costs and promises --------------------------------------------------------------------------------------


def test_a_decision_changes_nothing_whatever_is_kept() -> None:
    fixture = DecisionFixture()
    waiting(fixture)
    fixture.come(a_pod("late", cpu=1), a_pod("large", cpu=2))
    reserved = fixture.reservations.held("default-scheduler")
    attempt = fixture._pop()
    assert attempt is not None

    def decided() -> Decision:
        return fixture.planner.decide(attempt.job, fixture.ledger.snapshot(), 0.0, reserved)

    before = fixture.ledger.generation
    assert decided() == decided()
    assert fixture.ledger.generation == before
    assert not decided().placed
    assert fixture.planner.decide(attempt.job, fixture.ledger.snapshot(), 0.0).placed
