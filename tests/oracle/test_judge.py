"""How the judge behaves: what it leaves out, what it does with broken input, what it prints and returns."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubenexus.framework.profile import Profile
from kubenexus.plugins import default_profile
from kubenexus.testing.oracle import compare_run, judge, upstream
from kubenexus.testing.oracle.__main__ import main
from kubenexus.testing.oracle.comparison_counts import Key
from tests.oracle.builders import CASE, VECTORS, a_case, aspects, judged, written


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Call it with a plugin's name, and it is as if that plugin were not built."""

    def forgotten(plugin: str) -> None:
        fewer = tuple(enabled for enabled in default_profile().plugins if enabled.name != plugin)
        monkeypatch.setattr(upstream, "default_profile", lambda: Profile("fewer", fewer))
        compare_run._built.cache_clear()

    yield forgotten
    compare_run._built.cache_clear()


def test_what_is_not_built_is_not_compared_and_all_else_is(tmp_path: Path, forget: Callable[[str], None]) -> None:
    forget("NodeUnschedulable")
    tally = judged(tmp_path, CASE)
    assert tally.agreed, tally.differences
    left = tally.not_compared
    assert left[Key("small", "filter", "NodeUnschedulable")] == 6
    assert left[Key("small", "first", "NodeUnschedulable")] == 2
    assert left[Key("small", "feasible")] == 1  # of `big`, node c is refused by a plugin that we have
    assert left[Key("small", "fitError")] == 1
    assert left[Key("small", "choice")] == 1
    assert tally.compared[Key("small", "first", "NodeResourcesFit")] == 2
    assert tally.compared[Key("small", "total")] == 2


def test_a_scorer_that_is_not_built_is_taken_out_of_the_total(tmp_path: Path, forget: Callable[[str], None]) -> None:
    forget("VolumeBinding")
    case = a_case()
    web = case["expected"]["pods"]["team/web"]
    web["scores"]["VolumeBinding"] = {"raw": [0, 50], "norm": [0, 50]}
    web["total"], web["best"] = [450, 480], ["b"]
    tally = judged(tmp_path, case)
    assert tally.agreed, tally.differences
    assert tally.not_compared[Key("small", "best")] == 1
    assert tally.compared[Key("small", "total")] == 2


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda case: case.pop("expected"), id="nothing expected"),
        pytest.param(lambda case: case["case"].pop("id"), id="no id"),
        pytest.param(lambda case: case["case"]["incoming"].pop(), id="a pod is missing"),
        pytest.param(lambda case: case["case"]["incoming"][0].update(spec=7), id="a pod cannot be decoded"),
        pytest.param(
            lambda case: case["case"]["objects"]["nodes"][0]["status"]["allocatable"].update(cpu="lots"),
            id="a node cannot be read",
        ),
    ],
)
def test_a_broken_case_is_one_difference_and_the_others_are_judged(tmp_path: Path, spoil: Any) -> None:
    broken = a_case()
    spoil(broken)
    tally = judged(tmp_path, broken, CASE)
    assert dict(tally.different) == {Key("small", "case"): 1}
    assert tally.compared[Key("small", "case")] == 2
    assert tally.compared[Key("small", "requests")] == 2
    assert not tally.unbalanced


def test_a_number_that_does_not_add_up_is_a_failure(tmp_path: Path) -> None:
    tally = judged(tmp_path, CASE)
    tally.held[Key("small", "requests")] += 1
    assert not tally.agreed


def test_it_says_what_differs_and_returns_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = a_case()
    case["expected"]["pods"]["team/web"]["scores"]["NodeResourcesFit"]["raw"][1] = 63
    assert main([str(written(tmp_path, "small", [case])), "--jobs", "1"]) == 1
    said = capsys.readouterr().out
    assert "small-1: raw, NodeResourcesFit, pod team/web, node b\n    ours:     62\n    expected: 63\n" in said
    assert "different 1\n" in said


def test_it_prints_what_was_compared_and_returns_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(written(tmp_path, "small", [CASE])), "--jobs", "1"]) == 0
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["small", "NodeResourcesFit", "17", "0", "0"] in words
    assert ["filter", "NodeUnschedulable", "6", "0", "0"] in words
    held = words[-1]
    assert (held[0], held[2], held[4]) == ("held", "compared", "not")
    assert int(held[1][:-1]) == int(held[3][:-1]) + int(held[6][:-1])


def test_differences_are_counted_beyond_those_that_are_kept(tmp_path: Path) -> None:
    case = a_case()
    for pod in case["expected"]["pods"].values():
        pod["requests"] = {}
    tally = judge([written(tmp_path, "small", [case, case])], most=3)
    assert tally.different[Key("small", "requests")] == 4
    assert len(tally.differences) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "no such file or folder", id="missing"),
        pytest.param(b"not gzip", "cannot be read", id="not gzip"),
        pytest.param(b"", "cannot be read", id="empty file"),
    ],
)
def test_an_unusable_file_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, said: str
) -> None:
    good, bad = written(tmp_path, "small", [CASE]), tmp_path / "bad.json.gz"
    if content is not None:
        bad.write_bytes(content)
    assert main([str(good), str(bad), "--jobs", "1"]) == 1
    printed = capsys.readouterr().out
    assert f"problem: {bad}: {said}" in printed
    assert "small  NodeName" in printed


def test_an_empty_folder_and_an_empty_list_are_failures(tmp_path: Path) -> None:
    assert judge([tmp_path]).problems == [f"{tmp_path}: no *.json.gz in this folder"]
    file = written(tmp_path, "small", [])
    assert judge([tmp_path]).problems == [f"{file}: holds nothing"]


def test_one_kind_or_one_case_may_be_chosen(tmp_path: Path) -> None:
    other = a_case()
    other["case"]["id"] = "small-2"
    written(tmp_path, "small", [CASE, other])
    written(tmp_path, "vectors-quantities", [VECTORS["quantities"]])
    assert {key.kind for key in judge([tmp_path]).held} == {"small", "vectors-quantities"}
    assert {key.kind for key in judge([tmp_path], only=["small"]).held} == {"small"}
    assert judge([tmp_path], cases=["small-2"]).held[Key("small", "case")] == 1
    assert judge([tmp_path], only=["nosuch"]).problems == ["no file of kind 'nosuch' among the paths"]
    assert judge([tmp_path], cases=["nosuch"]).problems == ["no such case in these files"]


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    spoiled = a_case()
    spoiled["expected"]["pods"]["team/web"]["best"] = ["b"]
    written(tmp_path, "small", [CASE, spoiled])
    written(tmp_path, "vectors-quantities", [VECTORS["quantities"]])
    alone, together = judge([tmp_path], jobs=1), judge([tmp_path], jobs=2)
    assert together.held == alone.held
    assert together.compared == alone.compared
    assert together.differences == alone.differences
    assert aspects(together) == {"best", "choice"}


def test_a_device_class_that_no_pod_needs_leaves_nothing_out(tmp_path: Path) -> None:
    case = a_case()
    case["case"]["objects"]["deviceClasses"] = [{"metadata": {"name": "d"}, "spec": {"extendedResourceName": "x.io/y"}}]
    tally, usual = judged(tmp_path, case), judged(tmp_path, CASE)
    assert tally.agreed, tally.differences
    assert tally.compared == usual.compared
    assert not tally.because
