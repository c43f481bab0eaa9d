"""Which members are of one class: told without looking each up, and never otherwise than looking it up would."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import (
    ClaimVolume,
    ContainerStatus,
    EphemeralVolume,
    Pod,
    PodCondition,
    PodStatus,
    ResourceRequirements,
    Volume,
)
from kubenexus.api.meta import ObjectMeta, OwnerReference
from kubenexus.api.selectors import LabelSelector
from kubenexus.api.workloads import OwnerSpec, ReplicaSet, Service, ServiceSpec
from kubenexus.app.watch.object_cache import ObjectCache, with_shared_parts
from kubenexus.cycle.class_cache import ClassCache, ClassifiedPod
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import SINGLE_POD_VIEW, Job, JobView
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.class_matcher import MAX_CLASSES_PER_SPEC
from kubenexus.plan.gang.member_classes import group_members
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.state.nodes import NodeColumns
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.cycle.test_classes import of_an_indexed_job
from tests.framework.rules import Rule, lineup_with

RULES = profile_plugins()
replace = msgspec.structs.replace


class Counting(ClassCache):
    looked = 0

    def lookup(self, pod: Pod, columns: NodeColumns, job: JobView = SINGLE_POD_VIEW) -> ClassifiedPod:
        self.looked += 1
        return super().lookup(pod, columns, job)


def a_cluster() -> Ledger:
    """Somebody keeps away from whoever is called after a colour; a service asks for an app, a controller for a tier."""
    wary = a_pod("wary", apart=["colour=red per kubernetes.io/hostname"], node="n0")
    ledger = a_ledger([a_node(f"n{i}", cpu=8) for i in range(4)], [wary])
    meta = ObjectMeta(name="web", namespace="default")
    ledger.upsert_owner(Service(metadata=meta, spec=ServiceSpec(selector={"app": "web"})))
    ledger.upsert_owner(
        ReplicaSet(metadata=meta, spec=OwnerSpec(selector=LabelSelector(match_labels={"tier": "front"})))
    )
    return ledger


# What may be different about a member: its labels, its owner, its volumes, its spec, or what a kubelet said.
def labelled(pod: Pod, **labels: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, labels=labels))


def owned(pod: Pod) -> Pod:
    owner = OwnerReference(kind="ReplicaSet", name="web", uid="u", api_version="apps/v1", controller=True)
    return replace(pod, metadata=replace(pod.metadata, labels={"tier": "front"}, owner_references=[owner]))


def mounting(pod: Pod, *volumes: Volume) -> Pod:
    return replace(pod, spec=replace(pod.spec, volumes=list(volumes)))


def told(pod: Pod, **status: Any) -> Pod:
    return replace(pod, status=PodStatus(**status))


MORE = ResourceRequirements(requests={"cpu": "2"})
CHANGES: dict[str, Callable[[Pod], Pod]] = {
    "nothing": lambda pod: pod,
    "a number": lambda pod: labelled(pod, number=pod.metadata.name),
    "a label that somebody keeps away from": lambda pod: labelled(pod, colour="red"),
    "a label that a service asks for": lambda pod: labelled(pod, app="web"),
    "a controller": owned,
    "a namespace": lambda pod: replace(pod, metadata=replace(pod.metadata, namespace="other")),
    "annotations": lambda pod: replace(pod, metadata=replace(pod.metadata, annotations={"a": pod.metadata.name})),
    "a priority": lambda pod: replace(pod, spec=replace(pod.spec, priority=7)),
    "a token": lambda pod: mounting(pod, Volume(name=f"token-{pod.metadata.name}")),
    "a claim": lambda pod: mounting(pod, Volume(name="v", persistent_volume_claim=ClaimVolume(claim_name="c"))),
    "a claim of its own": lambda pod: mounting(pod, Volume(name="v", ephemeral=EphemeralVolume())),
    "what its containers have": lambda pod: told(
        pod, container_statuses=[ContainerStatus(name="main", allocated_resources={"cpu": "2"})]
    ),
    "what its first containers had": lambda pod: told(
        pod, init_container_statuses=[ContainerStatus(name="main", allocated_resources={"cpu": "2"})]
    ),
    "what it has": lambda pod: told(pod, resources=MORE),
    "what it was given": lambda pod: told(pod, allocated_resources={"cpu": "2"}),
    "that it was given nothing": lambda pod: told(pod, allocated_resources={}),
    "that it cannot grow": lambda pod: told(pod, conditions=[PodCondition(type="PodResizePending", reason="Deferred")]),
    "that it waits": lambda pod: told(pod, conditions=[PodCondition(type="PodScheduled", message=pod.metadata.name)]),
}


def sorted_into(pods: Iterable[Pod], rules: ProfilePlugins | None = None) -> list[list[str]]:
    """Who is in one crew with whom."""
    ledger, class_cache = a_cluster(), ClassCache(rules or RULES)
    return [
        [pod.metadata.name for pod in member_class.pods]
        for member_class in group_members(tuple(pods), class_cache, ledger.nodes)
    ]


def looked_up(pods: Iterable[Pod]) -> list[list[str]]:
    """The same by asking for the class of each."""
    ledger, class_cache = a_cluster(), ClassCache(RULES)
    found: dict[Any, list[str]] = {}
    for pod in pods:
        classified = class_cache.lookup(pod, ledger.nodes)
        found.setdefault((classified.table.pod.signature, classified.node_names), []).append(pod.metadata.name)
    return list(found.values())


def members(changes: Iterable[str]) -> list[Pod]:
    return [CHANGES[change](a_pod(f"m{i}", cpu=1)) for i, change in enumerate(changes)]


@pytest.mark.parametrize("change", CHANGES)
def test_members_are_sorted_as_if_each_had_been_looked_up(change: str) -> None:
    pods = members(["nothing", change, "nothing", change])
    assert sorted_into(pods) == looked_up(pods)


@given(st.lists(st.sampled_from(sorted(CHANGES)), min_size=2, max_size=MAX_CLASSES_PER_SPEC + 4), st.booleans())
def test_so_are_any_others_whether_they_share_their_parts_or_not(changes: list[str], shared: bool) -> None:
    cache, pods = ObjectCache(), members(changes)
    pods = [with_shared_parts(pod, cache.stripped_pod(pod)) for pod in pods] if shared else pods
    assert sorted_into(pods) == looked_up(pods)


def test_of_a_thousand_members_of_an_indexed_job_one_is_looked_up() -> None:
    bench, cache, ledger = Counting(RULES), ObjectCache(), a_cluster()
    pods = tuple(with_shared_parts(pod, cache.stripped_pod(pod)) for pod in map(of_an_indexed_job, range(1000)))
    member_classes = group_members(pods, bench, ledger.nodes)
    assert ([member_class.size for member_class in member_classes], bench.looked) == ([1000], 1)


def test_members_of_many_kinds_in_turn_are_found_again() -> None:
    pods = [a_pod(f"m{i}", cpu=1 + i % MAX_CLASSES_PER_SPEC) for i in range(5 * MAX_CLASSES_PER_SPEC)]
    bench = Counting(RULES)
    member_classes = group_members(tuple(pods), bench, a_cluster().nodes)
    assert ([member_class.size for member_class in member_classes], bench.looked) == (
        [5] * MAX_CLASSES_PER_SPEC,
        MAX_CLASSES_PER_SPEC,
    )


# --- plugins from elsewhere ---------------------------------------------------------------------------------------


def signing(by: Callable[[Pod], Any]) -> type[Rule]:
    class Signing(Rule):
        def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
            return by(pod)

    return Signing


@pytest.mark.parametrize(
    "by",
    [
        pytest.param(lambda pod: pod.metadata.name in ("m1", "m3"), id="name"),
        pytest.param(lambda pod: pod.metadata.annotations.get("a", ""), id="annotations"),
    ],
)
def test_a_rule_from_elsewhere_may_sign_whatever_it_likes(by: Callable[[Pod], Any]) -> None:
    pods = [a_pod(f"m{i}", cpu=1, annotations={"a": str(i % 2)}) for i in range(4)]
    assert sorted_into(pods, lineup_with(signing(by))) == [["m0", "m2"], ["m1", "m3"]]


def test_a_rule_from_elsewhere_may_pin_a_member_by_its_name() -> None:
    class Pinning(Rule):
        def node_names(self, pod: Pod) -> frozenset[str] | None:
            return frozenset({"n1"}) if pod.metadata.name == "m1" else None

    pods = [a_pod(f"m{i}", cpu=1, prefers={"zone In a": 1}) for i in range(3)]
    assert sorted_into(pods, lineup_with(Pinning)) == [["m0", "m2"], ["m1"]]


def test_a_rule_may_read_a_label() -> None:
    class Reading(Rule):
        reads = ("metadata.labels[number]",)

    pods = [a_pod(f"m{i}", cpu=1, labels={"number": str(i % 2)}) for i in range(4)]
    assert sorted_into(pods, lineup_with(Reading)) == [["m0", "m2"], ["m1", "m3"]]


def decided(pods: list[Pod], rule: type[Rule]) -> Decision:
    return Planner(lineup_with(rule)).decide(Job("default/gang", tuple(pods), len(pods)), a_cluster().snapshot(), 0.0)


def test_a_rule_that_fails_for_the_second_member_fails_the_gang_and_is_named() -> None:
    def by(pod: Pod) -> None:
        if pod.metadata.name == "m1":
            raise ValueError("no idea")

    decision = decided([a_pod(f"m{i}", cpu=1) for i in range(3)], signing(by))
    assert decision.code is Code.ERROR
    assert "Rule" in decision.error
    assert "no idea" in decision.error


def test_members_that_differ_from_the_first_alone_are_signed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One member of a waiting gang has another label: the others are equal to each other."""
    ledger, class_cache, signed = a_cluster(), ClassCache(RULES), list[str]()
    sign = class_cache.signed_by_plugins

    def counted(pod: Pod, columns: Any) -> dict[str, Any]:
        signed.append(pod.metadata.name)
        return sign(pod, columns)

    monkeypatch.setattr(class_cache, "signed_by_plugins", counted)
    first, *others = members(["nothing"] * 50)
    assert len(group_members((labelled(first, x="y"), *others), class_cache, ledger.nodes)) == 1
    assert set(signed) == {"m0", "m1"}
