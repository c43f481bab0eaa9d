"""How a sample is chosen: every feature is in it, verdicts several times, and the same full set gives the same one."""

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubenexus.testing.oracle import judge
from kubenexus.testing.oracle.features import Feature, Verdict, of_case, of_vector, verdicts, without_names
from kubenexus.testing.oracle.sample import OFTEN, Kind, Reason, Size, choose, main, make, read_index
from tests.oracle.builders import CASE, CORDONED, VECTORS, a_case, written

NO_ROOM = Verdict("Filter", "NodeResourcesFit", "Unschedulable", "Insufficient cpu")


@pytest.mark.parametrize(
    ("features", "sizes", "chosen"),
    [
        pytest.param([{("a",)}, {("a",), ("b",)}, {("c",)}], [1, 1, 1], [1, 2], id="every feature is in it once"),
        pytest.param([{("a",), ("b",)}, {("a",)}, {("b",)}], [9, 2, 2], [1, 2], id="small elements come first"),
        pytest.param([{("a",)}] * 3, [1, 1, 1], [0], id="the first of several that are alike"),
        pytest.param([{NO_ROOM}] * 9, [1] * 9, list(range(OFTEN)), id="a verdict is in several"),
        pytest.param([{NO_ROOM}] * 2, [1] * 2, [0, 1], id="a rare verdict is in all that have it"),
    ],
)
def test_what_has_to_be_in_a_sample(features: list[set[Feature]], sizes: list[int], chosen: list[int]) -> None:
    assert choose(features, sizes, share=0) == chosen


def test_the_rest_is_drawn_up_to_the_share_and_always_the_same() -> None:
    features: list[set[Feature]] = [{("a",)} for _ in range(100)]
    sizes = [10] * 100
    drawn = choose(features, sizes, share=0.2)
    assert len(drawn) == 20
    assert drawn == sorted(drawn) == choose(features, sizes, share=0.2)
    assert drawn != choose(features, sizes, share=0.2, seed=2)
    assert len(choose(features, sizes, share=1)) == 100


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('persistentvolumeclaim "c-1" not found', 'persistentvolumeclaim "X" not found'),
        (
            "claim a/c-1, request r0: cannot add device d.com/n/0 because",
            "claim X, request X: cannot add device X because",
        ),
        (
            "PVC a/b was not created for pod a/c (pod is not owner)",
            "PVC X was not created for pod X (pod is not owner)",
        ),
        (
            'running PreScore plugin "NodeAffinity": [2].values[0]',
            'running PreScore plugin "NodeAffinity": [N].values[N]',
        ),
        ("Insufficient example.com/gpu", "Insufficient example.com/gpu"),
        ("Insufficient hugepages-2Mi", "Insufficient hugepages-2Mi"),
    ],
)
def test_names_of_objects_make_no_other_verdict(text: str, same: str) -> None:
    assert without_names(text) == same


def test_verdicts_are_read_from_every_point() -> None:
    case = a_case()
    web = case["expected"]["pods"]["team/web"]
    web["preFilter"] = {"VolumeZone": {"status": ["UnschedulableAndUnresolvable", 'persistentvolume "v" not found']}}
    web["scoreError"] = 'running PreScore plugin "NodeAffinity": [1].values[0]: no'
    found = set(verdicts(case["expected"]))
    assert Verdict("Filter", *CORDONED) in found
    assert Verdict("PreFilter", "VolumeZone", "UnschedulableAndUnresolvable", 'persistentvolume "X" not found') in found
    assert Verdict("PreScore", "NodeAffinity", "Error", "[N].values[N]: no") in found


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda case: case["case"]["incoming"][0]["spec"].update(hostNetwork=True), id="a field of a pod"),
        pytest.param(lambda case: case["case"]["objects"].update(services=[{"spec": {}}]), id="a kind of object"),
        pytest.param(
            lambda case: case["case"]["objects"]["nodes"][0]["spec"].update(taints=[{"effect": "NoExecute"}]),
            id="a value that chooses a rule",
        ),
        pytest.param(lambda case: case["expected"]["pods"]["team/web"]["skipFilter"].pop(), id="no plugin that skips"),
        pytest.param(lambda case: case["expected"]["pods"]["team/web"].pop("scores"), id="no scores"),
        pytest.param(lambda case: case["expected"]["pods"]["team/big"].update(feasible=["a"]), id="one feasible node"),
        pytest.param(
            lambda case: case["expected"]["pods"]["team/big"]["preemption"].update(eligible=False), id="no preemption"
        ),
    ],
)
def test_a_case_that_exercises_something_else_has_another_feature(change: Any) -> None:
    changed = a_case()
    change(changed)
    assert of_case(changed) != of_case(CASE)


def test_a_case_with_other_names_has_no_other_feature() -> None:
    changed = a_case()
    changed["case"]["objects"]["nodes"][0]["metadata"].update(name="z", labels={"disk": "ssd"})
    other = a_case()
    other["case"]["objects"]["nodes"][0]["metadata"].update(labels={"rack": "r7"})
    assert of_case(changed) == of_case(other)


def test_vectors_differ_by_shape_and_outcome() -> None:
    assert of_vector({"in": "12Ki"}) == of_vector({"in": "7Ki"})
    assert of_vector({"in": "12Ki"}) != of_vector({"in": "12Mi"})
    assert of_vector({"in": "1", "error": "x"}) != of_vector({"in": "1", "value": 1})
    assert of_vector(VECTORS["selectors"]) != of_vector({**VECTORS["selectors"], "match": [False, False]})


def test_a_sample_can_be_judged_and_says_what_it_was_made_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full, out = tmp_path / "full", tmp_path / "out"
    full.mkdir()
    written(full, "small", [CASE] * 20)
    written(full, "vectors-quantities", [VECTORS["quantities"]] * 4)
    assert main([str(full), str(out), "--share", "0"]) == 0
    assert f"small: {OFTEN} of 20" in capsys.readouterr().out
    tally = judge([out])
    assert tally.agreed, tally.differences
    index, each = read_index(out), judge([full], cases=["small-1"]).held.total() // 20
    assert index.kinds["small"] == Kind(Size(20, 40, 20 * each), Size(OFTEN, 2 * OFTEN, OFTEN * each))
    assert index.kinds["vectors-quantities"].sample.cases == 1
    plugin, code, text = CORDONED
    assert Reason("Filter", plugin, code, text, full=40, sample=2 * OFTEN) in index.reasons
    assert msgspec.json.decode(gzip.decompress((out / "small.json.gz").read_bytes())) == [CASE] * OFTEN


def test_the_same_set_gives_the_same_bytes(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    written(full, "small", [CASE] * 20)
    for name in ("one", "two"):
        make(full, tmp_path / name, 0.5)
    one, two = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two


def test_a_folder_without_recordings_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == f"sample: {tmp_path}: no *.json.gz in this folder\n"
