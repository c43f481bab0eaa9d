"""Arguments of plugins: kube-scheduler's defaults, its checks and its sentences."""

from typing import Any

import pytest

from kubenexus.config.args import KINDS
from tests.config.builders import cases, loaded, problems


def arguments(name: str, args: str = "{}") -> dict[str, Any]:
    return loaded(f"profiles: [{{pluginConfig: [{{name: {name}, args: {args}}}]}}]").args["kubenexus-scheduler"][name]


RESOURCES = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


@pytest.mark.parametrize(
    ("name", "args", "complete"),
    [
        pytest.param(
            "NodeResourcesFit",
            "{}",
            {
                "ignoredResources": [],
                "ignoredResourceGroups": [],
                "scoringStrategy": {"type": "LeastAllocated", "resources": RESOURCES},
            },
            id="fit",
        ),
        pytest.param(
            "NodeResourcesFit",
            "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 0}, {name: gpu, weight: 5}]}}",
            {
                "ignoredResources": [],
                "ignoredResourceGroups": [],
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}, {"name": "gpu", "weight": 5}],
                },
            },
            id="a weight of 0 means 1",
        ),
        pytest.param("NodeResourcesBalancedAllocation", "{resources: []}", {"resources": RESOURCES}, id="balanced"),
        pytest.param("NodeAffinity", "{}", {}, id="node affinity"),
        pytest.param(
            "NodeAffinity",
            "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            "[{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}",
            {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
                    }
                }
            },
            id="added affinity",
        ),
        pytest.param(
            "InterPodAffinity",
            "{}",
            {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False},
            id="pod affinity",
        ),
        pytest.param(
            "InterPodAffinity",
            "{hardPodAffinityWeight: 0}",
            {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": False},
            id="a pointer's zero is a zero",
        ),
        pytest.param(
            "PodTopologySpread",
            "{defaultingType: ''}",
            {"defaultConstraints": [], "defaultingType": "System"},
            id="spread",
        ),
        pytest.param(
            "VolumeBinding",
            "{}",
            {
                "bindTimeoutSeconds": 600,
                "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
            },
            id="volumes",
        ),
        pytest.param(
            "DefaultPreemption",
            "{minCandidateNodesAbsolute: 0}",
            {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 0},
            id="preemption",
        ),
        pytest.param(
            "GangPreemption",
            "{pdbPolicy: prefer, protectedNamespaces: [infra]}",
            {
                "pdbPolicy": "prefer",
                "tierPreemption": False,
                "servicesPreemptBatch": False,
                "reclaim": False,
                "protectedNamespaces": ["infra"],
                "cooldownSeconds": 30,
                "fenceSeconds": 300,
                "maxVictims": 1000,
                "consolidation": False,
                "maxMovedPods": 16,
            },
            id="preemption for whole jobs",
        ),
        pytest.param("DynamicResources", "{}", {"filterTimeout": "10s", "bindingTimeout": "10m0s"}, id="devices"),
        pytest.param(
            "WorkloadAwareScoring",
            "{gpuWeight: 60}",
            {"cpuWeight": 35, "memoryWeight": 35, "gpuWeight": 60},
            id="how full a node is",
        ),
        pytest.param(
            "TenantHardwareAffinityScore",
            "{costFactors: {premium: 4}}",
            {"scores": {}, "costFactors": {"premium": 4.0}, "allowedTiers": {}, "tenantAllowedTiers": {}},
            id="hardware of tenants",
        ),
        pytest.param(
            "KubeNexus",
            "{seed: 7}",
            {
                "tieBreak": "seeded",
                "seed": 7,
                "allowPodTier": False,
                "tierBoosts": {"gold": 20, "silver": 10, "bronze": 0},
                "namespacePriorities": {},
                "queues": [],
                "queueUsageHalfLifeSeconds": 0,
            },
            id="ours",
        ),
    ],
)
def test_what_is_not_said_is_kube_schedulers_default(name: str, args: str, complete: dict[str, Any]) -> None:
    assert arguments(name, args) == complete


@pytest.mark.parametrize(("text", "expected"), cases("wrong-args"))
def test_wrong_arguments_are_reported_with_their_path(text: str, expected: list[str]) -> None:
    at = "profiles[0].pluginConfig[0].args"
    assert problems(f"profiles: [{{pluginConfig: [{text}]}}]") == [f"{at}{each}" for each in expected]


def test_a_wrong_added_affinity_is_reported_to_the_last_expression() -> None:
    found = problems(
        """
profiles:
- pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions:
            - {key: "a b", operator: In, values: [x]}
            - {key: a, operator: Is, values: [x]}
            - {key: a, operator: Gt, values: [much]}
            matchFields:
            - {key: metadata.name, operator: Exists}
            - {key: metadata.name, operator: In, values: [x, y]}
        preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 0
          preference: {matchExpressions: [{key: "not asked", operator: In}]}
        - weight: 1
          preference: {matchExpressions: [{key: a, operator: In}]}
"""
    )
    added = "profiles[0].pluginConfig[0].args.addedAffinity"
    term = f"{added}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    assert [problem.split(": ")[0] for problem in found] == [
        f"{term}.matchExpressions[0].key",
        f"{term}.matchExpressions[1].operator",
        f"{term}.matchExpressions[2].values[0]",
        f"{term}.matchFields[0].operator",
        f"{term}.matchFields[1].values",
        f"{added}.preferredDuringSchedulingIgnoredDuringExecution[1].preference.matchExpressions[0].values",
    ]
    assert "for 'Gt', 'Lt' operators, the value must be an integer" in found[2]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_may_say_what_it_is(name: str) -> None:
    kind = KINDS[name]
    said = f"{{kind: {kind.__name__}, apiVersion: {kind().api_version}}}"
    assert arguments(name, said) == arguments(name)
