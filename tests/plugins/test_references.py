"""Every built-in rule looks at all nodes at once, and must say what its reference says about each."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.codec import encode
from kubenexus.api.core import NodeSelectorTerm, Pod, PreferredSchedulingTerm
from kubenexus.plugins import BUILT_IN
from kubenexus.testing.builders import a_term
from kubenexus.testing.harness import CheckedCluster, on_node
from kubenexus.testing.reference_check import assert_capacity, assert_matches_reference
from kubenexus.testing.strategies import FPGA, GPU, NODES, STORAGE, TERMS, clusters, pods
from tests.plugins import reference

NO_NODES_IN_THEIR_ANSWERS = {"SchedulingGates", "PrioritySort", "ProfileClassifier"}
# They look beyond a node, at other pods or volumes, and so do their references: see `test_affinity_reference`,
# `test_spread_reference`, `tests/volumes`, and the folders beside this file.
BEYOND_A_NODE = {
    *("InterPodAffinity", "PodTopologySpread"),
    *("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
    *("DeviceFit", "VRAMScheduler", "GPUTopology", "ResourceFragmentationScore"),
    *("WorkloadAwareScoring", "BackfillScoring", "TenantHardwareAffinityScore"),
    *("NetworkFabricScore", "TopologyScoring", "NUMATopology"),
}
RESOURCES = [
    [("cpu", 1), ("memory", 1)],
    [("memory", 3), ("cpu", 1)],
    [("cpu", 1)],
    [("cpu", 2), ("memory", 1), (GPU, 5)],
    [(GPU, 1)],
    [(GPU, 100), (FPGA, 7), (STORAGE, 3)],
    [("memory", 1), ("nobody/offers-this", 9)],
    [("cpu", 1), ("memory", 1), (STORAGE, 1), ("hugepages-2Mi", 2)],
]
SHAPES = [
    [(0, 0), (100, 10)],
    [(0, 10), (100, 0)],
    [(20, 3), (40, 10), (70, 1), (90, 5)],
    [(50, 7)],
    [(0, 0), (33, 0), (66, 10)],
]
PARSABLE = [term for term in TERMS if reference.term_parses(term)]


@settings(max_examples=3 * settings().max_examples)
@given(cluster=clusters(), pod=pods(claiming=True), named=st.sampled_from(["", *NODES, "n9"]))
def test_every_rule_says_of_each_node_what_its_reference_says(cluster: CheckedCluster, pod: Pod, named: str) -> None:
    for name, rule in reference.REFERENCES.items():
        assert_matches_reference(BUILT_IN[name]({}), rule, on_node(pod, named) if name == "NodeName" else pod, cluster)


@given(
    kind=st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]),
    cluster=clusters(),
    pod=pods(),
    resources=st.sampled_from(RESOURCES),
    shape=st.sampled_from(SHAPES),
)
def test_a_scoring_strategy_weighs_its_resources_as_its_reference_does(
    kind: str, cluster: CheckedCluster, pod: Pod, resources: list[Any], shape: list[Any]
) -> None:
    strategy = {
        "type": kind,
        "resources": [{"name": name, "weight": weight} for name, weight in resources],
        "requestedToCapacityRatio": {"shape": [{"utilization": x, "score": y} for x, y in shape]},
    }
    plugin = BUILT_IN["NodeResourcesFit"]({"scoringStrategy": strategy})
    assert_matches_reference(plugin, reference.NodeResourcesFit(kind, resources, shape), pod, cluster)


@given(cluster=clusters(), pod=pods(), resources=st.sampled_from(RESOURCES))
def test_balance_is_over_the_resources_that_the_profile_names(
    cluster: CheckedCluster, pod: Pod, resources: list[tuple[str, int]]
) -> None:
    names = [name for name, _ in resources]
    plugin = BUILT_IN["NodeResourcesBalancedAllocation"]({"resources": [{"name": n, "weight": 1} for n in names]})
    assert_matches_reference(plugin, reference.NodeResourcesBalancedAllocation(names), pod, cluster)


@given(
    cluster=clusters(),
    pod=pods(),
    ignored=st.lists(st.sampled_from([GPU, FPGA, "cpu", STORAGE]), max_size=2),
    groups=st.lists(st.sampled_from(["example.com", "vendor.io"]), max_size=1),
)
def test_ignored_resources_are_not_checked(
    cluster: CheckedCluster, pod: Pod, ignored: list[str], groups: list[str]
) -> None:
    plugin = BUILT_IN["NodeResourcesFit"]({"ignoredResources": ignored, "ignoredResourceGroups": groups})
    assert_matches_reference(plugin, reference.NodeResourcesFit(ignored=ignored, ignored_groups=groups), pod, cluster)


@given(
    cluster=clusters(),
    pod=pods(),
    terms=st.none() | st.lists(st.sampled_from(PARSABLE)),
    weight=st.sampled_from([0, 1, 50]),
)
def test_the_profiles_own_affinity_is_added_to_every_pods(
    cluster: CheckedCluster, pod: Pod, terms: list[NodeSelectorTerm] | None, weight: int
) -> None:
    wish = PreferredSchedulingTerm(weight=weight, preference=a_term("disk In ssd"))
    added: dict[str, Any] = {"preferredDuringSchedulingIgnoredDuringExecution": [plain(wish)]}
    if terms is not None:
        added["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [plain(t) for t in terms]}
    plugin = BUILT_IN["NodeAffinity"]({"addedAffinity": added})
    assert_matches_reference(plugin, reference.NodeAffinity(terms, [wish] if weight else []), pod, cluster)


@given(cluster=clusters(), pod=pods())
def test_room_is_how_often_a_pod_can_be_placed_before_it_is_refused(cluster: CheckedCluster, pod: Pod) -> None:
    for plugin in BUILT_IN.values():
        if hasattr(plugin, "capacity"):
            assert_capacity(plugin({}), pod, cluster.ledger)


def test_no_built_in_rule_is_without_a_reference() -> None:
    assert BUILT_IN.keys() - BEYOND_A_NODE == reference.REFERENCES.keys() | NO_NODES_IN_THEIR_ANSWERS


def plain(value: Any) -> Any:
    """As it stands in a configuration file."""
    return msgspec.json.decode(encode(value))
