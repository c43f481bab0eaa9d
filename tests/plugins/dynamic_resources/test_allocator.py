"""Which devices claims get on a node."""

from typing import Any

import pytest

from tests.plugins.dynamic_resources.cluster import (
    a_class,
    a_cluster,
    a_device,
    a_request,
    a_slice,
    a_spec,
    allocated,
    an_allocated_claim,
    devices,
    exactly,
)

FOUR = a_slice("s", [a_device(f"d{i}", attributes={"root": f"r{i // 2}", "index": i}) for i in range(4)])
TAINTED: dict[str, Any] = {"taints": [{"key": "bad", "value": "x", "effect": "NoSchedule"}]}


def counted(name: str, amount: str) -> dict[str, Any]:
    return a_device(name, consumesCounters=[{"counterSet": "card", "counters": {"memory": {"value": amount}}}])


CARD = a_slice("card", [], sharedCounters=[{"name": "card", "counters": {"memory": {"value": "40Gi"}}}])
PARTS = a_slice("parts", [counted("half-a", "20Gi"), counted("whole", "40Gi"), counted("half-b", "20Gi")])
TWO_SLICES: dict[str, Any] = {"pool_fields": {"resourceSliceCount": 2}}
CARD_2 = a_slice("card", [], sharedCounters=[{"name": "card", "counters": {"memory": {"value": "40Gi"}}}], **TWO_SLICES)
PARTS_2 = a_slice(
    "parts", [counted("half-a", "20Gi"), counted("whole", "40Gi"), counted("half-b", "20Gi")], **TWO_SLICES
)
SHARED = a_slice(
    "s",
    [
        a_device(
            "card",
            allowMultipleAllocations=True,
            capacity={
                "memory": {
                    "value": "40Gi",
                    "requestPolicy": {"default": "10Gi", "validRange": {"min": "5Gi", "step": "5Gi"}},
                }
            },
        )
    ],
)
MEMORY_7: dict[str, Any] = {"capacity": {"requests": {"memory": "7Gi"}}}
PER_DEVICE = a_slice(
    "s",
    [a_device("local", nodeName="n1"), a_device("other", nodeName="n2"), a_device("any", allNodes=True)],
    perDeviceNodeSelection=True,
)


@pytest.mark.parametrize(
    ("things", "specs", "given"),
    [
        pytest.param([FOUR], [a_spec(a_request())], [["d0"]], id="the first device"),
        pytest.param([FOUR], [a_spec(a_request(count=3))], [["d0", "d1", "d2"]], id="several devices"),
        pytest.param([FOUR], [a_spec(a_request(count=5))], "", id="more devices than there are"),
        pytest.param(
            [FOUR, an_allocated_claim("x", "d0", "d1")], [a_spec(a_request())], [["d2"]], id="devices that are held"
        ),
        pytest.param(
            [FOUR, an_allocated_claim("x", "d0", adminAccess=True)],
            [a_spec(a_request())],
            [["d0"]],
            id="admin access holds no device",
        ),
        pytest.param(
            [FOUR, an_allocated_claim("x", "d0", "d1", "d2", "d3")],
            [a_spec(a_request(adminAccess=True, count=2))],
            [["d0", "d1"]],
            id="admin access to devices in use",
        ),
        pytest.param(
            [FOUR],
            [a_spec(a_request("r", 'device.attributes["gpu.example.com"].index > 1'))],
            [["d2"]],
            id="a selector of the request",
        ),
        pytest.param(
            [FOUR, a_class("gpu", 'device.attributes["gpu.example.com"].root == "r1"')],
            [a_spec(a_request())],
            [["d2"]],
            id="a selector of the class",
        ),
        pytest.param([FOUR], [a_spec(a_request()), a_spec(a_request())], [["d0"], ["d1"]], id="two claims of a pod"),
        pytest.param(
            [FOUR, an_allocated_claim("x", "d0")],
            [a_spec(a_request(count=2), constraints=[{"matchAttribute": "gpu.example.com/root"}])],
            [["d2", "d3"]],
            id="equal values of an attribute",
        ),
        pytest.param(
            [FOUR],
            [a_spec(a_request(count=2), constraints=[{"distinctAttribute": "gpu.example.com/root"}])],
            [["d0", "d2"]],
            id="different values of an attribute",
        ),
        pytest.param(
            [FOUR],
            [a_spec(a_request(count=3), constraints=[{"matchAttribute": "gpu.example.com/root"}])],
            "",
            id="a constraint that no devices satisfy",
        ),
        pytest.param(
            [FOUR],
            [a_spec(a_request("a"), a_request("b"), constraints=[{"requests": ["b"], "matchAttribute": "x/none"}])],
            "",
            id="an attribute that no device has",
        ),
        pytest.param(
            [FOUR, an_allocated_claim("x", "d1")],
            [
                a_spec(
                    {
                        "name": "r",
                        "firstAvailable": [
                            {"name": "four", **exactly(count=4)},
                            {"name": "two", **exactly(count=2)},
                        ],
                    }
                )
            ],
            [["r/two=d0", "r/two=d2"]],
            id="the first alternative that is available",
        ),
        pytest.param(
            [FOUR], [a_spec(a_request(allocationMode="All", count=0))], [["d0", "d1", "d2", "d3"]], id="all devices"
        ),
        pytest.param(
            [FOUR, an_allocated_claim("x", "d1")],
            [a_spec(a_request(allocationMode="All", count=0))],
            "",
            id="all devices, of which one is held",
        ),
        pytest.param(
            [a_slice("s", [a_device("bad", **TAINTED), a_device("good")])],
            [a_spec(a_request())],
            [["good"]],
            id="a device with a taint",
        ),
        pytest.param(
            [a_slice("s", [a_device("bad", **TAINTED), a_device("good")])],
            [a_spec(a_request(tolerations=[{"key": "bad", "operator": "Exists"}]))],
            [["bad"]],
            id="a taint that is tolerated",
        ),
        pytest.param(
            [CARD_2, PARTS_2], [a_spec(a_request(count=2))], [["half-a", "half-b"]], id="parts that fit on one card"
        ),
        pytest.param(
            [CARD_2, PARTS_2, an_allocated_claim("x", "half-b")],
            [a_spec(a_request())],
            [["half-a"]],
            id="a part beside one that is held",
        ),
        pytest.param(
            [CARD_2, PARTS_2, an_allocated_claim("x", "whole")],
            [a_spec(a_request())],
            "",
            id="no part of a card that is held",
        ),
        pytest.param([PARTS], [a_spec(a_request())], "invalid resource pools were encountered", id="unknown counters"),
        pytest.param(
            [SHARED],
            [a_spec(a_request(count=1)) for _ in range(4)],
            [["card"]] * 4,
            id="shares of one device, 10Gi each by default",
        ),
        pytest.param([SHARED], [a_spec(a_request()) for _ in range(5)], "", id="one share too many"),
        pytest.param(
            [SHARED, an_allocated_claim("x", "card", shareID="u", consumedCapacity={"memory": "30Gi"})],
            [a_spec(a_request(**MEMORY_7))],
            [["card"]],
            id="a share that is rounded up to 10Gi fits beside 30Gi",
        ),
        pytest.param(
            [SHARED, an_allocated_claim("x", "card", shareID="u", consumedCapacity={"memory": "35Gi"})],
            [a_spec(a_request(**MEMORY_7))],
            "",
            id="and not beside 35Gi",
        ),
        pytest.param(
            [PER_DEVICE], [a_spec(a_request(count=2))], [["local", "any"]], id="devices with nodes of their own"
        ),
        pytest.param(
            [a_slice("b", [a_device("d")], pool="b"), a_slice("a", [a_device("d")], pool="a", bindingConditions=None)],
            [a_spec(a_request(count=2))],
            [["d", "d"]],
            id="two pools with devices of one name",
        ),
    ],
)
def test_devices(things: list[Any], specs: list[Any], given: Any) -> None:
    assert devices(a_cluster(*things), *specs) == given


@pytest.mark.parametrize(
    ("things", "spec", "error"),
    [
        pytest.param(
            [FOUR],
            a_spec(a_request("r", 'device.attributes["gpu.example.com"].none == 1')),
            "claim a/c0: selector #0 on device gpu.example.com/n1/d0: CEL runtime error: no such key: none",
            id="a selector that fails",
        ),
        pytest.param(
            [FOUR, a_class("gpu", "1 +")],
            a_spec(a_request()),
            "class gpu: selector #0: CEL compile error: compilation failed: 1:4: Syntax error",
            id="a selector that cannot be compiled",
        ),
        pytest.param(
            [a_slice("s", [a_device("d")], pool_fields={"resourceSliceCount": 2})],
            a_spec(a_request(allocationMode="All", count=0)),
            "asks for all devices, but resource pool gpu.example.com/n1 is currently being updated",
            id="all devices of a pool that lacks a slice",
        ),
        pytest.param(
            [FOUR],
            a_spec(a_request(allocationMode="All", count=0), constraints=[{"matchAttribute": "gpu.example.com/root"}]),
            "cannot add device gpu.example.com/n1/d2 because a claim constraint would not be satisfied",
            id="all devices, and a constraint",
        ),
        pytest.param(
            [FOUR],
            a_spec(a_request(count=33)),
            "adding 33 devices exceeds the claim limit of 32",
            id="too many devices",
        ),
        pytest.param(
            [FOUR], a_spec(a_request(allocationMode="Some")), "unsupported count mode Some", id="an unknown mode"
        ),
        pytest.param(
            [FOUR], a_spec(a_request(), constraints=[{}]), "constraint #0: empty constraint", id="an unknown constraint"
        ),
        pytest.param(
            [FOUR],
            a_spec(a_request(deviceClassName="none")),
            'deviceclass.resource.k8s.io "none" not found',
            id="no class",
        ),
        pytest.param(
            [a_slice("s", [a_device(f"d{i}", attributes={"n": i}) for i in range(120)])],
            a_spec(a_request(count=16), constraints=[{"matchAttribute": "gpu.example.com/n"}] * 2),
            "",
            id="no error: a constraint that fails at once",
        ),
    ],
)
def test_errors_end_the_attempt(things: list[Any], spec: Any, error: str) -> None:
    said = devices(a_cluster(*things), spec)
    assert isinstance(said, str)
    assert error in said


def test_a_search_with_too_many_combinations_ends() -> None:
    # Sixteen devices whose last two must be equal, of which there are none: the search would try all pairs of halves.
    many = [a_device(f"d{i}", attributes={"n": i, "m": i % 60}) for i in range(120)]
    requests = [a_request(f"r{i}") for i in range(8)]
    spec = a_spec(*requests, constraints=[{"requests": ["r6", "r7"], "matchAttribute": "gpu.example.com/n"}])
    said = devices(a_cluster(a_slice("s", many)), spec)
    assert said == "allocating devices takes too many steps: the claims have too many combinations"


def test_what_is_written_into_the_claim() -> None:
    parameters = {"opaque": {"driver": "d", "parameters": {"kind": "x"}}}
    card = a_device("d0", bindsToNode=True, bindingConditions=["Ready"], bindingFailureConditions=["Broken"])
    cluster = a_cluster(a_slice("s", [card], allNodes=True), a_class("gpu", config=[parameters]))
    given = allocated(
        cluster,
        a_spec(
            a_request("r", tolerations=[{"key": "k", "operator": "Exists"}]), config=[{"requests": ["r"], **parameters}]
        ),
    )
    assert not isinstance(given, str)
    (result,) = given[0].devices.results
    assert (result.binding_conditions, result.binding_failure_conditions) == (["Ready"], ["Broken"])
    assert [each.key for each in result.tolerations] == ["k"]
    assert [(each.source, each.requests) for each in given[0].devices.config] == [("FromClass", []), ("FromClaim", [])]
    selector = given[0].node_selector
    assert selector is not None
    assert selector.node_selector_terms[0].match_fields[0].values == ["n1"]


def test_a_device_for_all_nodes_does_not_bind_the_claim_to_one() -> None:
    given = allocated(a_cluster(a_slice("s", [a_device("d")], allNodes=True)), a_spec(a_request()))
    assert not isinstance(given, str)
    assert given[0].node_selector is None


def test_a_device_for_some_nodes_binds_the_claim_to_these() -> None:
    wanted = {"key": "rack", "operator": "In", "values": ["r1"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    fabric = a_slice("s", [a_device("d"), a_device("e")], nodeSelector=selector, pool="fabric")
    cluster = a_cluster(fabric, nodes={"n1": {"rack": "r1"}, "n2": {"rack": "r2"}})
    given = allocated(cluster, a_spec(a_request(count=2)))
    assert not isinstance(given, str)
    assert given[0].node_selector is not None
    assert len(given[0].node_selector.node_selector_terms[0].match_expressions) == 1
    assert devices(cluster, a_spec(a_request()), node="n2") == ""
