"""Files of workloads: what they say, and what is wrong with them, in one line with the place."""

from pathlib import Path

import pytest

from kubenexus.sim.perf.files import InvalidWorkload, find, read
from kubenexus.sim.perf.ops import Barrier, CreateNodes, CreatePods
from kubenexus.sim.perf.workload_run import WorkloadFilter
from tests.sim.perf.workloads import a_case

HEAD = "- name: Case\n  workloads: [{name: w}]\n  workloadTemplate:\n"


def test_a_case_is_read(tmp_path: Path) -> None:
    ops = {"opcode": "createNodes", "countParam": "$n"}, {"opcode": "createPods", "count": 3}, {"opcode": "barrier"}
    (case,) = read(a_case(tmp_path, *ops, params={"n": 2}, defaultPodTemplatePath="pod.yaml"))
    assert [type(op) for op in case.ops] == [CreateNodes, CreatePods, Barrier]
    assert case.workloads[0].params == {"n": 2}
    assert case.path(case.default_pod) == tmp_path / "pod.yaml"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("- name: [", "not YAML: ", id="no YAML"),
        pytest.param("name: x", "expected a list of test cases, found dict", id="no list"),
        pytest.param("", "expected a list of test cases, found nothing", id="empty"),
        pytest.param("- {name: A}", "case A: Object missing required field workloadTemplate", id="no operations"),
        pytest.param("- {name: A, wrong: 1}", "unknown field wrong", id="unknown field of a case"),
        pytest.param(
            HEAD + "  - {opcode: createNodez}",
            "Case: workloadTemplate[0]: unknown opcode 'createNodez'; expected one of allocResourceClaims, barrier,",
            id="unknown opcode",
        ),
        pytest.param(HEAD + "  - {count: 1}", "workloadTemplate[0]: no opcode", id="no opcode"),
        pytest.param(
            HEAD + "  - {opcode: createNodes, cuont: 1}",
            "workloadTemplate[0]: Object contains unknown field cuont",
            id="unknown field of an operation",
        ),
        pytest.param(
            HEAD + "  - {opcode: createNodes, count: many}",
            "Expected int | null, got str - at $.count",
            id="wrong type",
        ),
        pytest.param(
            HEAD + "  - {opcode: barrier, stageRequirement: Done}",
            "stageRequirement 'Done'; expected one of Scheduled, Attempted",
            id="unknown stage",
        ),
        pytest.param(
            HEAD + "  - {opcode: churn, mode: stir, templatePaths: [x]}",
            "mode 'stir'; expected one of create, recreate",
            id="unknown mode",
        ),
        pytest.param(
            HEAD + "  - {opcode: churn, mode: recreate, templatePaths: [x]}",
            "number 0; expected at least 1",
            id="recreate nothing",
        ),
        pytest.param(
            "- {name: A, workloadTemplate: [], workloads: [{name: w}, {name: w}]}",
            "two workloads are named w",
            id="twice",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_the_place(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidWorkload) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        a_case(tmp_path / name)
    found = find([tmp_path, tmp_path / "a"])
    assert [file.parent.name for file in found] == ["a", "b"]
    with pytest.raises(InvalidWorkload, match="no such file or folder"):
        find([tmp_path / "nowhere"])
    (tmp_path / "c").mkdir()
    with pytest.raises(InvalidWorkload, match=r"no performance-config\.yaml in this folder"):
        find([tmp_path / "c"])


def test_workloads_are_chosen_by_any_label_and_by_name(tmp_path: Path) -> None:
    cases = read(a_case(tmp_path, labels=["short", "fast"]))
    for wishes, chosen in (
        (WorkloadFilter(), 1),
        (WorkloadFilter(labels=("short", "other")), 1),
        (WorkloadFilter(labels=("other",)), 0),
        (WorkloadFilter(cases=("Case",), workloads=("w",)), 1),
        (WorkloadFilter(cases=("Other",)), 0),
        (WorkloadFilter(workloads=("v",)), 0),
    ):
        assert len(list(wishes.chosen(cases))) == chosen, wishes
