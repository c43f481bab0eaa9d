"""Who a pod belongs to is remembered for its like, and is always what looking at every service would say."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.meta import ObjectMeta, OwnerReference
from kubenexus.api.selectors import LabelSelector
from kubenexus.api.workloads import OwnerSpec, ReplicaSet, Service, ServiceSpec
from kubenexus.state.default_selectors import DefaultSelector, DefaultSelectors
from kubenexus.testing.builders import a_pod

# A label may be called like a kind of controllers, and have the name of one as its value.
KEYS, VALUES = ("app", "ReplicaSet"), ("web", "api")
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))


def a_service(name: str, selector: dict[str, str]) -> Service:
    return Service(metadata=ObjectMeta(name=name, namespace="default"), spec=ServiceSpec(selector=selector))


def a_replica_set(name: str, labels: dict[str, str]) -> ReplicaSet:
    wanted = OwnerSpec(selector=LabelSelector(match_labels=labels))
    return ReplicaSet(metadata=ObjectMeta(name=name, namespace="default"), spec=wanted)


def owned(pod: Pod, replica_set: str) -> Pod:
    owner = OwnerReference(kind="ReplicaSet", api_version="apps/v1", name=replica_set, controller=True)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=[owner]))


@st.composite
def pods(draw: Any) -> Pod:
    pod = a_pod("p", labels=draw(LABELS), namespace=draw(st.sampled_from(["default", "default", "elsewhere"])))
    owner = draw(st.sampled_from(["", *VALUES]))
    return owned(pod, owner) if owner else pod


STEPS = st.one_of(
    st.builds(a_service, st.sampled_from(VALUES), LABELS),
    st.builds(a_replica_set, st.sampled_from(VALUES), LABELS),
    st.tuples(st.sampled_from([Service, ReplicaSet]), st.just("default"), st.sampled_from(VALUES)),
)


def looked_up(default_selectors: DefaultSelectors, pod: Pod) -> DefaultSelector | None:
    wanted = default_selectors.selector_of(pod).requirements
    labels = {each.key: pod.metadata.labels[each.key] for each in wanted if each.key in pod.metadata.labels}
    return DefaultSelector(labels, [(each.key, each.op.value, each.values) for each in wanted]) if wanted else None


@given(st.lists(STEPS, max_size=12), st.lists(pods(), min_size=1, max_size=6))
def test_what_is_remembered_is_what_is_looked_up(steps: list[Any], asking: list[Pod]) -> None:
    default_selectors = DefaultSelectors()
    for step in steps:
        default_selectors.gone(*step) if isinstance(step, tuple) else default_selectors.seen(step)
        for pod in asking:
            assert default_selectors.of(pod) == looked_up(default_selectors, pod)


def test_a_label_called_like_a_controller_is_not_one() -> None:
    default_selectors = DefaultSelectors()
    default_selectors.seen(a_replica_set("web", {"tier": "front"}))
    default_selectors.seen(a_service("s", {"ReplicaSet": "web"}))
    by_controller = default_selectors.of(owned(a_pod("p"), "web"))
    by_service = default_selectors.of(a_pod("p", labels={"ReplicaSet": "web"}))
    assert by_controller == DefaultSelector({}, [("tier", "In", ("front",))])
    assert by_service == DefaultSelector({"ReplicaSet": "web"}, [("ReplicaSet", "In", ("web",))])


@pytest.mark.parametrize("labels", [{}, {"app": "api"}, {"tier": "web"}], ids=["none", "another value", "another key"])
def test_a_pod_that_no_service_can_mean_belongs_to_nobody(labels: dict[str, str]) -> None:
    default_selectors = DefaultSelectors()
    default_selectors.seen(a_service("s", {"app": "web", "tier": "web"}))
    assert default_selectors.of(a_pod("p", labels=labels)) is None
    assert default_selectors.of(a_pod("p", labels={"app": "web", "tier": "web"})) is not None


# --- the work for one pod -------------------------------------------------------------------------------------------

MANY_SERVICES = {
    "a label in common, and one of its own": [{"app": "w", "x": f"v{i}"} for i in range(3000)],
    "the same labels": [{"app": "w"} for _ in range(3000)],
    "two labels of many": [{f"a{i}": "1", f"z{j}": "1"} for i in range(55) for j in range(55)],
    "many labels": [{**{f"a{i}": "1" for i in range(900)}, "z": f"v{j}"} for j in range(30)],
}


@pytest.mark.parametrize("selectors", MANY_SERVICES.values(), ids=MANY_SERVICES.keys())
def test_a_pod_is_compared_with_a_bounded_number_of_labels_of_services(selectors: list[dict[str, str]]) -> None:
    default_selectors = DefaultSelectors()
    for i, selector in enumerate(selectors):
        default_selectors.seen(a_service(f"s{i}", selector))
    for labels in ({"app": "w", "x": "none"}, {f"a{i}": "1" for i in range(900)}):
        before = default_selectors.compared
        default_selectors.of(a_pod("p", labels=labels))
        assert default_selectors.compared - before <= 1000


def test_services_with_a_common_label_are_found_by_the_other() -> None:
    default_selectors = DefaultSelectors()
    for i in range(3000):
        default_selectors.seen(a_service(f"s{i}", {"app": "w", "x": f"v{i}"}))
    default_selectors.of(a_pod("p", labels={"app": "w", "x": "none"}))
    assert default_selectors.compared <= 2
    default_selectors.of(a_pod("p", labels={"app": "w", "x": "v2999"}))
    assert default_selectors.compared <= 6


SERVICES = st.dictionaries(
    st.sampled_from("abcdef"), st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), max_size=3)
)


@given(SERVICES, SERVICES, st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12")))
def test_the_services_of_a_pod_are_those_whose_labels_it_has(
    first: dict[str, dict[str, str]], then: dict[str, dict[str, str]], labels: dict[str, str]
) -> None:
    default_selectors = DefaultSelectors()
    for services in (first, then):
        for name, selector in services.items():
            default_selectors.seen(a_service(name, selector))
    for name in list(first)[::2]:
        default_selectors.gone(Service, "default", name)
    left = {name: selector for name, selector in {**first, **then}.items() if name not in list(first)[::2]}
    merged: dict[str, str] = {}
    for selector in left.values():
        if selector.items() <= labels.items():
            merged.update(selector)
    found = default_selectors.of(a_pod("p", labels=labels))
    assert (found.labels if found else {}) == merged
    for name in left:
        default_selectors.gone(Service, "default", name)
    held = (default_selectors._services, default_selectors._by_label, default_selectors._keys, default_selectors._uses)
    assert [each for each in held if each] == []
