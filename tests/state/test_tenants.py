"""Whose a pod is: each step of the order, each spelling, and what a pod can do about it itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.kueue import ClusterQueue, ClusterQueueSpec, LocalQueue, LocalQueueSpec
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement
from kubenexus.plugins.devices.tenant_tier import tier_of
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.tenants import Tenant, Tenants
from kubenexus.testing.builders import a_pod

TIER, NAME, QUEUE = "tenant.kubenexus.io/tier", "tenant.kubenexus.io/name", "kueue.x-k8s.io/queue-name"
README_TIER, PRIORITY_TIER = "scheduling.kubenexus.io/tier", "scheduling.kubenexus.io/priority-tier"
RESEARCH = {QUEUE: "research"}


def a_local_queue(
    name: str = "research", cluster_queue: str = "gpus", namespace: str = "default", **fields: Any
) -> LocalQueue:
    metadata = ObjectMeta(name=name, namespace=namespace, **fields)
    return LocalQueue(metadata=metadata, spec=LocalQueueSpec(cluster_queue=cluster_queue))


ALL_NAMESPACES = LabelSelector()


def a_cluster_queue(
    name: str = "gpus", namespaces: LabelSelector | None = ALL_NAMESPACES, **fields: Any
) -> ClusterQueue:
    return ClusterQueue(metadata=ObjectMeta(name=name, **fields), spec=ClusterQueueSpec(namespace_selector=namespaces))


def tenants_of(
    namespace: dict[str, str] | None, local: LocalQueue | None, cluster: ClusterQueue | None, own_tier: tuple[str, ...]
) -> Tenants:
    tenants = Tenants(own_tier)
    if namespace is not None:
        tenants.set_namespace("default", namespace)
    if local is not None:
        tenants.set_local_queue(local)
    if cluster is not None:
        tenants.set_cluster_queue(cluster)
    return tenants


QUOTA = a_cluster_queue()
GOLD_QUEUE, SILVER_QUEUE = a_local_queue(annotations={TIER: "gold"}), a_local_queue(labels={TIER: "silver"})


@pytest.mark.parametrize(
    ("namespace", "local", "cluster", "pod", "tenant"),
    [
        pytest.param(None, None, None, {}, ("default", "bronze"), id="a namespace that is not known"),
        pytest.param({}, None, None, {}, ("default", "bronze"), id="a namespace without a tier"),
        pytest.param({TIER: "gold"}, None, None, {}, ("default", "gold"), id="the namespace's tier"),
        pytest.param({TIER: "GOLD"}, None, None, {}, ("default", "gold"), id="in any case"),
        pytest.param({README_TIER: "silver"}, None, None, {}, ("default", "silver"), id="under its other key"),
        pytest.param({TIER: "platinum"}, None, None, {}, ("default", "bronze"), id="a word that is none"),
        pytest.param({TIER: "premium"}, None, None, {}, ("default", "gold"), id="premium is gold"),
        pytest.param({TIER: "standard"}, None, None, {}, ("default", "silver"), id="standard is silver"),
        pytest.param({TIER: "economy"}, None, None, {}, ("default", "bronze"), id="economy is bronze"),
        pytest.param({TIER: "gold", NAME: "ml"}, None, None, {}, ("ml", "gold"), id="a tenant with a name"),
        pytest.param(
            {}, SILVER_QUEUE, QUOTA, RESEARCH, ("gpus", "silver"), id="the LocalQueue's, named after its quota"
        ),
        pytest.param({}, GOLD_QUEUE, QUOTA, RESEARCH, ("gpus", "gold"), id="as an annotation"),
        pytest.param({TIER: "bronze"}, GOLD_QUEUE, QUOTA, RESEARCH, ("gpus", "bronze"), id="at most the namespace's"),
        pytest.param({TIER: "gold"}, SILVER_QUEUE, QUOTA, RESEARCH, ("gpus", "silver"), id="also if it is lower"),
        pytest.param({}, GOLD_QUEUE, None, RESEARCH, ("default", "bronze"), id="no such ClusterQueue"),
        pytest.param(
            {TIER: "silver"},
            GOLD_QUEUE,
            a_cluster_queue("other"),
            RESEARCH,
            ("default", "silver"),
            id="no such ClusterQueue: the namespace's",
        ),
        pytest.param(
            {},
            GOLD_QUEUE,
            a_cluster_queue(labels={TIER: "silver"}),
            RESEARCH,
            ("gpus", "silver"),
            id="at most its quota's",
        ),
        pytest.param(
            {},
            SILVER_QUEUE,
            a_cluster_queue(labels={TIER: "gold"}),
            RESEARCH,
            ("gpus", "silver"),
            id="and less, if it says so",
        ),
        pytest.param(
            {TIER: "bronze"},
            a_local_queue(),
            a_cluster_queue(annotations={TIER: "gold"}),
            RESEARCH,
            ("gpus", "gold"),
            id="the ClusterQueue's tier, before the namespace's",
        ),
        pytest.param(
            {TIER: "silver"},
            a_local_queue(),
            a_cluster_queue(),
            RESEARCH,
            ("gpus", "silver"),
            id="queues without a tier",
        ),
        pytest.param({TIER: "silver"}, GOLD_QUEUE, None, {QUEUE: "other"}, ("default", "silver"), id="no such queue"),
        pytest.param(
            {},
            a_local_queue(namespace="other", labels={TIER: "gold"}),
            None,
            RESEARCH,
            ("default", "bronze"),
            id="a queue of another namespace",
        ),
        pytest.param({NAME: "ml-prod"}, a_local_queue(), QUOTA, RESEARCH, ("ml-prod", "gold"), id="prod is gold"),
        pytest.param(
            {NAME: "ml-prod"},
            a_local_queue(),
            None,
            RESEARCH,
            ("ml-prod", "bronze"),
            id="prod, but no such ClusterQueue",
        ),
        pytest.param(
            {NAME: "Production_ml"}, a_local_queue(), QUOTA, RESEARCH, ("Production_ml", "gold"), id="production"
        ),
        pytest.param(
            {NAME: "ml.staging"}, a_local_queue(), QUOTA, RESEARCH, ("ml.staging", "silver"), id="staging is silver"
        ),
        pytest.param(
            {NAME: "product-dev"}, a_local_queue(), QUOTA, RESEARCH, ("product-dev", "bronze"), id="words are whole"
        ),
        pytest.param(
            {NAME: "ml-prod"}, a_local_queue(), QUOTA, {}, ("ml-prod", "bronze"), id="only for pods with a queue"
        ),
        pytest.param({NAME: "ml-prod"}, None, None, RESEARCH, ("ml-prod", "bronze"), id="only if there is that queue"),
        pytest.param(
            {NAME: "ml-prod", TIER: "silver"},
            a_local_queue(),
            None,
            RESEARCH,
            ("ml-prod", "silver"),
            id="a tier before a name",
        ),
    ],
)
def test_the_first_that_says_something_counts(
    namespace: dict[str, str] | None,
    local: LocalQueue | None,
    cluster: ClusterQueue | None,
    pod: dict[str, str],
    tenant: tuple[str, str],
) -> None:
    assert tenants_of(namespace, local, cluster, ()).of(a_pod("p", labels=pod)) == Tenant(*tenant)


@pytest.mark.parametrize(
    ("namespace", "pod", "closed", "allowed"),
    [
        pytest.param({}, {"labels": {TIER: "gold"}}, "bronze", "gold", id="a label"),
        pytest.param({}, {"annotations": {TIER: "Silver"}}, "bronze", "silver", id="an annotation"),
        pytest.param({}, {"annotations": {PRIORITY_TIER: "high-priority"}}, "bronze", "gold", id="high-priority"),
        pytest.param({}, {"annotations": {PRIORITY_TIER: "medium-priority"}}, "bronze", "silver", id="medium-priority"),
        pytest.param({}, {"annotations": {PRIORITY_TIER: "low-priority"}}, "bronze", "bronze", id="low-priority"),
        pytest.param({}, {"labels": {TIER: "platinum"}}, "bronze", "bronze", id="a word that is none"),
        pytest.param({}, {"priority_class": "high-priority"}, "bronze", "gold", id="a class"),
        pytest.param({}, {"priority_class": "system-node-critical"}, "bronze", "gold", id="a system class"),
        pytest.param({}, {"priority_class": "default-priority"}, "bronze", "silver", id="another class"),
        pytest.param({}, {"priority_class": "batch"}, "bronze", "bronze", id="a class that says nothing"),
        pytest.param(
            {},
            {"priority_class": "best-effort", "labels": {TIER: "gold"}},
            "bronze",
            "bronze",
            id="a class before a key",
        ),
        pytest.param({TIER: "silver"}, {"labels": {TIER: "gold"}}, "silver", "silver", id="not above its namespace"),
        pytest.param({TIER: "bronze"}, {"labels": {TIER: "gold"}}, "bronze", "bronze", id="nor above bronze"),
        pytest.param({TIER: "silver"}, {"priority_class": "high-priority"}, "silver", "silver", id="nor by a class"),
        pytest.param({TIER: "gold"}, {"labels": {TIER: "silver"}}, "silver", "silver", id="a key lowers"),
        pytest.param({TIER: "gold"}, {"priority_class": "low-priority"}, "bronze", "bronze", id="a class lowers"),
        pytest.param(
            {TIER: "gold"},
            {"priority_class": "high-priority", "labels": {TIER: "silver"}},
            "silver",
            "silver",
            id="the lower of both",
        ),
    ],
)
def test_a_pod_raises_its_tier_only_where_it_may_and_nothing_else_is_said(
    namespace: dict[str, str], pod: dict[str, Any], closed: str, allowed: str
) -> None:
    name = pod.pop("priority_class", "")
    made = a_pod("p", **pod, scheduler_name="open", priority_class_name=name)
    tiers = [tenants_of(namespace, None, None, own).of(made).tier for own in ((), ("other",), ("open",))]
    assert tiers == [closed, closed, allowed]


def test_plugins_read_the_tier_of_the_columns() -> None:
    nodes = NodeColumns()
    nodes.tenants.set_namespace("default", {TIER: "gold"})
    assert tier_of(a_pod("p"), nodes) == "gold"


LABELS = st.sampled_from(
    [None, {}, {"plan": "paid"}, {TIER: "gold"}, {TIER: "silver"}, {NAME: "ml-prod"}, {TIER: "bronze", NAME: "x"}]
)
SELECTORS = st.sampled_from([None, ALL_NAMESPACES, LabelSelector(match_labels={"plan": "paid"})])
TIERS = st.sampled_from([{}, {TIER: "gold"}, {TIER: "silver"}, {TIER: "none of them"}])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("namespace"), st.sampled_from("ab"), LABELS),
        st.tuples(st.just("local"), st.sampled_from("ab"), st.sampled_from("qr"), st.sampled_from("CD"), TIERS),
        st.tuples(st.just("no local"), st.sampled_from("ab"), st.sampled_from("qr")),
        st.tuples(st.just("cluster"), st.sampled_from("CD"), TIERS, SELECTORS),
        st.tuples(st.just("no cluster"), st.sampled_from("CD")),
    ),
    max_size=20,
)
PODS = [
    a_pod("p", namespace=namespace, labels={QUEUE: queue} if queue else {}, scheduler_name=name)
    for namespace in "ab"
    for queue in ("", "q", "r", "s")
    for name in ("open", "closed")
]


@given(STEPS)
def test_what_is_remembered_is_what_the_objects_say_and_changes_are_told(steps: list[tuple[Any, ...]]) -> None:
    tenants, things = Tenants(("open",)), dict[tuple[str, ...], Any]()
    before = [(tenants.of(pod), tenants.scope(pod)) for pod in PODS]
    for what, *said in steps:
        match what:
            case "namespace":
                things["namespace", said[0]] = said[1]
                tenants.set_namespace(said[0], said[1])
            case "local":
                queue = a_local_queue(said[1], said[2], said[0], labels=said[3])
                things["local", said[0], said[1]] = queue
                tenants.set_local_queue(queue)
            case "no local":
                things.pop(("local", said[0], said[1]), None)
                tenants.remove_local_queue(f"{said[0]}/{said[1]}")
            case "cluster":
                things["cluster", said[0]] = a_cluster_queue(said[0], said[2], annotations=said[1])
                tenants.set_cluster_queue(things["cluster", said[0]])
            case "no cluster":
                things.pop(("cluster", said[0]), None)
                tenants.remove_cluster_queue(said[0])
        fresh = Tenants(("open",))
        for (kind, *names), thing in things.items():
            if kind == "namespace":
                fresh.set_namespace(names[0], thing)
            elif kind == "local":
                fresh.set_local_queue(thing)
            else:
                fresh.set_cluster_queue(thing)
        now = [(tenants.of(pod), tenants.scope(pod)) for pod in PODS]
        assert now == [(fresh.of(pod), fresh.scope(pod)) for pod in PODS]
        told = set(tenants.take_changed())
        assert {pod.metadata.namespace for pod, a, b in zip(PODS, before, now, strict=True) if a != b} <= told
        before = now
    assert tenants.take_changed() == []


def test_a_status_of_a_queue_changes_nothing() -> None:
    tenants = tenants_of({}, GOLD_QUEUE, a_cluster_queue(), ())
    tenants.take_changed()
    tenants.set_local_queue(GOLD_QUEUE)
    tenants.set_cluster_queue(a_cluster_queue())
    tenants.set_namespace("default", {})
    tenants.set_namespace("without-queues", {"some": "label"})
    assert tenants.take_changed() == []


PAID = LabelSelector(match_labels={"plan": "paid"})
NOT_FREE = LabelSelector(match_expressions=[LabelSelectorRequirement(key="plan", operator="NotIn", values=["free"])])
UNREADABLE = LabelSelector(match_expressions=[LabelSelectorRequirement(key="plan", operator="Like", values=["paid"])])


@pytest.mark.parametrize(
    ("namespace", "selector", "admitted"),
    [
        pytest.param({"plan": "paid"}, PAID, True, id="a namespace that is selected"),
        pytest.param({"plan": "free"}, PAID, False, id="a namespace that is not"),
        pytest.param({}, PAID, False, id="a namespace without the label"),
        pytest.param({}, NOT_FREE, True, id="a selector by expressions"),
        pytest.param(None, NOT_FREE, False, id="a namespace that is not known"),
        pytest.param({}, ALL_NAMESPACES, True, id="an empty selector selects all namespaces"),
        pytest.param({}, None, False, id="without a selector none, as in Kueue"),
        pytest.param({}, UNREADABLE, False, id="a selector that cannot be read selects none"),
    ],
)
def test_only_namespaces_that_a_cluster_queue_selects_get_its_tier_and_its_name(
    namespace: dict[str, str] | None, selector: LabelSelector | None, admitted: bool
) -> None:
    quota = a_cluster_queue(namespaces=selector, labels={TIER: "gold"})
    for local in (a_local_queue(), GOLD_QUEUE):
        tenant = tenants_of(namespace, local, quota, ()).of(a_pod("p", labels=RESEARCH))
        assert tenant == (("gpus", "gold") if admitted else ("default", "bronze"))


def test_a_namespace_that_a_cluster_queue_selects_no_longer_loses_its_tier() -> None:
    quota = a_cluster_queue(namespaces=PAID, labels={TIER: "gold"})
    tenants, pod = tenants_of({"plan": "paid"}, a_local_queue(), quota, ()), a_pod("p", labels=RESEARCH)
    assert tenants.of(pod).tier == "gold"
    tenants.take_changed()
    tenants.set_namespace("default", {"plan": "free"})
    assert (tenants.of(pod).tier, tenants.take_changed()) == ("bronze", ["default"])
    tenants.set_cluster_queue(a_cluster_queue(labels={TIER: "gold"}))
    assert (tenants.of(pod).tier, tenants.take_changed()) == ("gold", ["default"])


def test_a_selector_that_cannot_be_read_is_a_warning() -> None:
    tenants = Tenants()
    tenants.set_cluster_queue(a_cluster_queue(namespaces=UNREADABLE))
    assert "namespaceSelector" in tenants.take_warnings()["ClusterQueue gpus"]


def test_nothing_is_kept_of_namespaces_that_are_gone() -> None:
    tenants = Tenants()
    for number in range(20_000):
        tenants.set_namespace(f"n{number}", {TIER: "gold"})
        tenants.of(a_pod("p", namespace=f"n{number}"))
        tenants.set_namespace(f"n{number}", None)
        tenants.of(a_pod("p", namespace=f"n{number}"))
        tenants.take_changed()
    assert len(tenants._alone) <= 10_002
    assert not tenants._namespaces


def test_the_tier_of_a_local_queue_counts_while_its_cluster_queue_exists() -> None:
    tenants, pod = tenants_of({}, GOLD_QUEUE, None, ()), a_pod("p", labels=RESEARCH)
    assert tenants.of(pod) == ("default", "bronze")
    tenants.take_changed()
    tenants.set_cluster_queue(QUOTA)
    assert (tenants.of(pod), tenants.take_changed()) == (("gpus", "gold"), ["default"])
    tenants.remove_cluster_queue("gpus")
    assert (tenants.of(pod), tenants.take_changed()) == (("default", "bronze"), ["default"])


def test_a_tier_that_cannot_be_read_is_a_warning_once_and_again_when_it_changes() -> None:
    tenants = Tenants()
    steps = [
        (lambda: tenants.set_namespace("ml", {TIER: "platinum"}), "Namespace ml", "'platinum'"),
        (lambda: tenants.set_namespace("ml", {TIER: "platinum", "app": "x"}), "", ""),
        (lambda: tenants.set_namespace("ml", {TIER: "diamond"}), "Namespace ml", "'diamond'"),
        (lambda: tenants.set_namespace("ml", {TIER: "gold"}), "", ""),
        (lambda: tenants.set_namespace("ml", {TIER: "diamond"}), "Namespace ml", "'diamond'"),
        (lambda: tenants.set_namespace("ml", None), "", ""),
        (lambda: tenants.set_namespace("ml", {"tenant.kubenexus.io/teir": "gold"}), "Namespace ml", "/teir' is not"),
        (lambda: tenants.set_namespace("ml", {"tenant.kubenexus.io/name": "x"}), "", ""),
        (lambda: tenants.set_namespace("ml", {TIER: "gold", README_TIER: "silver"}), "Namespace ml", README_TIER),
        (lambda: tenants.set_local_queue(a_local_queue(annotations={TIER: "x"})), "LocalQueue default/research", "'x'"),
        (lambda: tenants.remove_local_queue("default/research"), "", ""),
        (lambda: tenants.set_cluster_queue(a_cluster_queue(labels={TIER: "y"})), "ClusterQueue gpus", "'y'"),
        (lambda: tenants.remove_cluster_queue("gpus"), "", ""),
    ]
    for step, subject, part in steps:
        step()
        found = tenants.take_warnings()
        assert list(found) == ([subject] if subject else [])
        assert all(part in text for text in found.values())
    tenants.set_namespace("ml", None)
    assert not tenants._unread


@pytest.mark.parametrize(
    ("namespace", "local", "cluster", "parts"),
    [
        pytest.param(
            {TIER: "x"},
            a_local_queue(labels={TIER: "y"}),
            a_cluster_queue(labels={TIER: "z"}),
            ["default; namespace: ", "'x'", "LocalQueue default/research: ", "'y'", "ClusterQueue gpus: ", "'z'"],
            id="all that cannot be read",
        ),
        pytest.param(
            {TIER: "gold"},
            a_local_queue(),
            a_cluster_queue(labels={TIER: "z"}),
            ["namespace label; ClusterQueue gpus: ", "'z'"],
            id="a queue that would have gone before the namespace",
        ),
        pytest.param(
            {TIER: "x"},
            a_local_queue(),
            a_cluster_queue(labels={TIER: "gold"}),
            ["ClusterQueue"],
            id="a queue that can be",
        ),
    ],
)
def test_the_source_of_a_tier_names_what_could_not_be_read(
    namespace: dict[str, str], local: LocalQueue, cluster: ClusterQueue, parts: list[str]
) -> None:
    source = tenants_of(namespace, local, cluster, ()).tier_source(a_pod("p", labels={QUEUE: "research"}))
    at = [source.find(part) for part in parts]
    assert -1 not in at
    assert at == sorted(at)
    assert source.startswith(parts[0])
    assert source.count("must be one of") == len(parts) // 2
