"""Effective requests: the rule in small tables, and against a naive twin on random pods."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.allocatable import allocatable
from kubenexus.api.codec import from_data
from kubenexus.api.core import Node, Pod
from kubenexus.api.resource_names import is_extended, is_scalar
from kubenexus.api.resources import demand, footprint, pod_requests
from kubenexus.base.errors import Malformed
from tests.api import reference
from tests.api.oracle import steady

Json = dict[str, Any]


def a_pod(*containers: Json, init: tuple[Json, ...] = (), status: Json | None = None, **spec: Any) -> Pod:
    named = [{"name": f"c{i}", **each} for i, each in enumerate(containers)]
    inits = [{"name": f"i{i}", **each} for i, each in enumerate(init)]
    data = {"metadata": {"name": "web", "namespace": "default"}, "status": status or {}}
    return from_data(data | {"spec": {"containers": named, "initContainers": inits, **spec}}, Pod)


def asks(**requests: Any) -> Json:
    return {"resources": {"requests": {name.replace("_", "-"): text for name, text in requests.items()}}}


def sidecar(**requests: Any) -> Json:
    return {"restartPolicy": "Always", **asks(**requests)}


INFEASIBLE = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}


def resized(allocated: str | None, in_force: str | None, **status: Any) -> Json:
    reported: Json = {"name": "c0"}
    if allocated:
        reported["allocatedResources"] = {"cpu": allocated}
    if in_force:
        reported["resources"] = {"requests": {"cpu": in_force}}
    return {"containerStatuses": [reported], **status}


@pytest.mark.parametrize(
    ("pod", "cpu"),
    [
        pytest.param(a_pod(asks(cpu="1"), asks(cpu="500m")), 1500, id="containers add up"),
        pytest.param(a_pod(asks(cpu="1"), init=(asks(cpu="3"), asks(cpu="2"))), 3000, id="the largest init container"),
        pytest.param(a_pod(asks(cpu="1"), init=(sidecar(cpu="2"),)), 3000, id="a sidecar runs along"),
        pytest.param(
            a_pod(asks(cpu="1"), init=(asks(cpu="4"), sidecar(cpu="2"))), 4000, id="a sidecar that starts later"
        ),
        pytest.param(
            a_pod(asks(cpu="1"), init=(sidecar(cpu="2"), asks(cpu="4"))), 6000, id="a sidecar that started before"
        ),
        pytest.param(a_pod(asks(cpu="1"), overhead={"cpu": "250m"}), 1250, id="overhead comes on top"),
        pytest.param(a_pod(asks(cpu="1"), resources={"requests": {"cpu": "700m"}}), 700, id="the pod level replaces"),
        pytest.param(
            a_pod(asks(cpu="1"), resources={"requests": {"cpu": "700m"}}, overhead={"cpu": "1m"}),
            701,
            id="and overhead comes on top of that",
        ),
        pytest.param(
            a_pod(asks(cpu="1"), resources={"requests": {"example.com/gpu": "7"}}), 1000, id="but not by a gpu"
        ),
        pytest.param(a_pod(asks(cpu="1"), status=resized("2", "3")), 3000, id="shrinking: still in force"),
        pytest.param(a_pod(asks(cpu="1"), status=resized("2", None)), 2000, id="shrinking: still allocated"),
        pytest.param(a_pod(asks(cpu="4"), status=resized("2", "2")), 4000, id="growing: wanted counts"),
        pytest.param(
            a_pod(asks(cpu="4"), status=resized("2", "1", **INFEASIBLE)), 2000, id="growing in vain: what is allocated"
        ),
        pytest.param(a_pod(asks(cpu="4"), status=INFEASIBLE), 0, id="upstream: infeasible, no status, counts nothing"),
        pytest.param(a_pod(asks(cpu="1.0001")), 1001, id="rounded up"),
        pytest.param(a_pod(asks(cpu="100u"), asks(cpu="100u")), 1, id="but only once"),
        pytest.param(a_pod(asks(cpu="1"), status=resized("-2", "-3", **INFEASIBLE)), 0, id="a negative status is zero"),
    ],
)
def test_what_counts(pod: Pod, cpu: int) -> None:
    assert dict(footprint(pod).amounts).get("cpu", 0) == cpu


@pytest.mark.parametrize(
    ("pod", "cpu", "memory"),
    [
        pytest.param(a_pod({}), 100, 200 * 2**20, id="nothing asked for"),
        pytest.param(a_pod(asks(cpu="0")), 0, 200 * 2**20, id="an explicit zero stays zero"),
        pytest.param(a_pod({}, {}), 200, 400 * 2**20, id="for each container"),
        pytest.param(
            a_pod({}, {}, resources={"requests": {"cpu": "1"}}), 1000, 400 * 2**20, id="only what the pod lacks"
        ),
        pytest.param(
            a_pod(asks(memory="1Ki"), {}, resources={"requests": {"cpu": "1"}}), 1000, 1024, id="in all containers"
        ),
    ],
)
def test_defaults_for_scores(pod: Pod, cpu: int, memory: int) -> None:
    counted = footprint(pod)
    assert (counted.nonzero_cpu, counted.nonzero_memory) == (cpu, memory)


def test_a_demand_counts_in_three_ways() -> None:
    pod = a_pod(asks(cpu="1"), resources={"requests": {"cpu": "2", "memory": "1Gi"}}, status=resized("5", "5"))
    asked = demand(pod)
    assert dict(asked.amounts) == {"cpu": 2000, "memory": 2**30}, "the filter reads the spec"
    assert dict(asked.with_defaults) == {"cpu": 1000, "memory": 200 * 2**20}, (
        "the scorers know no pod level and no status"
    )
    assert (asked.nonzero_cpu, asked.nonzero_memory) == (1000, 200 * 2**20)
    assert asked.with_resize == footprint(pod).amounts, "BalancedAllocation reads all"


@pytest.mark.parametrize("cpu", ["100m", "1", 2, "1.0001", "100u", "1e30", "0"])
@pytest.mark.parametrize("memory", ["512Mi", "1", 7, "1500m", "9Ei", "0"])
def test_the_ordinary_pod_is_counted_by_the_same_rule(cpu: Any, memory: Any) -> None:
    nobody = asks(cpu="0", memory="0")
    assert demand(a_pod(asks(cpu=cpu, memory=memory))) == demand(a_pod(asks(cpu=cpu, memory=memory), nobody))


def test_amounts_are_sorted_known_and_not_zero() -> None:
    wanted = {
        "memory": "1",
        "cpu": "1",
        "example.com/gpu": "2",
        "hugepages-2Mi": "2Mi",
        "pods": "1",
        "storage": "1",
        "a.b/zero": "0",
    }
    pod = a_pod({"resources": {"requests": wanted}})
    assert footprint(pod).amounts == (("cpu", 1000), ("example.com/gpu", 2), ("hugepages-2Mi", 2**21), ("memory", 1))


def test_sums_saturate() -> None:
    pod = a_pod(asks(cpu="1e30", memory="8Ei"), asks(cpu="1e30", memory="8Ei"))
    assert footprint(pod).amounts == (("cpu", 2**63 - 1), ("memory", 2**63 - 1))


def test_what_a_node_offers() -> None:
    offered = {
        "cpu": "3900m",
        "memory": "32Gi",
        "pods": "110",
        "ephemeral-storage": "1.5",
        "example.com/gpu": "8",
        "x": "1",
        "hugepages-1Gi": "-1",
    }
    node = from_data({"metadata": {"name": "n1"}, "status": {"allocatable": offered}}, Node)
    assert allocatable(node) == (
        ("cpu", 3900),
        ("ephemeral-storage", 2),
        ("example.com/gpu", 8),
        ("memory", 2**35),
        ("pods", 110),
    )
    assert allocatable(Node()) == ()


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            a_pod({}, asks(cpu="1x")), "spec.containers[1].resources.requests[cpu]: '1x' is not", id="garbage"
        ),
        pytest.param(
            a_pod({}, init=(asks(memory="-1"),)),
            "spec.initContainers[0].resources.requests[memory]: must not be negative, but is -1",
            id="negative",
        ),
        pytest.param(a_pod({}, overhead={"cpu": "-1m"}), "spec.overhead[cpu]: must not", id="overhead"),
        pytest.param(
            a_pod({}, resources={"requests": {"cpu": "?"}}), "spec.resources.requests[cpu]: '?'", id="pod level"
        ),
        pytest.param(
            a_pod({}, status=resized("?", None)),
            "status.containerStatuses[0].allocatedResources[cpu]: '?'",
            id="allocated",
        ),
        pytest.param(
            a_pod({}, status=resized(None, "?")),
            "status.containerStatuses[0].resources.requests[cpu]: '?'",
            id="in force",
        ),
        pytest.param(
            a_pod({}, status={"allocatedResources": {"cpu": "?"}, "resources": {"requests": {}}}),
            "status.allocatedResources[cpu]: '?'",
            id="of the pod",
        ),
    ],
)
def test_the_field_is_named(pod: Pod, message: str) -> None:
    for count in (footprint, demand):
        with pytest.raises(Malformed) as raised:
            count(pod)
        assert str(raised.value).startswith(f"Pod default/web: {message}")


def test_the_field_of_a_node_is_named() -> None:
    node = from_data({"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "many"}}}, Node)
    with pytest.raises(Malformed, match=r"^Node n1: status.allocatable\[cpu\]: 'many' is not a quantity"):
        allocatable(node)


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("example.com/gpu", True, True),
        ("cpu", False, False),
        ("storage", False, False),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-aws-ebs", False, True),
        ("kubernetes.io/batch-cpu", False, True),
        ("foo.kubernetes.io/bar", False, True),
        ("requests.example.com/gpu", False, False),
        ("example.com/", False, False),
        ("a/b/c", False, False),
        ("EXAMPLE.com/gpu", False, False),
        ("/gpu", False, False),
        ("x" * 300 + "/gpu", False, False),
        ("hugepages-" + "x" * 10**6, False, True),
    ],
)
def test_names_of_resources(name: str, extended: bool, scalar: bool) -> None:
    assert (is_extended(name), is_scalar(name)) == (extended, scalar)


amounts = st.sampled_from(["0", "1", "100m", "250m", "2", "1500u", "1Gi", "512Mi", "3k", "1G", 7])
listings = st.none() | st.dictionaries(st.sampled_from(reference.NAMES), amounts, max_size=4)
restarts = st.sampled_from([{}, {}, {"restartPolicy": "Always"}])


@st.composite
def pods(draw: st.DrawFn) -> Json:
    def container(name: str) -> Json:
        return {"name": name, "resources": {"requests": draw(listings)}, **draw(restarts)}

    def status(name: str, spec: Json) -> Json:
        copied = st.just(spec["resources"]["requests"]) | listings
        return {
            "name": name,
            "allocatedResources": draw(copied),
            "resources": draw(st.none() | st.builds(lambda r: {"requests": r}, copied)),
        }

    containers = [container(f"c{i}") for i in range(draw(st.integers(0, 3)))]
    inits = [container(f"i{i}") for i in range(draw(st.integers(0, 3)))]
    whole = draw(st.none() | st.builds(lambda requests: {"requests": requests}, listings))
    pod: Json = {
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": containers, "initContainers": inits, "overhead": draw(listings), "resources": whole},
        "status": {},
    }
    if draw(st.booleans()):
        pod["status"] = {
            "containerStatuses": [status(c["name"], c) for c in containers if draw(st.booleans())],
            "initContainerStatuses": [status(c["name"], c) for c in inits if draw(st.booleans())],
            "conditions": draw(st.sampled_from([[], INFEASIBLE["conditions"]])),
            "allocatedResources": draw(st.none() | listings),
            "resources": draw(st.none() | st.builds(lambda requests: {"requests": requests}, listings)),
        }
    return without_nulls(pod)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(held) for key, held in value.items() if held is not None}
    return [without_nulls(held) for held in value] if isinstance(value, list) else value


@steady
@given(pods())
def test_a_footprint_is_what_the_naive_twin_counts(data: Json) -> None:
    counted = footprint(from_data(data, Pod))
    plain = reference.requests(data, status=True, pod_level=True, fill={})
    assert dict(counted.amounts) == reference.rounded(plain)
    whole = (data["spec"].get("resources") or {}).get("requests") or {}
    missing = {
        name: amount for name, amount in reference.DEFAULTS.items() if not whole_names(whole) or name not in plain
    }
    filled = reference.rounded(reference.requests(data, status=True, pod_level=True, fill=missing))
    assert (counted.nonzero_cpu, counted.nonzero_memory) == (filled.get("cpu", 0), filled.get("memory", 0))


def whole_names(whole: Json) -> bool:
    return any(name in ("cpu", "memory") or name.startswith("hugepages-") for name in whole)


@steady
@given(pods())
def test_a_demand_is_what_the_naive_twin_counts(data: Json) -> None:
    asked = demand(from_data(data, Pod))
    assert dict(asked.amounts) == reference.rounded(reference.requests(data, status=False, pod_level=True, fill={}))
    assert dict(asked.with_resize) == reference.rounded(reference.requests(data, status=True, pod_level=True, fill={}))
    scored = reference.rounded(reference.requests(data, status=False, pod_level=False, fill=reference.DEFAULTS))
    assert dict(asked.with_defaults) == scored
    assert (asked.nonzero_cpu, asked.nonzero_memory) == (scored.get("cpu", 0), scored.get("memory", 0))


@steady
@given(pods(), st.booleans(), st.booleans(), st.booleans())
def test_quantities_are_what_the_naive_twin_counts(data: Json, status: bool, pod_level: bool, fill: bool) -> None:
    counted = pod_requests(from_data(data, Pod), status=status, pod_level=pod_level, fill=fill)
    expected = reference.requests(data, status=status, pod_level=pod_level, fill=reference.DEFAULTS if fill else {})
    assert {name: quantity.nano for name, quantity in counted.items()} == {n: a * 10**9 for n, a in expected.items()}
