"""Slices, classes and claims that no driver should publish: what they keep from allocation is themselves."""

from typing import Any

import pytest

from kubenexus.app.report.object_warnings import log_object_warnings
from kubenexus.base.errors import Malformed
from kubenexus.plugins.dynamic_resources.pod_claims import pod_claims
from kubenexus.testing.builders import a_pod
from tests.plugins.dynamic_resources.cluster import (
    a_class,
    a_cluster,
    a_device,
    a_request,
    a_slice,
    a_spec,
    an_allocated_claim,
    devices,
)

GOOD = a_slice("good", [a_device("d0")], pool="good")
ONE = a_spec(a_request())


def consuming(name: str, counter_set: str, counter: str = "c") -> dict[str, Any]:
    taken = [{"counterSet": counter_set, "counters": {counter: {"value": "1"}}}]
    return a_device(name, consumesCounters=taken)


def counters(name: str) -> dict[str, Any]:
    return {"name": name, "counters": {"c": {"value": "1"}}}


def generation(number: int, name: str, device: str, count: int = 1) -> Any:
    return a_slice(name, [a_device(device)], pool_fields={"generation": number, "resourceSliceCount": count})


@pytest.mark.parametrize(
    ("things", "given"),
    [
        pytest.param(
            [
                a_slice(
                    f"s{i}",
                    [a_device(f"x{i}-{j}") for j in range(125)],
                    pool="a",
                    pool_fields={"resourceSliceCount": 80},
                )
                for i in range(80)
            ],
            [["d0"]],
            id="a pool of 10,000 devices",
        ),
        pytest.param([a_slice("s", [a_device("x"), a_device("x")], pool="a")], [["d0"]], id="two devices of one name"),
        pytest.param(
            [a_slice("s", [consuming("x", "none")], pool="a")], [["d0"]], id="a counter set that does not exist"
        ),
        pytest.param(
            [
                a_slice(
                    "s", [consuming("x", "one"), consuming("y", "two")], pool="a", sharedCounters=[counters("one")]
                ),
            ],
            [["d0"]],
            id="devices beside counters in one slice",
        ),
        pytest.param(
            [
                a_slice(
                    "s",
                    [],
                    pool="a",
                    sharedCounters=[counters("one"), counters("one")],
                    pool_fields={"resourceSliceCount": 2},
                ),
                a_slice("t", [consuming("x", "one")], pool="a", pool_fields={"resourceSliceCount": 2}),
            ],
            [["d0"]],
            id="two counter sets of one name",
        ),
        pytest.param(
            [a_slice("s", [a_device("x")], pool="a", pool_fields={"resourceSliceCount": 3})],
            [["d0"]],
            id="a slice is missing",
        ),
        pytest.param(
            [generation(1, "old", "x"), generation(2, "new", "y")], [["d0"]], id="an old generation beside a new one"
        ),
        pytest.param([a_slice("s", [], pool="a")], [["d0"]], id="no devices at all"),
        pytest.param(
            [
                a_slice(
                    f"s{i}",
                    [consuming(f"x{i}", f"set{1 - i}")],
                    pool="a",
                    sharedCounters=[counters(f"set{i}")],
                    pool_fields={"resourceSliceCount": 2},
                )
                for i in range(2)
            ],
            [["d0"]],
            id="counter sets and devices that need each other in a circle",
        ),
    ],
)
def test_a_bad_pool_keeps_nothing_but_itself_from_allocation(things: list[Any], given: Any) -> None:
    cluster = a_cluster(*things, GOOD)
    found = devices(cluster, a_spec(a_request("r", 'device.driver == "gpu.example.com"', count=1)))
    assert found in (given, [["y"]])  # of two generations the new one counts


@pytest.mark.parametrize(
    ("things", "lines"),
    [
        pytest.param(
            [
                a_slice(
                    f"s{i}",
                    [a_device(f"x{i}-{j}") for j in range(125)],
                    pool="a",
                    pool_fields={"resourceSliceCount": 80},
                )
                for i in range(80)
            ],
            {"gpu.example.com/a": "more than 2048 devices"},
            id="a pool of 10,000 devices",
        ),
        pytest.param(
            [
                a_slice(
                    f"s{i}",
                    [consuming(f"x{i}", f"set{1 - i}")],
                    pool="a",
                    sharedCounters=[counters(f"set{i}")],
                    pool_fields={"resourceSliceCount": 2},
                )
                for i in range(2)
            ],
            {},
            id="devices beside counters in one slice, in a circle: the API server refuses such slices",
        ),
        pytest.param(
            [a_slice("s", [consuming("x", "none")], pool="a")],
            {"gpu.example.com/a": "counter set not found"},
            id="a counter set that does not exist",
        ),
        pytest.param(
            [a_slice(f"s{i}", [a_device(f"x{i}")], pool="a") for i in range(2)],
            {"gpu.example.com/a": "2 slices of one generation, resourceSliceCount is 1"},
            id="two pools of one name on a node",
        ),
        pytest.param(
            [generation(1, "old", "x"), generation(2, "new", "y")], {}, id="a stale generation: the new one counts"
        ),
        pytest.param(
            [a_slice("s", [a_device("x")], pool="a", pool_fields={"resourceSliceCount": 3})],
            {},
            id="slices that are still to come",
        ),
    ],
)
def test_a_bad_pool_is_one_line_whatever_is_decided(things: list[Any], lines: dict[str, str]) -> None:
    cluster = a_cluster(*things, GOOD)
    for _ in range(3):
        devices(cluster, ONE)
    assert cluster.nodes.claims.take_warnings() == lines
    assert cluster.nodes.claims.take_warnings() == {}


def test_two_drivers_may_name_their_pools_alike() -> None:
    other = a_slice("other", [a_device("d0")], driver="nic.example.com")
    cluster = a_cluster(a_slice("s", [a_device("d0")]), other)
    assert devices(cluster, a_spec(a_request(count=2))) == [["d0", "d0"]]
    assert devices(cluster, a_spec(a_request(count=3))) == ""


def test_two_nodes_whose_pools_have_one_name_never_give_a_device_twice() -> None:
    slices = [a_slice(f"s{node}", [a_device("d0"), a_device("d1")], node, pool="a") for node in ("n1", "n2")]
    cluster = a_cluster(*slices, nodes={"n1": {}, "n2": {}})
    assert devices(cluster, ONE, node="n2") == [["d0"]]
    cluster.upsert_resource_claim(an_allocated_claim("taken", "d0", pool="a"))
    assert [devices(cluster, ONE, node=node) for node in ("n1", "n2")] == [[["d1"]], [["d1"]]]


def test_a_node_with_an_old_generation_of_a_pool_keeps_its_devices_to_itself() -> None:
    old, new = (a_slice(f"s{i}", [a_device(f"d{i}")], f"n{i}", pool="a", pool_fields={"generation": i}) for i in (1, 2))
    cluster = a_cluster(old, new, nodes={"n1": {}, "n2": {}})
    assert devices(cluster, ONE, node="n2") == [["d2"]]


def test_an_invalid_pool_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    same = [a_device("x"), a_device("x")]
    cluster = a_cluster(a_slice("s", same, pool="a"), GOOD)
    claims = cluster.nodes.claims
    for _ in range(2):
        devices(cluster, ONE)
        cluster.upsert_resource_slice(a_slice("s", [*same, a_device("y")], pool="a"))
    assert claims.take_warnings() == {"gpu.example.com/a": "duplicate device name"}
    assert claims.take_warnings() == {}
    cluster.remove_resource_slice("s")
    cluster.upsert_resource_slice(a_slice("s", same, pool="a"))
    devices(cluster, ONE)
    log_object_warnings(cluster)
    log_object_warnings(cluster)
    assert [record.getMessage() for record in caplog.records] == [
        "Cannot allocate the devices of a pool: its ResourceSlices are invalid"
    ]


def test_an_amount_that_cannot_be_read_keeps_its_slice_out() -> None:
    bad = a_slice("bad", [a_device("x", capacity={"memory": {"value": "much"}})], pool="a")
    cluster = a_cluster(GOOD)
    with pytest.raises(Malformed, match="is not a quantity"):
        cluster.upsert_resource_slice(bad)
    assert devices(cluster, ONE) == [["d0"]]


def test_a_broken_selector_fails_the_pods_that_use_its_class_and_no_others() -> None:
    cluster = a_cluster(GOOD, a_class(), a_class("broken", "device.attributes["))
    said = devices(cluster, a_spec(a_request(deviceClassName="broken")))
    assert isinstance(said, str)
    assert said.startswith("class broken: selector #0: CEL compile error")
    assert devices(cluster, ONE) == [["d0"]]


def test_a_pod_whose_requests_cannot_be_read_fails_by_itself() -> None:
    cluster = a_cluster(GOOD, a_class("backing", extendedResourceName="x.io/y"))
    bad = a_pod("p", requests={"x.io/y": "much"})
    assert pod_claims(bad, cluster.nodes.claims) is None
