"""The judge itself is on trial: whatever is wrong in the recorded answers, it says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.oracle.comparison_counts import Key
from tests.oracle.builders import CASE, CORDONED, TOO_SMALL, VECTORS, a_case, aspects, judged, rejected

Spoil = Callable[[dict[str, Any], dict[str, Any]], Any]


def put(*path: Any, value: Any) -> Spoil:
    """Write a value into what is expected of `web`, or after the word "big" of `big`."""

    def spoil(web: dict[str, Any], big: dict[str, Any]) -> None:
        place: Any = big if path[0] == "big" else web
        steps = path[1:] if path[0] == "big" else path
        for step in steps[:-1]:
            place = place[step]
        place[steps[-1]] = value

    return spoil


def moved_to_feasible(web: dict[str, Any], big: dict[str, Any]) -> None:
    del big["rejects"]["a"]
    big["feasible"] = ["a"]


def moved_to_rejects(web: dict[str, Any], big: dict[str, Any]) -> None:
    web["feasible"].remove("b")
    web["total"].pop()
    for scores in web["scores"].values():
        scores["raw"].pop()
        scores["norm"].pop()
    web["rejects"]["b"] = rejected(TOO_SMALL)


def accepted(web: dict[str, Any], big: dict[str, Any]) -> None:
    del big["rejects"]["c"]["all"][CORDONED[0]]


REJECTED = ("rejects", "c", "all", CORDONED[0])
FIRST = ("rejects", "c", "first")


@pytest.mark.parametrize(
    ("spoil", "aspect"),
    [
        pytest.param(put("requests", "cpu", value=999), "requests", id="requests"),
        pytest.param(put("nonZeroRequests", "memory", value=1), "nonZeroRequests", id="requests with defaults"),
        pytest.param(put("skipFilter", 2, value="NodeName"), "skipFilter", id="a filter is not concerned"),
        pytest.param(put("preFilter", value={"NodeName": {"nodes": ["a"]}}), "preFilter", id="nodes a plugin leaves"),
        pytest.param(
            put("preFilter", value={"NodePorts": {"status": ["Error", "no"]}}), "preFilter", id="a plugin refuses"
        ),
        pytest.param(put("preFilterFail", value=["NodeName", "Error", "no"]), "preFilterFail", id="all refused"),
        pytest.param(put("preFilterNodes", value=["a"]), "preFilterNodes", id="nodes that are left"),
        pytest.param(accepted, "filter", id="verdict: we refuse and they accept"),
        pytest.param(put("rejects", "c", "all", "NodeName", value=["Error", "no"]), "filter", id="verdict: we accept"),
        pytest.param(put(*REJECTED, 0, value="Unschedulable"), "filter", id="code"),
        pytest.param(put(*REJECTED, 1, value="node(s) were tired"), "filter", id="reason"),
        pytest.param(put(*REJECTED, value=[*CORDONED[1:], "and tired"]), "filter", id="one reason more"),
        pytest.param(put(*FIRST, 0, value="NodeName"), "first", id="first: plugin"),
        pytest.param(put(*FIRST, 1, value="Unschedulable"), "first", id="first: code"),
        pytest.param(put(*FIRST, 2, value="node(s) were tired"), "first", id="first: reason"),
        pytest.param(moved_to_feasible, "feasible", id="feasible: we refuse"),
        pytest.param(moved_to_rejects, "feasible", id="feasible: we accept"),
        pytest.param(put("skipScore", 0, value="ImageLocality"), "skipScore", id="a scorer is not concerned"),
        pytest.param(put("scores", "NodeResourcesFit", "raw", 1, value=63), "raw", id="raw score"),
        pytest.param(put("scores", "TaintToleration", "norm", 0, value=99), "norm", id="normalised score"),
        pytest.param(put("scores", "NodeAffinity", value={"raw": [0, 0], "norm": [0, 0]}), "raw", id="score skipped"),
        pytest.param(put("total", 0, value=451), "total", id="total"),
        pytest.param(put("best", value=["b"]), "best", id="best"),
        pytest.param(put("best", value=["b"]), "choice", id="the node that is chosen"),
        pytest.param(
            put("scoreError", value='running PreScore plugin "NodeAffinity": no'), "scoreError", id="score error"
        ),
        pytest.param(put("error", value='running "NodePorts" filter plugin: no'), "error", id="filter error"),
        pytest.param(put("big", "fitError", value="0/3 nodes are available."), "fitError", id="sentence"),
        pytest.param(put("big", "preemption", "eligible", value=False), "preemption", id="who may preempt"),
        pytest.param(put("big", "preemption", "potentialNodes", value=["a"]), "preemption", id="where it is tried"),
        pytest.param(
            put("big", "preemption", "notCandidates", value={"a": ["Unschedulable", "no"]}),
            "preemptionNode",
            id="why not",
        ),
        pytest.param(
            put("big", "preemption", "candidates", value={"a": {"pods": ["team/x"], "pdbViolations": 0}}),
            "preemptionNode",
            id="victims",
        ),
        pytest.param(put("big", "preemption", "best", value=["a"]), "preemptionBest", id="the node for preemption"),
        pytest.param(put("surprise", value=1), "case", id="an answer the judge does not know"),
        pytest.param(put("total", value=[450]), "case", id="lists that are not parallel"),
    ],
)
def test_a_spoiled_answer_is_found(tmp_path: Path, spoil: Spoil, aspect: str) -> None:
    case = a_case()
    pods = case["expected"]["pods"]
    spoil(pods["team/web"], pods["team/big"])
    tally = judged(tmp_path, case)
    assert aspect in aspects(tally)
    assert not tally.agreed
    assert not tally.unbalanced


def test_the_case_itself_is_right(tmp_path: Path) -> None:
    tally = judged(tmp_path, CASE)
    assert aspects(tally) == set()
    assert tally.agreed
    assert tally.compared[Key("small", "filter", "NodeName")] == 6
    assert tally.compared[Key("small", "preemption")] == 1


@pytest.mark.parametrize(
    ("kind", "spoiled", "aspect"),
    [
        pytest.param("quantities", {"canonical": "1.5"}, "canonical", id="quantity: text"),
        pytest.param("quantities", {"value": 1}, "value", id="quantity: value"),
        pytest.param("quantities", {"milli": 1501}, "milli", id="quantity: milli"),
        pytest.param("quantities", {"sign": 0}, "sign", id="quantity: sign"),
        pytest.param("quantities", {"error": "no"}, "error", id="quantity: we accept and they refuse"),
        pytest.param("quantities", {"in": "1.5x"}, "error", id="quantity: we refuse and they accept"),
        pytest.param("requests", {"scheduler": {}}, "scheduler", id="requests: as counted"),
        pytest.param("requests", {"nonZeroRequests": {}}, "nonZeroRequests", id="requests: with defaults"),
        pytest.param("requests", {"requests": {"cpu": "1"}}, "requests", id="requests: printed"),
        pytest.param("requests", {"specOnly": {"cpu": "1"}}, "specOnly", id="requests: of the spec"),
        pytest.param("requests", {"limits": {"cpu": "1"}}, "limits", id="requests: limits"),
        pytest.param("selectors", {"match": [True, True]}, "match", id="selector: match"),
        pytest.param("selectors", {"string": "app!=web"}, "string", id="selector: text"),
        pytest.param("selectors", {"error": True, "message": "no"}, "error", id="selector: we accept"),
        pytest.param("selectors", {"selector": {"matchLabels": {"-": ""}}}, "error", id="selector: we refuse"),
        pytest.param("nodeselectors", {"match": [True, "error"]}, "match", id="node selector: match"),
        pytest.param("nodeselectors", {"match": [True]}, "case", id="node selector: not parallel"),
        pytest.param("surprises", {}, "case", id="vectors the judge does not know"),
    ],
)
def test_a_spoiled_vector_is_found(tmp_path: Path, kind: str, spoiled: dict[str, Any], aspect: str) -> None:
    tally = judged(tmp_path, VECTORS.get(kind, {}) | spoiled, kind=f"vectors-{kind}")
    assert aspect in aspects(tally)
    assert not tally.agreed


@pytest.mark.parametrize("kind", VECTORS)
def test_the_vectors_themselves_are_right(tmp_path: Path, kind: str) -> None:
    tally = judged(tmp_path, VECTORS[kind], kind=f"vectors-{kind}")
    assert tally.agreed, tally.differences


def test_overflowing_numbers_are_counted_as_not_compared(tmp_path: Path) -> None:
    tally = judged(tmp_path, VECTORS["quantities"] | {"value": 0, "overflow": True}, kind="vectors-quantities")
    assert tally.agreed
    assert tally.not_compared == {Key("vectors-quantities", "value"): 1, Key("vectors-quantities", "milli"): 1}
