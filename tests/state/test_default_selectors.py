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
