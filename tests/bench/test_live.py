"""What is made of runs: pairs, ratios, promises and tables; and what is read from a watch and from /metrics."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from bench.live import meters, null_binder, report
from bench.live.__main__ import main, programme
from bench.live.cases import CASES, RACK, SCHEDULER, members, node, pod, pod_groups, scattered
from bench.live.contestants import NULL, OURS, THEIRS
from bench.live.ratios import against_null, compared, mean, pairs
from bench.live.runs import NotBound, Run, must_run
from bench.live.targets import judge
from bench.live.witness import Testimony
from kubenexus.testing.controlplane import ProcessGroup

GANGS = ["gangs", "gangs-large", "gangs-rack"]


def a_run(
    who: str, rate: float = 100.0, *, case: str = "basic", mode: str = "drain", pair: int = 0, **more: float
) -> Run:
    cpu = {"scheduler": more.get("cpu", 1.0), "kube-apiserver": 2.0, "etcd": 0.5}
    return Run(
        case=case,
        mode=mode,
        who=who,
        pair=pair,
        pods=1000,
        seconds=1000 / rate,
        first=1.0,
        cpu=cpu,
        calls={"binding": 1.0, "event": 1.0},
        bytes={"sent": 900.0, "watched": 2_000.0},
        peak_mb=more.get("mb", 80.0),
        p50=more.get("p50", 1.0),
        p99=more.get("p99", 2.0),
        watches=1,
    )


def test_ratios_are_taken_within_pairs_and_their_mean_is_geometric() -> None:
    runs = [
        a_run(OURS, 400), a_run(THEIRS, 100), a_run(NULL, 800),
        a_run(OURS, 100, pair=1), a_run(THEIRS, 100, pair=1), a_run(NULL, 200, pair=1),
        a_run(OURS, 999, pair=2),
    ]  # fmt: skip
    assert len(pairs(runs, "basic", "drain")) == 2, "a pair that is not whole does not count"
    assert compared(runs, lambda run: run.rate, "basic", "drain") == pytest.approx(2.0)
    assert against_null(runs, "basic", "drain") == pytest.approx(0.5)
    assert compared(runs, lambda run: run.rate, "spread", "drain") is None
    assert mean([0.5, 2.0]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("ours", "theirs", "null", "kept"),
    [
        pytest.param(200, 100, 1000, True, id="twice kube-scheduler's"),
        pytest.param(190, 100, 1000, False, id="less than twice, and far from the ceiling"),
        pytest.param(160, 100, 200, True, id="less than twice, but near the ceiling"),
        pytest.param(140, 100, 200, False, id="less than either"),
    ],
)
def test_the_pace_is_judged_by_the_lesser_of_two_limits(ours: float, theirs: float, null: float, kept: bool) -> None:
    pace = next(judge([a_run(OURS, ours), a_run(THEIRS, theirs), a_run(NULL, null)]))
    assert ("pods/s" in pace.what, pace.kept) == (True, kept)


def test_a_gang_may_be_a_little_further_from_the_ceiling() -> None:
    def kept(case: str) -> bool:
        return next(
            judge([a_run(OURS, 143, case=case), a_run(THEIRS, 100, case=case), a_run(NULL, 200, case=case)])
        ).kept

    assert [kept("spread"), kept("gangs")] == [False, True]


def test_every_promise_is_judged_where_it_was_measured() -> None:
    runs = [a_run(who, case=case, mode=mode) for case in CASES for mode in ("drain", "burst") for who in (OURS, THEIRS)]
    judged = [(each.what.split(",")[0], each.case) for each in judge(runs)]
    assert len(judged) == 11 + 5 + 2 + 2 * len(CASES) + 1
    assert [case for what, case in judged if "CPU" in what] == ["basic", "required-affinity", *GANGS]
    assert [case for what, case in judged if "memory" in what] == ["basic"]


def test_a_promise_not_kept_is_shown_as_such() -> None:
    runs = [a_run(OURS, 300, cpu=1.0, mb=81.0), a_run(THEIRS, 100, cpu=3.0, mb=160.0)]
    shown = report.verdicts(judge(runs))
    assert [line.split()[0] for line in shown.splitlines()[1:]] == ["pass", "FAIL", "FAIL"]
    assert "**no**" in report.tables(runs, judge(runs))


def test_every_table_has_as_many_cells_in_each_row_as_in_its_head() -> None:
    runs = [a_run(who, mode=mode) for mode in ("drain", "burst") for who in (OURS, THEIRS, NULL)]
    for table in report.tables(runs, judge(runs)).split("\n\n"):
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert "kubenexus" in report.line(runs[0])


def test_contestants_take_turns_in_being_the_first() -> None:
    steps = list(programme(("basic", "spread"), ("drain",), (THEIRS, NULL, OURS), 2))
    assert [(case.name, who, pair) for case, _, who, pair in steps[:6]] == [
        ("basic", THEIRS, 0), ("basic", NULL, 0), ("basic", OURS, 0),
        ("basic", NULL, 1), ("basic", OURS, 1), ("basic", THEIRS, 1),
    ]  # fmt: skip


def test_the_witness_sees_a_pod_come_into_its_watch_and_leave_it() -> None:
    seen, shape = Testimony(), b'{"type":"%s","object":{"metadata":{"name":"%s","resourceVersion":"%d"}}}\n'
    lines = [(b"ADDED", b"p-1"), (b"ADDED", b"canary"), (b"BOOKMARK", b""), (b"DELETED", b"p-1"), (b"DELETED", b"p-1")]
    versions = [seen.note(shape % (*line, number), float(number)) for number, line in enumerate(lines)]
    assert (seen.created, seen.bound) == ({"p-1": 0.0}, {"p-1": 3.0})
    assert versions == ["0", "1", "2", "3", "4"]


PAGE = """
apiserver_request_total{code="201",resource="pods",subresource="binding",verb="POST"} 5
apiserver_request_total{code="201",resource="pods",subresource="",verb="POST"} 700
apiserver_request_total{code="201",resource="events",subresource="",verb="POST"} 4
apiserver_request_total{code="0",resource="pods",subresource="",verb="WATCH"} 2
apiserver_request_total{code="200",resource="nodes",subresource="",verb="LIST"} 1
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT"} 90
apiserver_request_body_size_bytes_sum{resource="pods",verb="create"} 1000
apiserver_watch_events_sizes_sum{group="",resource="pods",version="v1"} 2.5e+03
apiserver_response_sizes_sum{resource="nodes",verb="LIST"} 300
apiserver_response_sizes_sum{resource="nodes",verb="WATCH"} 9
"""


def test_calls_and_bytes_are_a_schedulers_own() -> None:
    found = meters.read(PAGE)
    assert found.calls == {"binding": 5, "event": 4, "watch": 2, "list": 1}
    assert found.bytes == {"sent": 1000, "watched": 2500, "listed": 300}
    assert found.since(found).calls == {}


def test_pods_differ_by_case_and_ask_for_the_measured_scheduler() -> None:
    made = {name: pod(case, "p-1") for name, case in CASES.items()}
    assert {each["spec"]["schedulerName"] for each in made.values()} == {SCHEDULER}
    assert made["basic"]["spec"] == made["churn"]["spec"] != made["spread"]["spec"]


def named(pods: list[Any]) -> list[str]:
    return [each["spec"]["schedulingGroup"]["podGroupName"] for each in pods]


def test_members_of_gangs_are_interleaved_and_every_gang_is_whole() -> None:
    case = CASES["gangs"]
    pods, groups = members(case, "p-", 24), pod_groups(case, 24)
    assert named(pods[:4]) == ["gang-0000", "gang-0001", "gang-0002", "gang-0000"]
    assert Counter(named(pods)) == {each["metadata"]["name"]: 8 for each in groups}
    assert {each["spec"]["schedulingPolicy"]["gang"]["minCount"] for each in groups} == {8}
    assert len({each["metadata"]["name"] for each in pods}) == 24


def test_pods_without_gangs_have_no_groups() -> None:
    pods = members(CASES["basic"], "p-", 2)
    assert pods == [pod(CASES["basic"], "p-00000"), pod(CASES["basic"], "p-00001")]
    assert pod_groups(CASES["basic"], 2) == []


@pytest.mark.parametrize(("case", "asked", "made"), [("basic", 10, 10), ("gangs", 10, 16), ("gangs-large", 1, 1000)])
def test_a_run_has_whole_gangs(case: str, asked: int, made: int) -> None:
    assert CASES[case].whole(asked) == made
    assert CASES[case].drain == CASES[case].whole(CASES[case].drain)


def test_only_gangs_that_want_it_are_to_be_in_one_rack() -> None:
    wishes = {name: pod_groups(CASES[name], 4_000)[0]["spec"].get("schedulingConstraints") for name in GANGS}
    assert wishes == {"gangs": None, "gangs-large": None, "gangs-rack": {"topology": [{"key": RACK}]}}
    assert len({node(number, racks=True)["metadata"]["labels"][RACK] for number in range(5_000)}) == 50
    assert RACK not in node(0)["metadata"]["labels"], "where no gangs are measured nodes are as they were"


@pytest.mark.parametrize(("nodes", "count"), [(range(90, 98), 0), (range(96, 104), 1)])
def test_a_gang_in_several_racks_is_noticed(nodes: range, count: int) -> None:
    pods = members(CASES["gangs"], "p-", 8)
    for number, each in zip(nodes, pods, strict=True):
        each["spec"]["nodeName"] = node(number)["metadata"]["name"]
    assert scattered(pods) == count
    assert ("not in one rack" in report.line(replace(a_run(NULL), scattered=count))) is bool(count)


@pytest.mark.parametrize(
    ("items", "names"),
    [
        pytest.param(b'[{"metadata":{"name":"p-1"}}]', ["p-1"], id="a pod"),
        pytest.param(b"null", [], id="no pod yet"),
    ],
)
def test_the_null_binder_reads_lists(items: bytes, names: list[str]) -> None:
    listed, version = null_binder.read(b'{"metadata":{"resourceVersion":"7"},"items":%b}' % items)
    assert ([each["name"] for each in listed], version) == (names, "7")


def test_a_contestant_that_has_ended_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    family = ProcessGroup(tmp_path)
    try:
        ended = family.start(["sh", "-c", "echo out of nodes"], NULL)
        while ended.running:
            os.sched_yield()
        with pytest.raises(NotBound, match=r"(?s)null-binder has ended.*out of nodes"):
            must_run(ended)
    finally:
        family.close()


def test_an_unknown_case_is_refused_by_name() -> None:
    refused = CliRunner().invoke(main, ["--cases", "basic,nonsense"])
    assert refused.exit_code == 2
    assert "'nonsense' is not one of basic, node-affinity," in refused.output
