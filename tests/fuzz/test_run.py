"""The fuzz run itself: a short one, every way once, and proof that it finds what it should."""

from random import Random
from typing import Any

import numpy as np
import pytest

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.resource_claim import DeviceClass
from kubenexus.plan.decide import Planner
from kubenexus.plugins.node_resources.fit import NodeResourcesFit
from kubenexus.state.ledger import Ledger
from kubenexus.testing.fuzz import stream, valid_objects
from kubenexus.testing.fuzz.__main__ import main
from kubenexus.testing.fuzz.call_counting import ALLOWANCE, TooMuchWork, counted
from kubenexus.testing.fuzz.fuzz_run import FuzzRun
from kubenexus.testing.fuzz.report import report
from tests.rounds import rounds

SEED = 20
OBJECTS = rounds(1000, 3000)


def broken(fuzz: FuzzRun) -> list[str]:
    return [f"{violation.law} (object {violation.number}): {violation.detail}" for violation in fuzz.tally.violations]


def test_a_thousand_objects_break_no_law() -> None:
    fuzz = FuzzRun(SEED)
    tally = fuzz.run(OBJECTS)
    assert broken(fuzz) == []
    assert tally.objects.total() >= OBJECTS
    for outcome in ("accepted", "refused", "quarantined, its node fenced", "deleted"):
        assert tally.objects["hostile", outcome] > 10
    assert tally.objects["good", "refused"] == 0
    assert tally.decisions["Success"] > OBJECTS // 10
    assert len(tally.decisions) >= 4
    assert len(tally.refused) > 50


WAYS = [
    pytest.param(kind, way, id=f"{kind.__name__}, {way.__name__.replace('_', ' ')}")
    for kind in (Pod, Node, DeviceClass)
    for ways in stream.ways(kind)
    for way in dict.fromkeys(ways)
]


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_every_way_to_spoil_an_object_breaks_no_law(kind: Any, way: Any) -> None:
    fuzz, rng = FuzzRun(SEED), Random(way.__name__)
    for number in range(rounds(30, 100)):
        before = stream.event(SEED, number)
        if before.way == stream.GOOD:
            fuzz.step(before)
    for number in range(3 if "many" in way.__name__ or "megabyte" in way.__name__ else rounds(5, 10)):
        fuzz.step(stream.spoiled(rng, kind, way, 32 * number))  # every 32nd object's work is counted
    fuzz.close_books()
    assert broken(fuzz) == []


def test_the_same_seed_makes_the_same_objects_and_the_same_outcome() -> None:
    one, two = (FuzzRun(7) for _ in range(2))
    one.run(400)
    two.run(400)
    assert one.tally.objects == two.tally.objects
    assert one.tally.decisions == two.tally.decisions
    assert stream.event(7, 123) == stream.event(7, 123) != stream.event(8, 123)


def test_good_objects_are_all_accepted() -> None:
    fuzz, rng = FuzzRun(SEED), Random(1)
    for number in range(300):
        kind: Any = rng.choice((Pod, Node, DeviceClass))
        thing = (
            valid_objects.pod(rng, 0.5)
            if kind is Pod
            else valid_objects.node(rng)
            if kind is Node
            else valid_objects.device_class(rng)
        )
        fuzz.step(stream.FuzzEvent(number, kind, stream._dumped(rng, thing)))
    fuzz.close_books()
    assert broken(fuzz) == []
    assert set(fuzz.tally.objects) == {("good", "accepted")}


# --- it can fail ---------------------------------------------------------------------------------------------------


def found(fuzz: FuzzRun, law: str) -> bool:
    return any(law in violation.law for violation in fuzz.tally.violations)


def finds(fuzz: FuzzRun, *laws: str) -> bool:
    """Whether all these are broken within 1,500 objects."""
    for first in range(0, 1500, 150):
        fuzz.run(first + 150, first)
        if all(found(fuzz, law) for law in laws):
            return True
    return False


def test_a_ledger_that_forgets_its_fences_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "block_unreadable_pod", lambda self, key, node: set())
    assert finds(FuzzRun(SEED), "the books: other nodes are fenced", "a placement: put on")


def test_a_rule_that_lets_everything_in_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeResourcesFit, "filter", lambda self, pod, nodes, verdict: None)
    assert finds(FuzzRun(SEED), "a placement: cpu on")


def test_a_miscount_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: Ledger, key: str) -> set[int]:
        record = self.pods.get(key)
        if record is not None and record.node in self.nodes.row_of:
            self.nodes.resources.used[0, self.nodes.row_of[record.node]] += 1
        return forgotten(self, key)

    forgotten = Ledger.remove_pod
    monkeypatch.setattr(Ledger, "remove_pod", careless)
    assert finds(FuzzRun(SEED), "the books", "the digest")


def test_an_exception_is_found_told_with_its_place_and_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = Planner.decide

    def moody(self: Planner, job: Any, snapshot: Any, now: float) -> Any:
        if job.pods[0].metadata.name.endswith("7"):
            raise ZeroDivisionError("seven")
        return decide(self, job, snapshot, now)

    monkeypatch.setattr(Planner, "decide", moody)
    fuzz = FuzzRun(SEED)
    fuzz.run(600)
    assert found(fuzz, "decide: ZeroDivisionError escaped")
    assert fuzz.tally.decisions["Success"] > 50
    assert any("--seed 20 --object" in line for line in report(fuzz.tally, SEED, 1.0))


def test_a_warning_is_taken_for_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Ledger.upsert_node

    def overflowing(self: Ledger, node: Node) -> set[int]:
        np.int64(2**62) * np.int64(4)
        return seen(self, node)

    monkeypatch.setattr(Ledger, "upsert_node", overflowing)
    fuzz = FuzzRun(SEED)
    fuzz.run(50)
    assert found(fuzz, "ledger: RuntimeWarning escaped")


def test_work_beyond_the_allowance_is_stopped() -> None:
    def for_ever() -> None:
        while True:
            len("x")

    with pytest.raises(TooMuchWork):
        counted(for_ever, 10)
    answer, calls = counted(lambda: sum(len(text) for text in ["a"] * 50), 0)
    assert answer == 50
    assert 50 < calls < 200 < ALLOWANCE


# --- the command ---------------------------------------------------------------------------------------------------


def test_the_command_prints_what_became_of_the_objects(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--objects", "300", "--seed", str(SEED)]) == 0
    printed = capsys.readouterr().out
    for words in ("decisions, seed 20", "objects", "refused at", "decisions", "slowest", "no violations"):
        assert words in printed


def test_the_command_fails_and_says_how_to_see_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "upsert_node", lambda self, node: 1 // 0)
    assert main(["--objects", "20", "--seed", str(SEED)]) == 1
    printed = capsys.readouterr().out
    told = printed.partition("VIOLATION ledger: ZeroDivisionError escaped")[2]
    again = told.partition("--object ")[2].split()[0]
    assert main(["--seed", str(SEED), "--object", again]) == 1
    assert f"object {again}: Node" in capsys.readouterr().out


def test_one_object_can_be_seen_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", str(SEED), "--object", "5"]) == 0
    assert "object 5: " in capsys.readouterr().out
