"""kube-scheduler's own workloads, as they are in its sources: all are read, and small ones are played.

`make simulate SCHEDULER_PERF=folder` plays all that are labelled short or integration-test.
"""

from pathlib import Path

import pytest
import yaml

from kubenexus.base.clock import VirtualClock
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.apiserver.kinds import Registry
from kubenexus.sim.perf import files, required_features, workload_run
from kubenexus.sim.perf.template_cache import TemplateCache
from kubenexus.sim.perf.workload_run import WorkloadFilter, WorkloadRun

# Of Kubernetes 1.37.1; another release has another number.
ALL = 267
# One of each kind of operation, template and rule; together a few seconds.
SMALL = {
    "EventHandlingPodUpdate/1Node_10Pods",
    "EventHandlingNodeAdd/2Nodes_20Pods",
    "SchedulingCSIPVs/5Nodes",
    "SchedulingWhileGated/1Node_10GatedPods",
    "SchedulingWithMixedChurn/10Nodes",
    "SchedulingWithNodeInclusionPolicy/5Nodes",
    "SchedulingRequiredPodAffinityWithNSSelector/10Nodes",
    "BasicScheduling/10Nodes_3Groups",
    "GangScheduling/10Nodes_3Gangs",
    "ConsumableCapacity/fast",
    "DeviceTaintToleration/fast",
    "ExtendedResource/fast",
    "FirstAvailable/fast",
    "PartitionableBacktracking/fast",
    "SchedulingWithResourceClaim/fast",
    "SchedulingWithResourceClaimTemplate/fast",
    "SchedulingWithResourceClaimTemplate/match_fast",
    "SharedPodGroupResourceClaim/fast",
}


@pytest.fixture(scope="module")
def trials(workloads: Path) -> dict[str, WorkloadRun]:
    cases = [case for file in files.find([workloads]) for case in files.read(file)]
    return {each.name: each for each in WorkloadFilter().chosen(cases)}


def test_every_workload_is_read(workloads: Path, trials: dict[str, WorkloadRun]) -> None:
    found = [yaml.safe_load(file.read_bytes()) for file in workloads.rglob("performance-config.yaml")]
    listed = [f"{case['name']}/{each['name']}" for cases in found for case in cases for each in case["workloads"]]
    assert sorted(trials) == sorted(listed)
    assert len(trials) == ALL


def test_the_templates_of_every_workload_are_understood(trials: dict[str, WorkloadRun]) -> None:
    needed = {
        name: [
            feature.name for feature in required_features.needed(each.case, each.workload, TemplateCache(Registry()))
        ]
        for name, each in trials.items()
        if {"short", "integration-test"} & set(each.workload.labels)
    }
    plain = "SchedulingBasic/5Nodes", "SchedulingWithExtendedResource/fast_DRAExtendedResourceEnabled"
    assert [needed[name] for name in plain] == [[], []]
    assert needed["PreemptionBasic/5Nodes"] == needed["PreemptionPVs/5Nodes"] == ["preemption"]
    assert needed["Unschedulable/5Nodes/1Init/10Pods"] == []
    assert needed["ExtendedResource/fast"] == ["device claims"]
    assert needed["TopologyAwareScheduling/10Nodes_3Gangs"] == ["gang scheduling", "topology-aware gangs"]
    both = needed["GangPreemptionBasic/2Nodes_1PreemptorGang_2Pods_Evicting_10InitPods"]
    assert both == ["gang scheduling", "preemption"]


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_small_one_ends_as_it_must(name: str, trials: dict[str, WorkloadRun]) -> None:
    result = workload_run.run(trials[name], BUILT_IN, seed=0, stopwatch=VirtualClock())
    assert (result.lacking, result.problem) == ((), "")
    assert result.got == result.wanted > 0
