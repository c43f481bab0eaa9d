"""Profiles as the scheduler runs them: which plugins, at which points, in which order; what is missing is said."""

import functools
from collections.abc import Mapping
from typing import Any

import pytest

from kubenexus.config.catalogue import BINDER, PLANNER, PREEMPTION, SHIPPED_SET, UPSTREAM_SET, Catalogue
from kubenexus.framework.profile import Factory, ProfilePlugins, TieBreak
from kubenexus.plugins import BUILT_IN, BUILT_IN_ORDER, shipped_profile
from tests.config.builders import ALL, a_plugin, a_registry, loaded, names, problems

OWN = [
    "ProfileClassifier",
    "WorkloadAwareScoring",
    "BackfillScoring",
    "TenantHardwareAffinityScore",
    "DeviceFit",
    "VRAMScheduler",
    "GPUTopology",
    "ResourceFragmentationScore",
    "NetworkFabricScore",
    "TopologyScoring",
    "NUMATopology",
    "Coscheduling",
    "GangPreemption",
    "ResourceReservation",
]

# `kube-scheduler --write-config-to` of 1.37, its feature gates as they are.
UPSTREAM = (
    "SchedulingGates, PrioritySort, NodeName, NodeUnschedulable, TaintToleration 3, NodeAffinity 2, NodePorts, "
    "NodeResourcesFit 1, VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone, PodTopologySpread 2, "
    "InterPodAffinity 2, DynamicResources 2, DefaultPreemption, NodeResourcesBalancedAllocation 1, ImageLocality 1, "
    "DefaultBinder, NodeDeclaredFeatures"
)


def test_default_scheduler_has_kube_schedulers_plugins_in_its_order() -> None:
    (profile,) = loaded("profiles: [{schedulerName: default-scheduler}]").document.profiles
    found = profile.plugins.multi_point.enabled
    assert ", ".join(f"{each.name} {each.weight}" if each.weight else each.name for each in found) == UPSTREAM


def test_every_other_profile_has_the_planner_too() -> None:
    for said in ("", "profiles: [{}]", "profiles: [{schedulerName: mine}]"):
        (profile,) = loaded(said).document.profiles
        assert profile.plugins.multi_point.enabled == list(SHIPPED_SET)
    assert [plugin.name for plugin in SHIPPED_SET[len(UPSTREAM_SET) :]] == OWN


def test_what_is_built_stands_in_the_same_order_and_with_the_same_weights_in_both_tables() -> None:
    ours = loaded("", BUILT_IN).profiles[0]
    assert [(each.name, each.weight) for each in ours.plugins] == [
        (each.name, each.weight) for each in shipped_profile().plugins
    ]
    theirs = loaded("profiles: [{schedulerName: default-scheduler}]", BUILT_IN).profiles[0]
    assert [(each.name, each.weight) for each in theirs.plugins] == [
        (plugin.name, weight) for plugin, weight in BUILT_IN_ORDER
    ]
    assert ours.points == shipped_profile().points == {}


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_plugin_is_known_by_name(name: str) -> None:
    assert name in Catalogue({})
    assert Catalogue(BUILT_IN).points[name] == Catalogue({}).points[name]


def test_plugins_that_are_not_built_are_left_out_and_named() -> None:
    few = {name: ALL[name] for name in ("PrioritySort", "NodeName", "NodeAffinity")}
    configuration = loaded("", few)
    assert names(configuration) == ["PrioritySort", "NodeName", "NodeAffinity"]
    (note,) = configuration.notes
    missing = [plugin.name for plugin in SHIPPED_SET if plugin.name not in {*few, BINDER, PREEMPTION, *PLANNER}]
    assert note.path == "profiles[0].plugins"
    assert note.message == f"not built yet: {', '.join(missing)}"
    assert "DynamicResources" in configuration.args["kubenexus-scheduler"]  # its arguments are there all the same


def test_without_any_plugin_there_is_still_a_configuration() -> None:
    assert loaded("", {}).profiles[0].plugins == ()


@pytest.mark.parametrize(
    ("said", "points", "attribute", "expected"),
    [
        pytest.param("filter: {disabled: [{name: NodeName}]}", ["filter"], "filters", "-NodeName", id="off at a point"),
        pytest.param(
            "filter: {enabled: [{name: NodePorts}]}", ["filter"], "filters", "NodePorts first", id="first at a point"
        ),
        pytest.param(
            "preFilter: {disabled: [{name: '*'}]}", ["preFilter"], "pre_filter", "nobody", id="a point without"
        ),
        pytest.param("score: {disabled: [{name: '*'}]}", ["score"], "scores", "nobody", id="no scores"),
        pytest.param("reserve: {disabled: [{name: '*'}]}", ["reserve"], "assigns", "nobody", id="no reservations"),
        pytest.param("preEnqueue: {disabled: [{name: '*'}]}", ["preEnqueue"], "pre_enqueue", "nobody", id="no gates"),
        pytest.param("preScore: {disabled: [{name: '*'}]}", ["preScore"], "scores", "", id="a point we do not have"),
    ],
)
def test_a_point_may_differ_from_the_others(said: str, points: list[str], attribute: str, expected: str) -> None:
    usual = [plugin.name for plugin in getattr(ProfilePlugins(loaded("").profiles[0], ALL), attribute)]
    profile = loaded(f"profiles: [{{plugins: {{{said}}}}}]").profiles[0]
    found = [plugin.name for plugin in getattr(ProfilePlugins(profile, ALL), attribute)]
    assert list(profile.points) == points
    if expected == "nobody":
        assert found == []
    elif expected.startswith("-"):
        assert found == [name for name in usual if name != expected[1:]]
    elif expected:
        assert found == sorted(usual, key=lambda name: name != expected.split(maxsplit=1)[0])
    else:
        assert found == usual


def test_a_plugin_that_is_off_everywhere_is_not_made() -> None:
    said = "profiles: [{plugins: {filter: {disabled: [{name: NodeName}]}, preFilter: {disabled: [{name: NodeName}]}}}]"
    assert "NodeName" not in names(loaded(said))
    assert "ImageLocality" not in names(
        loaded("profiles: [{plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}}]")
    )


def test_an_installed_plugin_is_on_when_it_is_named() -> None:
    registry = a_registry(Mine="filter score")
    assert "Mine" not in names(loaded("", registry))
    on, args = "multiPoint: {enabled: [{name: Mine, weight: 4}]}", "pluginConfig: [{name: Mine, args: {a: 1}}]"
    mine = loaded(f"profiles: [{{plugins: {{{on}}}, {args}}}]", registry).profiles[0].plugins[-1]
    assert (mine.name, mine.weight, mine.args) == ("Mine", 4, {"a": 1})
    assert problems("profiles: [{plugins: {reserve: {enabled: [{name: Mine}]}}}]", registry) == [
        'profiles[0].plugins.reserve.enabled[0].name: Invalid value: "Mine": plugin does not extend reserve; '
        "it extends preFilter, filter, preScore, score"
    ]


def test_an_installed_plugin_may_be_made_by_a_function() -> None:
    registry: dict[str, Factory] = {**ALL, "Mine": functools.partial(a_plugin("Mine", ["score"]))}
    profile = loaded("profiles: [{plugins: {score: {enabled: [{name: Mine}]}}}]", registry).profiles[0]
    assert [each.name for each in ProfilePlugins(profile, registry).scores][-1] == "Mine"


def test_an_installed_plugin_that_refuses_its_arguments_is_a_problem_with_a_path() -> None:
    def picky(args: Mapping[str, Any]) -> Any:
        return {}[args["level"]]

    registry = {**ALL, "Picky": picky}
    on = "plugins: {filter: {enabled: [{name: Picky}]}}"
    assert problems(f"profiles: [{{{on}}}]", registry) == [
        "profiles[0].plugins: plugin \"Picky\" refuses its arguments: 'level'"
    ]
    assert problems(f"profiles: [{{{on}, pluginConfig: [{{name: Picky, args: {{level: 9}}}}]}}]", registry) == [
        'profiles[0].pluginConfig[0].args: plugin "Picky" refuses its arguments: 9'
    ]


@pytest.mark.parametrize(
    ("said", "tie_break", "seed"),
    [
        ("{}", TieBreak.SEEDED, 0),
        ("{seed: -5}", TieBreak.SEEDED, -5),
        ("{tieBreak: name}", TieBreak.NAME, 0),
        ("{tieBreak: in-use, seed: 3}", TieBreak.IN_USE, 3),
    ],
)
def test_ties_are_a_setting_of_the_profile(said: str, tie_break: TieBreak, seed: int) -> None:
    profile = loaded(f"profiles: [{{pluginConfig: [{{name: KubeNexus, args: {said}}}]}}]").profiles[0]
    assert (profile.tie_break, profile.seed) == (tie_break, seed)


def test_a_packing_profile_may_still_choose_its_ties() -> None:
    packing = "{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}"
    chosen = "{name: KubeNexus, args: {tieBreak: seeded}}"
    assert loaded(f"profiles: [{{pluginConfig: [{packing}]}}]").profiles[0].tie_break is TieBreak.IN_USE
    assert loaded(f"profiles: [{{pluginConfig: [{packing}, {chosen}]}}]").profiles[0].tie_break is TieBreak.SEEDED


@pytest.mark.parametrize(
    ("said", "note"),
    [
        pytest.param(
            "profiles: [{plugins: {filter: {disabled: [{name: NodeNam}]}}}]",
            'profiles[0].plugins.filter.disabled[0].name: disables "NodeNam", which does not exist; '
            'did you mean "NodeName"?',
            id="a plugin disabled that does not exist",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeName, args: {a: 1}}]}]",
            "profiles[0].pluginConfig[0].args: have no effect: NodeName takes none",
            id="arguments for a plugin without",
        ),
        pytest.param(
            "percentageOfNodesToScore: 30",
            "percentageOfNodesToScore: has no effect: all nodes are scored, always",
            id="a percentage",
        ),
        pytest.param(
            "leaderElection: {resourceName: kube-scheduler, resourceNamespace: kube-system}",
            "leaderElection.resourceName: is kube-scheduler's own lease: while it holds it, nothing is scheduled here "
            "(ours is kubenexus-system/kubenexus-scheduler)",
            id="kube-scheduler's lease",
        ),
    ],
)
def test_what_does_nothing_is_accepted_and_said(said: str, note: str) -> None:
    assert [str(each) for each in loaded(said).notes] == [note]


def test_a_profile_is_found_by_the_name_pods_ask_for() -> None:
    both = loaded("profiles: [{schedulerName: a}, {schedulerName: b}]")
    assert [profile.name for profile in both.profiles] == ["a", "b"]
    assert both.profile("b") is both.profiles[1]
    assert both.profile("c") is None
