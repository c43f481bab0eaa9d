"""What a ResourceReservation asks for, and which ones cannot be used."""

from typing import Any

import pytest

from kubenexus.api.codec import from_data
from kubenexus.api.reservations.request import request_of
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.base.errors import Malformed
from kubenexus.base.timestamps import parse_timestamp

CREATED = "2026-11-17T17:00:00Z"
GIB = 1 << 30


def a_reservation(**spec: Any) -> ResourceReservation:
    metadata = {"name": "r", "namespace": "ml", "uid": "u", "creationTimestamp": CREATED}
    return from_data({"metadata": metadata, "spec": spec}, ResourceReservation)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"count": 2, "resources": {"cpu": "4", "nvidia.com/gpu": 8}},
            {"r-member-0": {"cpu": 4000, "nvidia.com/gpu": 8}, "r-member-1": {"cpu": 4000, "nvidia.com/gpu": 8}},
            id="with count, resources are of each entry",
        ),
        pytest.param(
            {"podGroupName": "llama", "minMember": 2, "resources": {"cpu": "3", "nvidia.com/gpu": 3}},
            {
                "llama-member-0": {"cpu": 1500, "nvidia.com/gpu": 2},
                "llama-member-1": {"cpu": 1500, "nvidia.com/gpu": 2},
            },
            id="without count, the members share the sum, and devices are whole",
        ),
        pytest.param(
            {"podGroupName": "llama", "resources": {"memory": "1Gi"}},
            {"llama-member-0": {"memory": GIB}},
            id="without both, all is on one node",
        ),
        pytest.param(
            {"reservations": {"driver": {"node": "n1", "cpu": "1", "memory": "750M"}, "w": {"gpu": "1"}}},
            {"driver": {"cpu": 1000, "memory": 750_000_000}, "w": {"nvidia.com/gpu": 1}},
            id="entries by name, with gpu (RR-3: it is not dropped)",
        ),
        pytest.param(
            {"reservations": {"w": {"cpu": 2, "resources": {"cpu": "3", "example.com/nic": 1}}}},
            {"w": {"cpu": 3000, "example.com/nic": 1}},
            id="resources of an entry go before its short fields",
        ),
    ],
)
def test_the_entries(spec: dict[str, Any], expected: dict[str, dict[str, int]]) -> None:
    assert {each.name: dict(each.amounts) for each in request_of(a_reservation(**spec)).entries} == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, (0, 600), id="ten minutes from its creation"),
        pytest.param({"duration": "1h30m"}, (0, 5400), id="as long as it says"),
        pytest.param({"from": "2026-11-17T18:00:00Z", "duration": "45s"}, (3600, 3645), id="from a time on"),
        pytest.param({"from": "2026-11-17T10:00:00+01:00"}, (0, 600), id="a time before its creation is its creation"),
    ],
)
def test_the_time(spec: dict[str, Any], expected: tuple[int, int]) -> None:
    request, zero = request_of(a_reservation(resources={"cpu": 1}, **spec)), parse_timestamp(CREATED, 0.0)
    assert (request.starts_at - zero, request.expires_at - zero) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "ml", id="its own namespace"),
        pytest.param({"podGroupName": "llama"}, "gang llama of ml", id="a gang"),
        pytest.param({"owner": {"namespaces": ["b", "a"]}}, "a, b", id="namespaces"),
        pytest.param({"owner": {"namespaces": list("abcde")}}, "a, b, c and 2 more", id="many namespaces"),
        pytest.param(
            {"owner": {"namespaceSelector": {"matchLabels": {"team": "a"}}}},
            "namespaces team=a",
            id="labels of namespaces",
        ),
        pytest.param({"owner": {"podSelector": {"matchLabels": {"app": "x"}}}}, "ml (pods app=x)", id="labels of pods"),
        pytest.param({"tenantTier": "gold"}, "tier gold", id="a tier, everywhere"),
    ],
)
def test_the_owner(spec: dict[str, Any], expected: str) -> None:
    assert request_of(a_reservation(resources={"cpu": 1}, **spec)).owner.describe() == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "spec.reservations: must have entries, here or as count and resources"),
        ({"count": 129, "resources": {"cpu": 1}}, "spec.count: must be from 1 to 128, not 129"),
        ({"count": -1, "resources": {"cpu": 1}}, "spec.count: must be from 1 to 128, not -1"),
        ({"resources": {"cpu": "-1"}}, "spec.resources[cpu]: must not be negative"),
        ({"resources": {"cpu": "x"}}, "spec.resources[cpu]: "),
        ({"resources": {"cpu": 0}}, "spec.resources: must name a resource and an amount of it"),
        (
            {"resources": {f"x.io/{i}": 1 for i in range(17)}},
            "spec.resources: has 17 resources; at most 16 are allowed",
        ),
        (
            {"reservations": {f"e{i}": {"cpu": 1} for i in range(129)}},
            "spec.reservations: has 129 entries; at most 128 are allowed",
        ),
        (
            {"reservations": {f"e{i}": {"cpu": i + 1} for i in range(9)}},
            "spec.reservations: has 9 different entries; at most 8 are allowed",
        ),
        ({"reservations": {"A b": {"cpu": 1}}}, "spec.reservations[A b]: must be a name of lower case letters"),
        (
            {"resources": {"cpu": 1}, "duration": "soon"},
            "spec.duration: must be a duration like 10m or 1h30m, not 'soon'",
        ),
        ({"resources": {"cpu": 1}, "duration": "0s"}, "spec.duration: must be a duration"),
        (
            {"resources": {"cpu": 1}, "from": "18:00"},
            "spec.from: must be a time like 2026-11-17T18:00:00Z, not '18:00'",
        ),
        ({"resources": {"cpu": 1}, "tenantTier": "x"}, "spec.tenantTier: must be gold, silver or bronze, not 'x'"),
        (
            {"resources": {"cpu": 1}, "owner": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "x"}]}}},
            "spec.owner.podSelector: ",
        ),
        (
            {"resources": {"cpu": 1}, "owner": {"namespaces": ["n"] * 65}},
            "spec.owner.namespaces: has 65 namespaces; at most 64 are allowed",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_cannot_be_used_is_named(spec: dict[str, Any], expected: str) -> None:
    with pytest.raises(Malformed) as caught:
        request_of(a_reservation(**spec))
    assert str(caught.value).startswith(expected)
