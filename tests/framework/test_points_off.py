"""A plugin may be on at `preFilter` and off at `filter`, or the other way round."""

import msgspec
import pytest

from kubenexus.api.core import (
    Affinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubenexus.api.selectors import LabelSelector
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import BUILT_IN, default_profile
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.framework.rules import Rule, lineup_with
from tests.volumes.builders import a_mounting_pod

HOST = "kubernetes.io/hostname"
TWO = [a_node("n1", labels={HOST: "n1"}), a_node("n2", labels={HOST: "n2"})]
NAMED = NodeSelectorRequirement(key="metadata.name", operator="In", values=["n2"])
WEB = LabelSelector(match_labels={"app": "web"})
SOFT = TopologySpreadConstraint(max_skew=1, topology_key=HOST, when_unsatisfiable="ScheduleAnyway", label_selector=WEB)
NEAR = WeightedPodAffinityTerm(weight=1, pod_affinity_term=PodAffinityTerm(topology_key=HOST, label_selector=WEB))
LEANING = Affinity(pod_affinity=PodAffinity(preferred=[NEAR]))


class Skipping(Rule):
    """Has nothing to say of any pod; asked all the same it refuses every node."""

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip:
        return SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        verdict.reject(nodes.alive, Reason("asked"))


class Refusing(Rule):
    """Refuses every pod, and no node."""

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Verdict:
        return Verdict(Code.UNRESOLVABLE, ("not at all",))

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        pass


def without(point: str, name: str, profile_plugins: ProfilePlugins | None = None) -> ProfilePlugins:
    """The lineup with this plugin off at this point."""
    rules = {} if profile_plugins is None else {plugin.name: type(plugin) for plugin in profile_plugins.plugins}
    profile = default_profile() if profile_plugins is None else profile_plugins.profile
    others = tuple(each.name for each in profile.plugins if each.name != name)
    return ProfilePlugins(msgspec.structs.replace(profile, points={point: others}), {**BUILT_IN, **rules})


def decided(profile_plugins: ProfilePlugins, pod: Pod) -> Decision:
    return Planner(profile_plugins).decide(Job.of(pod), a_ledger(TWO).snapshot(), 0.0)


def test_a_plugin_that_is_off_at_prefilter_cannot_skip_its_filter() -> None:
    assert decided(lineup_with(Skipping), a_pod()).placed
    refused = decided(without("preFilter", "Rule", lineup_with(Skipping)), a_pod())
    assert refused.sentence().startswith("0/2 nodes are available: 2 asked")


def test_a_plugin_that_is_off_at_prefilter_refuses_no_pod_as_a_whole() -> None:
    assert "not at all" in decided(lineup_with(Refusing), a_pod()).sentence()
    assert decided(without("preFilter", "Rule", lineup_with(Refusing)), a_pod()).placed


def test_a_plugin_that_is_off_at_filter_is_asked_at_prefilter_all_the_same() -> None:
    assert "not at all" in decided(without("filter", "Rule", lineup_with(Refusing)), a_pod()).sentence()
    assert decided(without("filter", "Rule", lineup_with(Skipping)), a_pod()).placed


def test_a_node_that_is_named_is_the_only_one_with_prefilter_or_without() -> None:
    pod = a_pod(requires=[NodeSelectorTerm(match_fields=[NAMED])])
    for profile_plugins in (ProfilePlugins(default_profile(), BUILT_IN), without("preFilter", "NodeAffinity")):
        assert [placement.node for placement in decided(profile_plugins, pod).placements] == ["n2"]


@pytest.mark.parametrize("plugin", ["VolumeBinding", "VolumeZone", "VolumeRestrictions"])
def test_a_claim_that_is_missing_refuses_the_pod_with_prefilter_or_without(plugin: str) -> None:
    alone = msgspec.structs.replace(
        default_profile(), plugins=tuple(each for each in default_profile().plugins if each.name == plugin)
    )
    bare = msgspec.structs.replace(alone, points={"preFilter": ()})
    for profile in (alone, bare):
        decision = decided(ProfilePlugins(profile, BUILT_IN), a_mounting_pod("new", "data"))
        assert not decision.placed
        assert decision.diagnosis.refused_by == (plugin,)
        assert 'persistentvolumeclaim "data" not found' in decision.sentence()


@pytest.mark.parametrize("plugin", ["InterPodAffinity", "PodTopologySpread"])
def test_a_plugin_that_only_scores_a_pod_is_repaired_without_prefilter_too(plugin: str) -> None:
    """Its filter stays in the table: that is not built anew whenever a pod is placed or a node changes."""
    ledger, planner = a_ledger(TWO), Planner(without("preFilter", plugin))
    for i in range(4):
        pod = a_pod(f"web-{i}", labels={"app": "web"}, topology_spread_constraints=[SOFT])
        job = Job.of(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=LEANING)))
        commit(planner.decide(job, ledger.snapshot(), 0.0), job, ledger, 0.0)
        ledger.upsert_node(a_node("n2", labels={HOST: "n2", "lap": str(i)}))
    assert planner.class_cache.work.builds == 1
