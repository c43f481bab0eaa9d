"""The first gang in line keeps the room it waits for: who comes after it goes where that does no harm, or waits."""

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Node, NodeSelectorRequirement, NodeSelectorTerm, Pod
from kubenexus.api.meta import OwnerReference
from kubenexus.app.holes import HELD
from kubenexus.framework.decision import Decision
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.small import a_member
from tests.app.hamlet import Hamlet

RACK = "network.kubenexus.io/rack-id"
IN_ONE_RACK = {"kueue.x-k8s.io/podset-required-topology": "rack"}
KEPT = "is kept for gang default/llama, which comes first"


def gang(name: str, size: int, **fields: Any) -> list[Pod]:
    return [a_member(f"{name}-{i}", name, size, **fields) for i in range(size)]


def waiting(hamlet: Hamlet) -> None:
    """Two nodes of four CPUs, one of them taken; a gang waits that needs both."""
    hamlet.nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    hamlet.come(a_pod("busy", cpu=4))
    hamlet.work()
    hamlet.come(*gang("llama", 2, cpu=4))
    hamlet.work()
    assert hamlet.where("llama") == {}


def test_who_would_push_it_back_waits_and_is_told_for_whom() -> None:
    hamlet = Hamlet()
    waiting(hamlet)
    hamlet.come(a_pod("late", cpu=1))
    hamlet.work()
    assert hamlet.where("late") == {}
    assert hamlet.why("late") == f"0/2 nodes are available: the room that is left {KEPT}."
    hamlet.end("busy")
    hamlet.work()
    assert len(hamlet.where("llama")) == 2
    hamlet.end("llama-0", "llama-1")
    hamlet.work()
    assert len(hamlet.where("late")) == 1


def test_without_patience_nothing_is_kept() -> None:
    hamlet = Hamlet(patience=0.0)
    waiting(hamlet)
    hamlet.come(a_pod("late", cpu=1))
    hamlet.work()
    assert len(hamlet.where("late")) == 1


def test_who_takes_what_the_gang_cannot_use_does_not_wait() -> None:
    hamlet = Hamlet()
    hamlet.nodes(*(a_node(f"n{i}", cpu=16, gpu=8) for i in range(2)))
    hamlet.come(a_pod("busy", gpu=8))
    hamlet.work()
    hamlet.come(*gang("llama", 2, cpu=8, gpu=8))
    hamlet.work()
    hamlet.come(*(a_pod(f"small{i}", cpu=4) for i in range(8)))
    hamlet.work()
    assert len(hamlet.where("small")) == 4, "half the CPUs of each node: the others will be needed"
    hamlet.end("busy")
    hamlet.work()
    assert len(hamlet.where("llama")) == 2


def test_who_is_more_urgent_goes_first() -> None:
    hamlet = Hamlet()
    waiting(hamlet)
    hamlet.come(a_pod("urgent", cpu=1, priority=10))
    hamlet.work()
    assert len(hamlet.where("urgent")) == 1


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
    hamlet = Hamlet()
    waiting(hamlet)
    free = next(name for name in ("n0", "n1") if name != hamlet.where("busy")["busy"])
    named = NodeSelectorRequirement(key="metadata.name", operator="In", values=[free])
    pinned = [a_pod(name, cpu=1, requires=[NodeSelectorTerm(match_fields=[named])]) for name in ("other", "pinned")]
    meta = msgspec.structs.replace(pinned[1].metadata, owner_references=owners)
    hamlet.come(pinned[0])
    hamlet.work()
    assert hamlet.where("other") == {}
    hamlet.come(msgspec.structs.replace(pinned[1], metadata=meta))
    hamlet.work()
    assert hamlet.where("pinned") == ({"pinned": free} if goes else {})


def two_racks() -> list[Node]:
    return [a_node(f"{rack}{i}", cpu=4, labels={RACK: rack}) for rack in "ab" for i in range(2)]


def test_only_the_domain_where_it_comes_closest_is_kept() -> None:
    hamlet = Hamlet()
    hamlet.nodes(*two_racks())
    hamlet.come(a_pod("b-busy", cpu=4, node="b0"), a_pod("b-too", cpu=2, node="b1"), a_pod("a-busy", cpu=4, node="a0"))
    hamlet.come(*gang("llama", 4, cpu=2, annotations=IN_ONE_RACK))
    hamlet.work()
    assert "2 of at least 4 members fit in rack a" in hamlet.why("gang/llama")
    hamlet.come(a_pod("first", cpu=2), a_pod("second", cpu=2))
    hamlet.work()
    assert hamlet.where("first") == {"first": "b1"}
    assert hamlet.where("second") == {}
    assert hamlet.why("second").endswith(f"the room that is left in rack a {KEPT}.")
    hamlet.end("a-busy")
    hamlet.work()
    assert {node[0] for node in hamlet.where("llama").values()} == {"a"}


def test_a_gang_that_comes_after_it_yields_as_well() -> None:
    hamlet = Hamlet()
    waiting(hamlet)
    hamlet.come(*gang("small", 2, cpu=1))
    hamlet.work()
    assert hamlet.where("small") == {}
    assert KEPT in hamlet.why("gang/small")


def begun(hamlet: Hamlet) -> None:
    """A gang of four has run for two minutes when one comes that needs the whole node."""
    hamlet.nodes(a_node("n", cpu=6), a_node("m", cpu=2))
    hamlet.come(*gang("begun", 4, cpu=1, selects={"kubernetes.io/hostname": "n"}))
    hamlet.work()
    hamlet.run("begun", HELD)
    hamlet.come(*gang("llama", 6, cpu=1, priority=10, selects={"kubernetes.io/hostname": "n"}))
    hamlet.work()
    assert len(hamlet.where("begun")) == 4


def test_the_rest_of_a_gang_that_has_begun_follows_it_whoever_waits() -> None:
    hamlet = Hamlet()
    begun(hamlet)
    hamlet.lose("begun-3")
    hamlet.come(a_pod("late", cpu=3), a_member("begun-3", "begun", 4, cpu=1, uid="its successor"))
    hamlet.work()
    assert len(hamlet.where("begun")) == 4, "else each would wait for the other"
    assert KEPT in hamlet.why("late")


@pytest.mark.parametrize(
    ("lost", "sizes", "waited", "placed"),
    [
        pytest.param(1, [1], 0.0, 4, id="one as large as the lost one goes where that was"),
        pytest.param(1, ["500m"], 0.0, 4, id="one that is smaller does, too"),
        pytest.param(1, [2], 0.0, 3, id="one that is larger waits"),
        pytest.param(2, [1, 1], 0.0, 4, id="two go where two were"),
        pytest.param(2, [1, 2], 0.0, 2, id="of two that the gang needs one is larger"),
        pytest.param(1, [1, 1, 1], 0.0, 4, id="those that the gang can do without wait"),
        pytest.param(1, [1], HELD, 3, id="nothing is held for it any longer"),
    ],
)
def test_members_that_a_gang_lacks_take_of_what_is_kept_only_the_room_that_lost_ones_left(
    lost: int, sizes: list[Any], waited: float, placed: int
) -> None:
    """A tenant may let members go and make larger ones, or more of them, as often as it likes."""
    hamlet = Hamlet()
    begun(hamlet)
    for i in range(lost):
        hamlet.lose(f"begun-{i}")
    hamlet.work()
    hamlet.clock.advance(waited)
    hamlet.holes.expire()
    here = {"kubernetes.io/hostname": "n"}
    hamlet.come(*(a_member(f"begun-{4 + i}", "begun", 4, cpu=size, selects=here) for i, size in enumerate(sizes)))
    hamlet.work()
    assert len(hamlet.where("begun")) == placed


def test_a_member_that_names_its_node_lets_no_others_pass() -> None:
    """A pod of one millicore, and the gang has begun; but it never was complete, and no member of it was lost."""
    hamlet = Hamlet()
    waiting(hamlet)
    hamlet.come(a_member("anchor", "small", 3, cpu="1m", node=hamlet.where("busy")["busy"]))
    hamlet.come(*(a_member(f"small-{i}", "small", 3, cpu=1) for i in range(2)))
    hamlet.work()
    assert hamlet.where("small") == {}
    assert KEPT in hamlet.why("gang/small")


def test_members_beyond_what_their_gang_needs_respect_what_is_kept() -> None:
    """A gang of two that goes on making members would take every place that becomes free, for ever."""
    hamlet = Hamlet()
    hamlet.nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    hamlet.come(*(a_member(f"more-{i}", "more", 2, cpu=1) for i in range(8)))
    hamlet.work()
    hamlet.come(*gang("llama", 2, cpu=3))
    hamlet.work()
    for i in range(8):
        hamlet.end(next(iter(hamlet.where("more"))))
        hamlet.come(a_member(f"more-{8 + i}", "more", 2, cpu=1))
        hamlet.work()
    assert len(hamlet.where("llama")) == 2


def test_a_gang_of_a_driver_and_workers() -> None:
    hamlet = Hamlet()
    hamlet.nodes(a_node("n0", cpu=4), a_node("n1", cpu=4), a_node("n2", cpu=4))
    hamlet.come(a_pod("busy", cpu=4))
    hamlet.work()
    workers = [a_member(f"llama-{i}", "llama", 4, cpu=3) for i in range(3)]
    hamlet.come(a_member("llama-driver", "llama", 4, cpu=1), *workers)
    hamlet.work()
    hamlet.clock.advance(1.0)
    hamlet.come(*(a_pod(f"late{i}", cpu=1) for i in range(3)))
    hamlet.work()
    placed = len(hamlet.where("late"))
    assert placed < 3, "the driver needs a place, too"
    hamlet.end("busy")
    hamlet.work()
    assert len(hamlet.where("llama")) == 4


def test_a_gang_that_waits_for_something_else_than_room_keeps_nothing() -> None:
    hamlet = Hamlet()
    hamlet.nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    hamlet.come(*gang("llama", 2, cpu=1, near=["app=nobody per kubernetes.io/hostname"]))
    hamlet.work()
    assert hamlet.why("gang/llama")
    hamlet.clock.advance(1.0)
    hamlet.come(*(a_pod(f"late{i}", cpu=4) for i in range(2)))
    hamlet.work()
    assert len(hamlet.where("late")) == 2


def test_room_that_appears_while_it_backs_off_is_its_own() -> None:
    hamlet = Hamlet()
    hamlet.nodes(*(a_node(f"n{i}", cpu=1) for i in range(3)))
    hamlet.come(*(a_pod(f"busy{i}", cpu=1) for i in range(3)))
    hamlet.work()
    hamlet.come(*gang("llama", 3, cpu=1))
    hamlet.work()
    for i in range(3):
        hamlet.clock.advance(0.1)
        hamlet.end(f"busy{i}")
        hamlet.come(a_pod(f"late{i}", cpu=1))
        hamlet.work()
    assert len(hamlet.where("llama")) == 3


def test_it_ends_with_the_gang() -> None:
    hamlet = Hamlet()
    waiting(hamlet)
    hamlet.come(a_pod("late", cpu=1))
    hamlet.work()
    hamlet.end("llama-0")
    hamlet.work()
    assert len(hamlet.where("late")) == 1


def test_it_lapses_when_the_gang_comes_no_closer_and_others_have_their_turn() -> None:
    hamlet = Hamlet(patience=300.0)
    waiting(hamlet)
    hamlet.come(a_pod("late", cpu=1))
    hamlet.clock.advance(299.0)
    hamlet.work()
    assert hamlet.where("late") == {}
    assert hamlet.reservations.due == pytest.approx(hamlet.clock.now() + 1.0)
    hamlet.clock.advance(1.0)
    hamlet.work()
    assert len(hamlet.where("late")) == 1
    hamlet.come(a_pod("later", cpu=1))
    hamlet.work()
    assert len(hamlet.where("later")) == 1
    hamlet.clock.advance(301.0)
    hamlet.end("late", "later")
    hamlet.work()
    hamlet.clock.advance(1.0)
    hamlet.come(a_pod("latest", cpu=1))
    hamlet.work()
    assert hamlet.where("latest") == {}, "its turn again"


def stream(hamlet: Hamlet) -> int:
    """Small jobs come for ever, each when another ends. Returns after how many of them the gang runs; 0: never."""
    hamlet.nodes(a_node("n", cpu=4))
    hamlet.come(*(a_pod(f"s{i}", cpu=1) for i in range(4)))
    hamlet.work()
    hamlet.come(*gang("llama", 4, cpu=1))
    hamlet.work()
    for i in range(4, 40):
        hamlet.clock.advance(1.0)
        hamlet.come(a_pod(f"s{i}", cpu=1))
        hamlet.work()
        if hamlet.where("llama"):
            return i - 4
        gone = sorted(hamlet.where("s"), key=lambda name: int(name[1:]))
        hamlet.end(*gone[:1])
    return 0


def test_a_stream_of_small_jobs_does_not_starve_a_gang() -> None:
    assert stream(Hamlet()) == 4
    assert stream(Hamlet(patience=0.0)) == 0, "as it would be without"


def test_nor_one_that_needs_whole_nodes() -> None:
    for annotations in ({}, IN_ONE_RACK):
        hamlet = Hamlet()
        hamlet.nodes(*two_racks())
        hamlet.come(*(a_pod(f"s{i}", cpu=1) for i in range(16)))
        hamlet.work()
        hamlet.come(*gang("llama", 2, cpu=4, annotations=annotations))
        hamlet.work()
        for i in range(16, 100):
            hamlet.clock.advance(1.0)
            hamlet.come(a_pod(f"s{i}", cpu=1))
            hamlet.end(random.Random(i).choice(sorted(hamlet.where("s"))))
            hamlet.work()
        assert len(hamlet.where("llama")) == 2
        assert len(hamlet.where("s")) >= 6, "the other nodes are used meanwhile"


# --- any jobs, in any order -----------------------------------------------------------------------------------------


class Story:
    """Jobs come and end at random on a small cluster of two racks."""

    def __init__(self, seed: int) -> None:
        self.dice, self.seed = random.Random(seed), seed
        self.hamlet = Hamlet(patience=self.dice.choice([30.0, 300.0]))
        self.hamlet.nodes(*two_racks())
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
                self.hamlet.come(*self.jobs[coming.pop()])
            self.hamlet.work()
            running = self.whole()
            if running:
                left.discard(self.over(self.dice.choice(sorted(running))))
            elif not coming:
                raise AssertionError(f"seed {self.seed}: nobody runs, and {sorted(left)} wait")
            self.hamlet.clock.advance(self.dice.choice([0.5, 5.0, 70.0]))

    def whole(self) -> set[str]:
        counts = Counter(name.partition("-")[0] for name in self.hamlet.where())
        assert all(len(self.jobs[name]) == count for name, count in counts.items()), f"seed {self.seed}"
        return set(counts)

    def over(self, name: str) -> str:
        self.hamlet.end(*(pod.metadata.name for pod in self.jobs[name]))
        return name


@pytest.mark.parametrize("part", range(4))
def test_every_job_that_fits_has_run_when_the_others_have_ended(part: int) -> None:
    for seed in range(part * 100, part * 100 + 100):
        Story(seed).play()


# --- what it costs and promises --------------------------------------------------------------------------------------


def test_a_decision_changes_nothing_whatever_is_kept() -> None:
    hamlet = Hamlet()
    waiting(hamlet)
    hamlet.come(a_pod("late", cpu=1), a_pod("large", cpu=2))
    reserved = hamlet.reservations.held("default-scheduler")
    turn = hamlet.room.pop()
    assert turn is not None

    def decided() -> Decision:
        return hamlet.planner.decide(turn.job, hamlet.ledger.snapshot(), 0.0, reserved)

    before = hamlet.ledger.generation
    assert decided() == decided()
    assert hamlet.ledger.generation == before
    assert not decided().placed
    assert hamlet.planner.decide(turn.job, hamlet.ledger.snapshot(), 0.0).placed
