"""Objects that somebody made to hurt. Whatever comes, the answer is an object or Malformed, and it comes soon."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from kubenexus.api import allocatable as offers
from kubenexus.api import quantity
from kubenexus.api.allocatable import allocatable
from kubenexus.api.codec import Unreadable, decode_list, decode_node, decode_pod, from_data, read_object
from kubenexus.api.core import Node, NodeSelector, Pod, PreferredSchedulingTerm
from kubenexus.api.features import required_features
from kubenexus.api.node_selectors import (
    matches,
    node_selector_term,
    parse_preferred,
    parse_required,
    required_node_names,
)
from kubenexus.api.quantity import INT64_MAX, Quantity, to_milli, to_nano, to_units
from kubenexus.api.resources import demand, footprint, pod_limits
from kubenexus.api.selectors import LabelSelector, compile_selector
from kubenexus.api.tolerations import untolerated
from kubenexus.base.errors import Malformed
from kubenexus.testing.builders import a_pod

Json = dict[str, Any]
MEGABYTE = 10**6

AMOUNTS = {"cpu": "1", "memory": "1Gi", "example.com/gpu": 2}
REQUIREMENT = {"key": "zone", "operator": "In", "values": ["a", "b"]}
TERM = {
    "matchExpressions": [REQUIREMENT],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
}
CONTAINER = {
    "name": "c",
    "image": "i",
    "resources": {"requests": AMOUNTS, "limits": AMOUNTS},
    "ports": [{"hostPort": 80, "hostIP": "1.2.3.4", "protocol": "UDP"}],
    "restartPolicy": "Always",
    "restartPolicyRules": [{"action": "Restart"}],
    "volumeMounts": [{"bindMountOptions": ["ro"]}],
}
STATUS = {"name": "c", "allocatedResources": AMOUNTS, "resources": {"requests": AMOUNTS, "limits": AMOUNTS}}
POD: Json = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"a": "b"}, "generation": 3},
    "spec": {
        "nodeName": "n1",
        "priority": 10,
        "schedulingGates": [{"name": "g"}],
        "containers": [CONTAINER],
        "initContainers": [CONTAINER],
        "ephemeralContainers": [CONTAINER],
        "overhead": AMOUNTS,
        "resources": {"requests": AMOUNTS, "limits": AMOUNTS},
        "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": TERM}],
            }
        },
        "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
        "volumes": [{"name": "v", "image": {"reference": "r"}}],
        "hostNetwork": True,
        "hostUsers": False,
    },
    "status": {
        "phase": "Running",
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
        "nominatedNodeName": "n2",
        "startTime": "2026-03-01T00:00:48Z",
        "containerStatuses": [STATUS],
        "initContainerStatuses": [STATUS],
        "allocatedResources": AMOUNTS,
        "resources": {"requests": AMOUNTS, "limits": AMOUNTS},
    },
}
NODE: Json = {
    "metadata": {"name": "n1", "labels": {"zone": "a"}},
    "spec": {"unschedulable": True, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {**AMOUNTS, "pods": "110"},
        "capacity": AMOUNTS,
        "images": [{"names": ["i"], "sizeBytes": 5}],
        "declaredFeatures": ["F"],
    },
}
STRANGE: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    -1.5,
    2**63,
    -(2**63) - 1,
    10**40,
    1e300,
    "",
    "x",
    "NaN",
    "-1",
    "1e400",
    "\0",
    "🤖",
    [],
    [None],
    [[]],
    {},
    {"": None},
    {"a": {"b": []}},
]


def mutants(value: Any) -> Iterator[Any]:
    """The same object with each of its parts replaced in turn by something strange, or left out."""
    yield from STRANGE
    if isinstance(value, dict):
        for key, held in value.items():
            yield {other: kept for other, kept in value.items() if other != key}
            yield from ({**value, key: strange} for strange in mutants(held))
    elif isinstance(value, list):
        for index, held in enumerate(value):
            yield from ([*value[:index], strange, *value[index + 1 :]] for strange in mutants(held))


def use_pod(pod: Pod) -> None:
    """Everything this room does with a pod."""
    for use in (footprint, demand, pod_limits, required_features):
        attempt(use, pod)
    assert matches(node_selector_term(pod.spec.node_selector), "n1", {}) in (True, False)
    untolerated(pod.spec.tolerations, from_data(NODE, Node).spec.taints)
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity and affinity.required:
        assert parse_required(affinity.required).matches("n1", {"zone": "a"}) in (True, False)
        required_node_names(affinity.required)
    if affinity:
        attempt(parse_preferred, affinity.preferred)


def attempt(use: Callable[..., object], *arguments: Any) -> object:
    """What came of it: an answer, or what Malformed said, which must fit into an event."""
    try:
        answer = use(*arguments)
    except Malformed as error:
        answer = str(error)
    assert not isinstance(answer, str) or len(answer) < 2500
    assert all(0 < amount <= INT64_MAX for _, amount in getattr(answer, "amounts", ()))
    return answer


def test_a_pod_with_any_part_replaced_is_a_pod_or_malformed() -> None:
    read, refused = 0, 0
    for mutant in mutants(POD):
        found = read_object(json.dumps(mutant).encode(), Pod)
        if isinstance(found, Unreadable):
            assert found.problem
            refused += 1
        else:
            use_pod(found)
            read += 1
    assert read > 500
    assert refused > 500


def test_a_node_with_any_part_replaced_is_a_node_or_malformed() -> None:
    for mutant in mutants(NODE):
        found = read_object(json.dumps(mutant).encode(), Node)
        if isinstance(found, Node):
            attempt(allocatable, found)


def test_one_list_of_all_mutants_loses_none() -> None:
    bodies = list(mutants(POD))[:1000]
    page = decode_list(json.dumps({"kind": "PodList", "metadata": {}, "items": bodies}).encode(), Pod)
    assert len(page.items) + len(page.unreadable) == len(bodies)
    assert any(lost.node == "n1" and lost.name == "p" for lost in page.unreadable)


def promptly(run: Callable[[], object]) -> None:
    """Answers or refuses. What is quadratic in a megabyte would not come back for minutes, which nobody overlooks."""
    with suppress(Malformed):
        run()


@pytest.mark.parametrize(
    "text",
    [
        "9" * MEGABYTE,
        "0" * MEGABYTE,
        "0" * MEGABYTE + "x",
        "9" * MEGABYTE + "x",
        "0." + "0" * MEGABYTE + "1",
        "1." + "3" * MEGABYTE + "Ki",
        "9" * MEGABYTE + "Ei",
        "1e" + "9" * MEGABYTE,
        "1e-" + "0" * MEGABYTE + "9",
        "." * MEGABYTE,
        "E" * MEGABYTE,
        "-" * MEGABYTE,
        " " * MEGABYTE,
        "1e2147483647",
        "9" * 30 + "e2147483647",
        "1e-2147483647",
    ],
    ids=lambda text: f"{text[:8]}...{text[-4:]}",
)
def test_a_megabyte_of_quantity_is_read_at_once(text: str) -> None:
    promptly(lambda: Quantity.parse(text).canonical())
    for read in (to_nano, to_milli, to_units):
        promptly(partial(read, text))


def test_long_texts_are_not_kept_in_the_caches() -> None:
    before = quantity._milli.cache_info().currsize
    to_milli("1" * 65)
    assert quantity._milli.cache_info().currsize == before


def test_long_lists_of_what_a_node_offers_are_not_remembered() -> None:
    listed = {f"example.com/{'r' * 40}{i}": "1" for i in range(100)}
    before, node = offers._offered.cache_info().currsize, from_data({"status": {"allocatable": listed}}, Node)
    assert allocatable(node) == tuple((name, 1) for name in sorted(listed))
    assert offers._offered.cache_info().currsize == before


def test_a_megabyte_of_label() -> None:
    huge = "x" * MEGABYTE
    data = {"matchLabels": {"app": huge}}
    promptly(lambda: compile_selector(from_data(data, LabelSelector)))
    promptly(lambda: compile_selector(from_data({"matchLabels": {huge: "a"}}, LabelSelector)))
    promptly(lambda: compile_selector(from_data({"matchLabels": {"a." * 500_000 + "/b": "a"}}, LabelSelector)))
    pod = json.dumps(POD | {"metadata": {"name": "p", "namespace": "n", "labels": {"app": huge}}}).encode()
    promptly(lambda: decode_pod(pod))
    numeric = parse_required(
        from_data(
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]}]},
            NodeSelector,
        )
    )
    promptly(lambda: numeric.matches("n1", {"app": "9" * MEGABYTE}))


def test_ten_thousand_terms() -> None:
    terms = [
        {"matchExpressions": [{"key": f"k{i}", "operator": "In", "values": [f"v{i}", "w"]}]} for i in range(10_000)
    ]
    selector = from_data({"nodeSelectorTerms": terms}, NodeSelector)
    promptly(lambda: parse_required(selector))
    parsed = parse_required(selector)
    assert parsed.matches("n1", {"k9999": "v9999"})
    promptly(lambda: parsed.matches("n1", {}))


def test_ten_thousand_broken_preferences_fit_into_one_event() -> None:
    broken = {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "?"}]}}
    attempt(parse_preferred, from_data([broken] * 10_000, list[PreferredSchedulingTerm]))


def test_ten_thousand_values() -> None:
    data = {"matchExpressions": [{"key": "app", "operator": "In", "values": [f"v{i}" for i in range(10_000)]}]}
    selector = compile_selector(from_data(data, LabelSelector))
    promptly(lambda: [selector.matches({"app": f"v{i}"}) for i in range(10_000)])


def test_ten_thousand_containers() -> None:
    pod = from_data(POD | {"spec": {"containers": [CONTAINER] * 10_000}}, Pod)
    promptly(lambda: footprint(pod))


@pytest.mark.parametrize("text", ["-" + "9" * MEGABYTE, "z" * MEGABYTE])
def test_a_message_about_a_megabyte_is_short(text: str) -> None:
    name = "example.com/" + "x" * MEGABYTE
    meta = {"name": "p" * MEGABYTE, "namespace": "ns"}
    attempt(footprint, from_data({"metadata": meta, "spec": {"overhead": {name: text}}}, Pod))
    attempt(allocatable, from_data({"metadata": meta, "status": {"allocatable": {name: text}}}, Node))
    attempt(decode_pod, json.dumps({"metadata": meta, "spec": []}).encode())


def test_missing_everything() -> None:
    assert footprint(Pod()).amounts == ()
    assert demand(Pod()).with_defaults == ()
    assert allocatable(Node()) == ()
    assert required_features(Pod()) == frozenset()
    with pytest.raises(Malformed, match=r"metadata\.name: missing"):
        decode_node(b"{}")


@pytest.mark.parametrize(("namespace", "name"), [("n" * 300, "web-0"), ("team", "w" * 300), ("n" * 63, "w" * 253)])
def test_however_long_a_name_is_a_refusal_says_whose_it_is(namespace: str, name: str) -> None:
    pod = a_pod(name, namespace=namespace, requests={"memory": "-1"})
    with pytest.raises(Malformed) as refusal:
        demand(pod)
    assert namespace[:100] in refusal.value.subject
    assert name[:100] in refusal.value.subject
    assert len(refusal.value.subject) < 700
