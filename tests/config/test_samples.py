"""kube-scheduler's sample configurations, written from its manual, load as they are and mean what they mean there."""

from pathlib import Path

import pytest

from kubenexus.config import Configuration, load, validate
from kubenexus.config.catalogue import PLANNER, SHIPPED_SET
from kubenexus.framework.profile import ProfilePlugins, TieBreak
from kubenexus.plugins import BUILT_IN
from kubenexus.testing.oracle.upstream import SCORES
from tests.config.builders import ALL, a_registry

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.yaml"))
EVERYTHING = a_registry(
    MyPlugin="preFilter filter score",
    MyCustomPluginA="score",
    MyCustomPluginB="score",
    CustomQueueSort="queueSort",
    CustomPlugin1="filter score",
    CustomPlugin2="filter",
)
NEEDS_OTHERS = {"one-point", "point-by-point", "multi-point", "multi-point-but-one", "other-queue-sort"}
OWN_SCORES = {
    "WorkloadAwareScoring": 3,
    "BackfillScoring": 2,
    "TenantHardwareAffinityScore": 16,
    "VRAMScheduler": 5,
    "GPUTopology": 2,
    "ResourceFragmentationScore": 5,
    "NetworkFabricScore": 3,
    "TopologyScoring": 3,
    "NUMATopology": 4,
}
REQUESTED = ("TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity")
SHIPPED_SCORES = {name: weight * (4 if name in REQUESTED else 1) for name, weight in SCORES.items()} | OWN_SCORES
SCORES_ONLY = ("WorkloadAwareScoring", "TopologyScoring", "BackfillScoring")  # of our own: they refuse no node


def sample(name: str) -> Configuration:
    return load(Path(__file__).parent / "samples" / f"{name}.yaml", EVERYTHING)


def weights(configuration: Configuration, profile: int = 0) -> dict[str, int]:
    """Of those that score."""
    profile_plugins = ProfilePlugins(configuration.profiles[profile], EVERYTHING)
    return {plugin.name: profile_plugins.weights[plugin.name] for plugin in profile_plugins.scores}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_loads_with_all_plugins_and_with_those_that_are_built(path: Path) -> None:
    assert validate(path, EVERYTHING) == []
    for profile in load(path, EVERYTHING).profiles:
        ProfilePlugins(profile, EVERYTHING)
    if path.stem in NEEDS_OTHERS:
        assert all("plugin does not exist" in problem.message for problem in validate(path, ALL))
    else:
        for profile in load(path, BUILT_IN).profiles:
            ProfilePlugins(profile, BUILT_IN)


def test_minimal_is_the_shipped_profile_and_a_place_to_find_the_cluster() -> None:
    minimal = sample("minimal")
    (profile,) = minimal.profiles
    assert profile.name == "kubenexus-scheduler"
    assert [each.name for each in profile.plugins] == [
        plugin.name for plugin in SHIPPED_SET if plugin.name not in PLANNER
    ]
    assert [each.name for each in minimal.document.profiles[0].plugins.multi_point.enabled] == [
        plugin.name for plugin in SHIPPED_SET
    ]
    assert minimal.document.client_connection.kubeconfig == "/etc/srv/kubernetes/kube-scheduler/kubeconfig"
    assert minimal.notes == ()
    assert weights(minimal) == SHIPPED_SCORES


def test_one_point() -> None:
    (profile,) = sample("one-point").profiles
    profile_plugins = ProfilePlugins(profile, EVERYTHING)
    expected = {name: weight for name, weight in SHIPPED_SCORES.items() if name != "PodTopologySpread"}
    assert weights(sample("one-point")) == {**expected, "MyCustomPluginA": 2, "MyCustomPluginB": 1}
    assert "PodTopologySpread" in [plugin.name for plugin in profile_plugins.filters]


def test_two_profiles() -> None:
    everything, quick = (ProfilePlugins(profile, EVERYTHING) for profile in sample("two-profiles").profiles)
    filters = [name for name in OWN_SCORES if name not in SCORES_ONLY]
    own = [filters[0], "DeviceFit", *filters[1:]]  # a profile with kube-scheduler's name has none of them
    assert [plugin.name for plugin in quick.filters] == [*(plugin.name for plugin in everything.filters), *own]
    assert len(everything.scores) == len(SCORES)
    assert quick.scores == []
    assert "ImageLocality" not in [plugin.name for plugin in quick.plugins]  # it has no other point


def test_by_hand_is_the_same_as_multi_point() -> None:
    by_hand, at_once = (
        ProfilePlugins(sample(name).profiles[0], EVERYTHING) for name in ("point-by-point", "multi-point")
    )
    for points in ("pre_filter", "filters", "scores"):
        names = [[plugin.name for plugin in getattr(profile_plugins, points)] for profile_plugins in (by_hand, at_once)]
        assert names[0] == names[1]
        assert names[0][-1] == "MyPlugin"


def test_everywhere_but_at_one_point() -> None:
    profile_plugins = ProfilePlugins(sample("multi-point-but-one").profiles[0], EVERYTHING)
    assert "MyPlugin" in [plugin.name for plugin in profile_plugins.filters]
    assert "MyPlugin" not in [plugin.name for plugin in profile_plugins.scores]


def test_all_off_and_some_on_in_the_order_named() -> None:
    few = sample("all-off-some-on")
    assert [each.name for each in few.profiles[0].plugins] == [
        "DefaultBinder",
        "PrioritySort",
        "NodeResourcesFit",
        "TaintToleration",
        "NodeName",
    ]
    assert weights(few) == {"NodeResourcesFit": 5, "TaintToleration": 1}


def test_other_queue_sort() -> None:
    profile_plugins = ProfilePlugins(sample("other-queue-sort").profiles[0], EVERYTHING)
    assert [plugin.name for plugin in profile_plugins.queue_sort] == ["CustomQueueSort"]


def test_weights_by_precedence() -> None:
    found = weights(sample("weights-by-precedence"))
    assert (found["ImageLocality"], found["NodeAffinity"], found["TaintToleration"]) == (7, 5, 1)
    assert found["InterPodAffinity"] == 8


def test_a_profile_that_packs_breaks_ties_for_nodes_in_use() -> None:
    (packing,) = sample("most-allocated").profiles
    strategy = next(each.args for each in packing.plugins if each.name == "NodeResourcesFit")["scoringStrategy"]
    assert strategy["type"] == "MostAllocated"
    assert strategy["resources"][2] == {"name": "intel.com/foo", "weight": 3}
    assert packing.tie_break is TieBreak.IN_USE
    assert sample("requested-to-capacity-ratio").profiles[0].tie_break is TieBreak.SEEDED


def test_profiles_have_their_own_arguments() -> None:
    added = sample("added-affinity")
    assert added.args["default-scheduler"]["NodeAffinity"] == {}
    assert "addedAffinity" in added.args["foo-scheduler"]["NodeAffinity"]


def test_every_setting_is_kept_and_what_has_no_effect_is_said() -> None:
    every = sample("every-setting")
    document = every.document
    assert (document.client_connection.qps, document.client_connection.burst) == (100, 200)
    assert str(document.leader_election.lease_duration) == "30s"
    assert document.delay_cache_until_active
    assert document.enable_profiling is document.enable_contention_profiling is False
    assert every.args["default-scheduler"]["DynamicResources"] == {"filterTimeout": "5s", "bindingTimeout": "5m0s"}
    assert [note.path for note in every.notes] == [
        "parallelism",
        "percentageOfNodesToScore",
        "clientConnection.contentType",
        "leaderElection.resourceName",
        "profiles[0].percentageOfNodesToScore",
    ]


def test_gang_order_is_the_order_of_our_queue() -> None:
    for name in ("coscheduling", "founding"):
        gangs = sample(name)
        for profile in gangs.profiles:
            assert [plugin.name for plugin in ProfilePlugins(profile, EVERYTHING).queue_sort] == ["PrioritySort"]
    assert sample("coscheduling").args["default-scheduler"]["Coscheduling"]["permitWaitingTimeSeconds"] == 10
    assert sample("founding").args["kubenexus-scheduler"]["Coscheduling"]["kubeflowAutoGang"] is True


def test_what_the_founding_sample_asks_for_and_is_not_there_is_said() -> None:
    notes = {note.path: note.message for note in sample("founding").notes}
    assert notes == {
        "profiles[1].pluginConfig[0].args.kubeflowAutoGang": "has no effect: a gang is planned as a whole",
    }
