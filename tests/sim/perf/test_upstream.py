"""Workloads in upstream's format: those of `examples/workloads` use every operation, and end as they must.

Upstream's own are in `tests/e2e/test_upstream_workloads.py`: they come with its sources.
"""

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from kubenexus.base.clock import VirtualClock
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.apiserver.kinds import Registry
from kubenexus.sim.perf import files, required_features, workload_run
from kubenexus.sim.perf.ops import OPCODES
from kubenexus.sim.perf.template_cache import TemplateCache
from kubenexus.sim.perf.workload_run import Result, WorkloadFilter, WorkloadRun

FOLDER = Path(__file__).parents[3] / "examples" / "workloads"
CASES = [case for file in files.find([FOLDER]) for case in files.read(file)]
TRIALS = {each.name: each for each in WorkloadFilter().chosen(CASES)}
SHORT = {each.name: each for each in WorkloadFilter(labels=("short",)).chosen(CASES)}
# Those that need more than pods and nodes, and what.
NEEDS = {
    "ClaimedDevices": ["device claims"],
    "HeldDevices": ["device claims"],
    "Gangs": ["gang scheduling"],
    "GangsWithinARack": ["gang scheduling", "topology-aware gangs"],
    "UrgentPods/4Nodes_4Pods": ["preemption"],
}
# Profiles of kube-scheduler's own.
LEFT_OUT = {"startCollectingProfile", "stopCollectingProfile"}


def played(name: str) -> tuple[Result, list[str]]:
    lines: list[str] = []
    result = workload_run.run(TRIALS[name], BUILT_IN, seed=0, stopwatch=VirtualClock(), write=lines.append)
    return result, "".join(lines).splitlines()


def lacking(each: WorkloadRun) -> list[str]:
    return required_features.missing(each.case, each.workload, TemplateCache(Registry()), BUILT_IN)


@pytest.mark.parametrize("name", sorted(name for name, each in SHORT.items() if not lacking(each)))
def test_it_ends_as_it_must(name: str) -> None:
    result, _ = played(name)
    assert (result.lacking, result.problem) == ((), "")
    assert result.got == result.wanted > 0


@pytest.mark.parametrize("name", sorted(TRIALS))
def test_its_templates_are_understood_and_what_it_needs_is_seen(name: str) -> None:
    """Of the large ones as well, which are not played here."""
    each = TRIALS[name]
    found = [feature.name for feature in required_features.needed(each.case, each.workload, TemplateCache(Registry()))]
    assert found == NEEDS.get(name, NEEDS.get(each.case.name, []))


def test_they_use_every_operation() -> None:
    used = {op.opcode for case in CASES for op in case.ops}
    assert used == OPCODES.keys() - LEFT_OUT


def test_every_case_has_a_short_workload_and_every_template_a_user() -> None:
    assert {case.name for case in CASES} == {each.case.name for each in SHORT.values()}
    texts = {file.parent: file.read_text(encoding="utf-8") for file in files.find([FOLDER])}
    unused = [
        template
        for folder, text in texts.items()
        for template in folder.rglob("templates/*.yaml")
        if f"{template.relative_to(folder)}" not in text
    ]
    assert unused == []


def test_the_page_beside_them_names_every_folder() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\]\(([\w-]+)/performance-config.yaml\)", page))
    assert named == {file.parent.name for file in files.find([FOLDER])}


def places(lines: list[str]) -> dict[str, str]:
    """The nodes of pods, by name."""
    found = (re.search(r"/(\S+) -> (\S+)$", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def test_a_gang_stays_within_its_rack() -> None:
    """Three racks of four nodes, three gangs of six: node i is in rack i modulo 3, member i of gang i // 6."""
    _, lines = played("GangsWithinARack/12Nodes_3Racks_18Pods")
    racks: dict[int, set[int]] = defaultdict(set)
    for pod, node in places(lines).items():
        racks[int(pod.rpartition("-")[2]) // 6].add(int(node.rpartition("-")[2]) % 3)
    assert [len(found) for found in racks.values()] == [1, 1, 1]


def test_a_profile_of_the_workload_is_the_one_that_decides() -> None:
    """60 pods of a quarter of a cpu fill four nodes of 4 cpu when they are packed, and lie on all ten otherwise."""
    _, packed = played("Packed/10Nodes_60Pods")
    _, spread = played("PlainServices/10Nodes_100Pods")
    assert sorted(Counter(places(packed).values()).values()) == [12, 16, 16, 16]
    assert len(set(places(spread).values())) == 10
