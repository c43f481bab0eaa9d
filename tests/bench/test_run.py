"""Every bench works and writes what it promises, on a cluster so small that nothing can be read from the times."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import longest_turn, shipped, suite
from bench.__main__ import main
from bench.cluster import CROWDED
from bench.measure import Memory, Pair, Result, Timing, timing
from bench.suite import Plan
from bench.targets import growth, judge
from kubenexus.testing.large.scenarios import dimensions

TINY = Plan(sizes=(100,), rounds=1, seconds=0.0, memory=(60, 200, 200), waiting=200, replayed=60, entries=50)


@pytest.fixture(scope="module")
def results() -> Iterator[list[Result]]:
    """Without settling down before each bench: that looks through all that other tests have left in this process, again
    and again, for times that nobody reads."""
    one_of_each = {about: (about, dimension) for about, dimension in dimensions()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "settle_down", lambda: None)
        for module in (suite, shipped):
            patch.setattr(module, "CROWDED", CROWDED._replace(residents=3))
        patch.setattr(longest_turn, "dimensions", one_of_each.values)  # tests/fuzz/test_growing.py plays all of them
        yield list(suite.run(TINY))


def test_every_bench_of_the_issue_is_there(results: list[Result]) -> None:
    found = {(result.bench, result.case) for result in results}
    both = ("basic", "node-affinity")
    assert {(f"decide.{how}", case) for how in ("cold", "warm", "mixed") for case in (*both, "crowded")} <= found
    wishes = ("required-affinity", "anti-affinity", "spread", "preferred-affinity", "deployment", "volumes")
    assert {(f"decide.{how}", case) for how in ("cold", "warm") for case in wishes} <= found
    gangs = ("8", "100", "1000", "1000-apart", "1000-rack", "tight-1000", "refuse-1000", "1+99", "500+500")
    assert {("plan.gang", case) for case in gangs} | {("commit.gang", "1000")} <= found
    assert {("plan.gang", f"{much}-kinds") for much in ("10", "50", "most", "too-many")} <= found
    assert ("replay", "drawn GPU cluster") in found
    assert {"queue.churn", "queue.refused"} <= {bench for bench, _ in found}
    assert ("memory", "200 pods, preferred-affinity") in found
    assert {("place", case) for case in (*both, "crowded", "100 classes")} <= found
    assert {("decode", "pod"), ("decode", "list of 500"), ("memory", "200 pods"), ("memory", "per pod")} <= found
    turns = {case.split(":")[0] for bench, case in found if bench == "longest turn"}
    assert turns == {"a pod that waits", "a pod that runs", "another object", "many objects"}
    assert len([case for bench, case in found if bench == "largest turn"]) == 1
    events = {case for bench, case in found if bench == "ledger.refresh"}
    assert {"pod added", "pod updated", "pod deleted", "node heartbeat", "node changed"} <= events


def test_times_and_sizes_are_positive_and_named_once(results: list[Result]) -> None:
    names = [(result.bench, result.case, result.nodes) for result in results]
    assert len(names) == len(set(names))
    for result in results:
        if isinstance(result, Timing):
            assert min(result.us, result.kernel_us, result.ratio, result.median_ratio) > 0
        elif result.case.startswith("200 pods"):
            assert result.mb > 10


def test_the_command_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    output = tmp_path / "made" / "bench.json"
    arguments = ["--nodes", "60", "--rounds", "2", "--only", "decide.warm/basic", "--output", str(output)]
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "decide.warm" in done.stdout
    (written,) = json.loads(output.read_text(encoding="utf-8"))
    assert {"bench": "decide.warm", "case": "basic", "nodes": 60}.items() <= written.items()
    assert {"us", "kernel_us", "ratio"} <= written.keys()


def test_the_markdown_is_a_table(tmp_path: Path) -> None:
    arguments = ["--nodes", "60", "--rounds", "1", "--only", "decode/pod", "--markdown"]
    done = CliRunner().invoke(main, [*arguments, "--output", str(tmp_path / "bench.json")])
    assert done.exit_code == 0
    assert "| decode | pod | 60 |" in done.stdout


@pytest.mark.parametrize("sizes", ["many", "0", "5,-1", " "])
def test_a_size_that_is_none_is_refused(sizes: str) -> None:
    done = CliRunner().invoke(main, ["--nodes", sizes])
    assert done.exit_code == 2
    assert "--nodes" in done.stderr


def test_the_least_disturbed_figures_are_compared() -> None:
    pairs = [Pair(40e-6, 20e-6, 20e-6), Pair(30e-6, 40e-6, 20e-6), Pair(90e-6, 10e-6, 20e-6)]
    found = timing("b", "c", 5, pairs)
    assert (found.us, found.kernel_us, found.ratio, found.median_ratio) == (30.0, 10.0, 3.0, 2.0)


def test_targets_are_judged_on_what_was_measured() -> None:
    def cold(nodes: int, us: float) -> Timing:
        return Timing("decide.cold", "basic", nodes, us, 10.0, us / 10.0, us / 10.0, 1)

    results: list[Result] = [cold(1_000, 100.0), cold(5_000, 101.0), cold(50_000, 5_000.0)]
    results.append(Memory("memory", "per pod", 5, bytes=9))
    assert growth(results, "decide.cold", 1_000, 50_000)["basic"] == pytest.approx(1.0)
    assert [(j.limit, j.kept, j.harder) for j in judge(results)] == [
        (10.0, False, False),
        (1_500.0, True, False),
        (0.75, False, False),
    ]


def planned(case: str, us: float, nodes: int = 5_000) -> Timing:
    return Timing("plan.gang", case, nodes, us, 30.0, us / 30.0, us / 30.0, 1)


@pytest.mark.parametrize(
    ("case", "us", "limit", "found", "kept"),
    [
        pytest.param("8", 600.0, 30.5, 20.0, True, id="a few members"),
        pytest.param("1000", 2400.0, 96.7, 80.0, True, id="many, of which each has its allowance"),
        pytest.param("1000", 3000.0, 96.7, 100.0, False, id="many that take longer than that"),
        pytest.param("refuse-1000", 300.0, 96.7, 10.0, True, id="a refusal that takes less than the allowance"),
        pytest.param("most-kinds", 60_000.0, 100.0, 60.0, True, id="many kinds, in milliseconds"),
    ],
)
def test_a_gang_is_judged_by_what_was_measured_and_nothing_is_taken_off(
    case: str, us: float, limit: float, found: float, kept: bool
) -> None:
    (judgement,) = judge([planned(case, us)])
    assert (judgement.limit, judgement.found, judgement.kept) == (limit, found, kept)


def test_how_gangs_grow_is_judged_only_where_they_are_the_same_at_all_sizes() -> None:
    cases = ("1000", "10-kinds", "most-kinds", "too-many-kinds")
    results: list[Result] = [planned(case, 100.0, nodes) for case in cases for nodes in (1_000, 50_000)]
    assert [judgement.case for judgement in judge(results)] == ["1000", "10-kinds"]
