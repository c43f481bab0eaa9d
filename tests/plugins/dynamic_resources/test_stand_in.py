"""Device claims are not built: pods that need them stay pending with a reason, alone or in a gang, in any profile."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from kubenexus.api.codec import Unreadable, decode_pod, read_object
from kubenexus.api.core import Node, Pod, PodResourceClaim
from kubenexus.api.devices.resource_claim import DeviceClass
from kubenexus.config.catalogue import Catalogue
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.profile import EnabledPlugin, Profile, ProfilePlugins
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.reservation import is_capacity_shortage
from kubenexus.plugins import BUILT_IN, profile_plugins
from kubenexus.queue.job_signature import sign_job
from kubenexus.queue.object_events import node_added, node_changed
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.testing.builders import a_device_class, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.config.builders import loaded

GPU = "nvidia.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/"
NOT_YET = "device claims are not supported yet"
NONE_HERE = f"node(s) offer no {GPU}, and {NOT_YET}"
BACKED = a_device_class("class", resource=GPU)


def claiming(name: str = "p", *claims: str, **pod: Any) -> Pod:
    """A pod with claims of these names, each for a ResourceClaim of its own."""
    named = claims or ("gpu",)
    made = [PodResourceClaim(name=claim, resource_claim_name=f"{name}-{claim}") for claim in named]
    return a_pod(name, resource_claims=made, **pod)


def as_json(claims: Any) -> bytes:
    meta = {"name": "p", "namespace": "default"}
    return msgspec.json.encode({"metadata": meta, "spec": {"resourceClaims": claims}})


def decided(
    pods: Pod | Iterable[Pod],
    nodes: Iterable[Node] = (a_node("n"),),
    classes: Iterable[DeviceClass] = (BACKED,),
    rules: ProfilePlugins | None = None,
    minimum: int | None = None,
    running: Iterable[Pod] = (),
) -> Decision:
    members = (pods,) if isinstance(pods, Pod) else tuple(pods)
    job = Job("default/job", members, len(members) if minimum is None else minimum)
    return Planner(rules or profile_plugins()).decide(job, a_ledger(nodes, running, classes).snapshot(), 0.0)


# --- claims -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "named"),
    [
        pytest.param([{"name": "gpu", "resourceClaimName": "mine"}], "gpu", id="a claim that exists or not"),
        pytest.param([{"name": "gpu", "resourceClaimTemplateName": "t"}], "gpu", id="a claim made from a template"),
        pytest.param([{"name": "a"}, {"name": "b"}], "a b", id="several"),
        pytest.param([{"name": f"c{i}"} for i in range(6)], "c0 c1 c2 c3 c4 ...", id="more than are named"),
        pytest.param([{"name": "g", "podGroupResourceClaim": "x"}], "g", id="of a sort not known yet"),
        pytest.param([{}], "", id="nameless"),
        pytest.param([{"name": "a"}, {"name": None, "resourceClaimName": None}], "a ", id="null in a claim"),
    ],
)
def test_a_pod_with_device_claims_is_refused_as_a_whole(claims: Any, named: str) -> None:
    pod = decode_pod(
        msgspec.json.encode({"metadata": {"name": "p", "namespace": "default"}, "spec": {"resourceClaims": claims}})
    )
    decision = decided(pod)
    assert decision.code is Code.UNRESOLVABLE
    assert decision.diagnosis.refused_by == ("DynamicResources",)
    assert decision.sentence() == f"0/1 nodes are available: {NOT_YET}: pod has resource claims [{named}]."


@pytest.mark.parametrize("claims", [None, []], ids=["null", "empty"])
def test_a_pod_without_claims_is_placed(claims: Any) -> None:
    pod = decode_pod(
        msgspec.json.encode({"metadata": {"name": "p", "namespace": "default"}, "spec": {"resourceClaims": claims}})
    )
    assert decided(pod).placed


def test_claims_that_are_no_claims_make_the_pod_unreadable_and_the_field_is_named() -> None:
    found = read_object(
        msgspec.json.encode({"metadata": {"name": "p", "namespace": "default"}, "spec": {"resourceClaims": [7]}}), Pod
    )
    assert isinstance(found, Unreadable)
    assert "resourceClaims" in found.field


def test_a_pod_with_claims_that_has_a_node_counts_there_as_any_other() -> None:
    running = [claiming("old", cpu=3, node="n")]
    assert not decided(a_pod("new", cpu=2), [a_node("n", cpu=4)], running=running).placed
    assert decided(a_pod("new", cpu=1), [a_node("n", cpu=4)], running=running).placed


def test_a_nomination_does_not_get_claims_past_the_rule() -> None:
    assert decided(claiming(nominated="n")).code is Code.UNRESOLVABLE


def test_pods_with_claims_of_their_own_are_one_kind_and_refused_together() -> None:
    planner, ledger = Planner(profile_plugins()), a_ledger([a_node("n")])

    def kind(pod: Pod) -> bytes:
        return sign_job(Job.of(pod), lambda each: planner.class_cache.signature(each, ledger.nodes, lift=False)).digest

    assert kind(claiming("a")) == kind(claiming("b"))
    assert kind(claiming("a")) != kind(claiming("a", "other"))
    assert kind(claiming("a")) != kind(a_pod("a"))


# --- resources that a DeviceClass backs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "asked", "classes", "said"),
    [
        pytest.param([a_node("n")], {GPU: 8}, [BACKED], f"1 {NONE_HERE}", id="no node offers it"),
        pytest.param([a_node("n", resources={GPU: 0})], {GPU: 1}, [BACKED], f"1 {NONE_HERE}", id="one offers 0 of it"),
        pytest.param([a_node("n", gpu=8)], {GPU: 8}, [BACKED], "", id="a device plugin offers enough"),
        pytest.param([a_node("n", gpu=4)], {GPU: 8}, [BACKED], f"1 Insufficient {GPU}", id="a plugin offers too few"),
        pytest.param([a_node("a"), a_node("b", gpu=1)], {GPU: 1}, [BACKED], "", id="some nodes offer it"),
        pytest.param(
            [a_node("a"), a_node("b", gpu=1)],
            {GPU: 2},
            [BACKED],
            f"1 Insufficient {GPU}, 1 {NONE_HERE}",
            id="some nodes offer too little of it",
        ),
        pytest.param([a_node("n")], {GPU: 8}, [], f"1 Insufficient {GPU}", id="nothing backs it"),
        pytest.param(
            [a_node("n")],
            {f"{IMPLICIT}class": 1},
            [a_device_class("class")],
            f"1 node(s) offer no {IMPLICIT}class, and {NOT_YET}",
            id="it has the name of a class",
        ),
        pytest.param([a_node("n")], {GPU: 0}, [BACKED], "", id="none is asked for"),
        pytest.param(
            [a_node("n", cpu=0)], {"cpu": 1}, [a_device_class("c", resource="cpu")], "1 Insufficient cpu", id="cpu"
        ),
    ],
)
def test_a_resource_that_a_device_class_backs(
    nodes: list[Node], asked: dict[str, int], classes: list[DeviceClass], said: str
) -> None:
    decision = decided(a_pod("p", requests=asked), nodes, classes)
    assert decision.placed == (not said)
    if said:
        assert decision.sentence() == f"0/{len(nodes)} nodes are available: {said}."


def test_pods_go_where_a_device_plugin_offers_what_they_ask_for_and_nowhere_else() -> None:
    nodes = [a_node("cpu"), a_node("gpu", gpu=2)]
    gang = [a_pod(f"m{i}", gpu=1) for i in range(3)]
    assert {each.node for each in decided(gang[:2], nodes).placements} == {"gpu"}
    assert not decided(gang, nodes).placed


@pytest.mark.parametrize(
    ("event", "wakes"),
    [
        pytest.param(node_added(a_node("n", gpu=1), frozenset({GPU})), True, id="a node that offers it"),
        pytest.param(node_added(a_node("n"), frozenset({GPU})), False, id="a node that does not"),
        pytest.param(
            node_changed(a_node("n"), a_node("n", gpu=1), frozenset({GPU}))[0], True, id="a node begins to offer it"
        ),
    ],
)
def test_what_wakes_a_pod_that_asks_for_such_a_resource(event: Any, wakes: bool) -> None:
    profile = QueueProfile.of(profile_plugins(), lambda pod: b"")
    assert profile.may_help(["DynamicResources"], event, [a_pod("p", gpu=1)]) == wakes
    assert not profile.may_help(["DynamicResources"], event, [claiming(gpu=1)]), "claims stay what they are"


# --- gangs ------------------------------------------------------------------------------------------------------------


def test_a_gang_with_claims_says_so_and_lacks_no_room() -> None:
    decision = decided([claiming(f"m{i}", cpu=1) for i in range(3)])
    assert decision.code is Code.UNRESOLVABLE
    assert decision.sentence() == f"0/1 nodes are available: {NOT_YET}: pod has resource claims [gpu]."
    assert decision.diagnosis.refused_by == ("DynamicResources",)
    assert decision.gang_diagnosis is None, "nothing is kept for it"


@pytest.mark.parametrize(
    ("minimum", "placed"),
    [
        pytest.param(2, {"a", "b"}, id="those without claims are enough"),
        pytest.param(3, set(), id="they are too few"),
    ],
)
def test_a_gang_of_which_some_have_claims(minimum: int, placed: set[str]) -> None:
    decision = decided([claiming("c", cpu=1), a_pod("a", cpu=1), a_pod("b", cpu=1)], minimum=minimum)
    assert {each.pod.partition("/")[2] for each in decision.placements} == placed
    assert placed or NOT_YET in decision.sentence()


def test_a_gang_that_asks_for_what_a_device_class_backs_is_told_and_keeps_no_room() -> None:
    for other in (1, 2):  # of one class, and of two
        gang = [a_pod("m0", cpu=1, gpu=8), a_pod("m1", cpu=other, gpu=8)]
        decision = decided(gang, [a_node("a"), a_node("b")])
        assert not decision.placed
        assert f"({NONE_HERE})" in decision.sentence()
        assert decision.gang_diagnosis is not None
        assert not is_capacity_shortage(decision.gang_diagnosis)


def test_a_gang_that_waits_for_full_gpu_nodes_still_lacks_room() -> None:
    running = [a_pod("old", gpu=2, node="gpu")]
    gang = [a_pod(f"m{i}", gpu=1) for i in range(2)]
    decision = decided(gang, [a_node("cpu"), a_node("gpu", gpu=2)], running=running)
    assert decision.gang_diagnosis is not None
    assert is_capacity_shortage(decision.gang_diagnosis)
    assert NOT_YET not in decision.sentence()


# --- no configuration takes it out ------------------------------------------------------------------------------------

DISABLED = "{disabled: [{name: DynamicResources}]}"
EVERYTHING = "{disabled: [{name: '*'}]}"


@pytest.mark.parametrize(
    "plugins",
    [
        pytest.param("", id="nothing said"),
        pytest.param("multiPoint: {enabled: [{name: DynamicResources}]}", id="enabled by name"),
        pytest.param(f"multiPoint: {DISABLED}", id="disabled everywhere"),
        pytest.param(f"filter: {DISABLED}, preFilter: {DISABLED}", id="disabled at its points"),
        pytest.param(f"filter: {EVERYTHING}, preFilter: {EVERYTHING}", id="no filters at all"),
        pytest.param(
            "multiPoint: {enabled: [{name: PrioritySort}, {name: DefaultBinder}], disabled: [{name: '*'}]}",
            id="a profile with next to nothing",
        ),
    ],
)
def test_whatever_a_profile_says_claims_are_refused(plugins: str) -> None:
    text = f"profiles: [{{schedulerName: s, plugins: {{{plugins}}}}}]"
    profile = loaded(text, dict(BUILT_IN)).profiles[0]
    rules = ProfilePlugins(profile, BUILT_IN)
    assert [each.name for each in rules.filters].count("DynamicResources") == 1
    for pods in (claiming(), [claiming("a"), claiming("b")], a_pod("p", gpu=8), [a_pod("a", gpu=8), a_pod("b", gpu=8)]):
        assert not decided(pods, rules=rules).placed
    assert decided(a_pod("p", cpu=1), rules=rules).placed


def test_a_profile_that_disables_it_is_told_that_it_stays_on() -> None:
    found = loaded(f"profiles: [{{plugins: {{multiPoint: {DISABLED}}}}}]", dict(BUILT_IN))
    said = [str(note) for note in found.notes]
    assert any(
        note.startswith("profiles[0].plugins.multiPoint.disabled[0].name: DynamicResources stays on") for note in said
    )


def test_it_counts_as_not_built() -> None:
    assert not Catalogue(BUILT_IN).is_built("DynamicResources")
    (note,) = loaded("", dict(BUILT_IN)).notes
    assert "DynamicResources" in note.message.partition("not built yet: ")[2]


def test_a_lineup_of_one_rule_has_it_too() -> None:
    rules = ProfilePlugins(Profile("one", (EnabledPlugin("NodeName"),)), BUILT_IN)
    assert decided(claiming(), rules=rules).code is Code.UNRESOLVABLE
