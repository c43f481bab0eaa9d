"""Gangs whose members share a claim, that of their PodGroup: it is allocated where all of them fit."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod, PodResourceClaim, PodResourceClaimStatus, SchedulingGroup
from kubenexus.api.devices.resource_claim import ResourceClaim
from kubenexus.api.workloads import PodGroup
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang import backtracking
from kubenexus.plan.gang.member_classes import MemberClass
from kubenexus.plan.gang.shared_claims import SharingMembers, sharing_members
from kubenexus.plugins import default_profile, profile_plugins
from kubenexus.state.claims.store import ClaimStore
from kubenexus.state.ledger import Ledger
from kubenexus.state.object_kinds import apply_object
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.plugins.dynamic_resources.cluster import DRIVER, a_class, a_device, a_request, a_slice

PLUGINS = profile_plugins(default_profile())
SHARED = {"name": "fabric", "resourceClaimTemplateName": "t"}


def in_racks(*pods: list[int]) -> Ledger:
    """A rack for each list, with nodes for so many pods, and one device for the nodes of the rack. Nodes for fewer pods
    have more CPUs, so that they are preferred."""
    nodes = [
        a_node(f"r{rack}-{i}", cpu=99 - number, pods=number, labels={"rack": str(rack)})
        for rack, each in enumerate(pods)
        for i, number in enumerate(each)
    ]
    ledger = a_ledger(nodes)
    ledger.upsert_device_class(a_class())
    for rack, _ in enumerate(pods):
        terms = [{"matchExpressions": [{"key": "rack", "operator": "In", "values": [str(rack)]}]}]
        found = a_slice(f"s{rack}", [a_device("d")], pool=f"r{rack}", nodeSelector={"nodeSelectorTerms": terms})
        ledger.upsert_resource_slice(found)
    return ledger


def on_nodes(*pods: int) -> Ledger:
    """Nodes for so many pods with two devices each, preferred as above."""
    ledger = a_ledger([a_node(f"n{i}", cpu=99 - number, pods=number) for i, number in enumerate(pods)])
    ledger.upsert_device_class(a_class())
    for i, _ in enumerate(pods):
        ledger.upsert_resource_slice(a_slice(f"s{i}", [a_device("d0"), a_device("d1")], node=f"n{i}"))
    return ledger


def a_group(ledger: Ledger, kinds: str = "") -> None:
    """The PodGroup `g` with a claim, and the claim that was made for it."""
    meta = {"name": "g", "namespace": "default", "uid": "group"}
    apply_object(ledger, "PodGroup", from_data({"metadata": meta, "spec": {"resourceClaims": [SHARED]}}, PodGroup))
    owner = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "g", "controller": True}
    a_claim(ledger, "g-fabric", kinds, ownerReferences=[owner])


def a_claim(ledger: Ledger, name: str, kinds: str = "", **head: Any) -> None:
    """A claim for one device, of one of these kinds if there are any."""
    meta = {"name": name, "namespace": "default", "uid": name, **head}
    expressions = [f'"{kinds}".contains(device.attributes["{DRIVER}"].kind)'] if kinds else []
    spec = {"devices": {"requests": [a_request("r", *expressions)]}}
    ledger.upsert_resource_claim(from_data({"metadata": meta, "spec": spec}, ResourceClaim))


def a_member(name: str, *own: str) -> Pod:
    """A member with the claim of its PodGroup, and claims of its own."""
    pod = a_pod(name, cpu=1)
    claims = [
        from_data(SHARED, PodResourceClaim),
        *(PodResourceClaim(name=each, resource_claim_name=each) for each in own),
    ]
    statuses = [PodResourceClaimStatus(name="fabric", resource_claim_name="g-fabric")]
    spec = replace(pod.spec, resource_claims=claims, scheduling_group=SchedulingGroup(pod_group_name="g"))
    return replace(pod, spec=spec, status=replace(pod.status, resource_claim_statuses=statuses))


def decided(ledger: Ledger, members: list[Pod]) -> Decision:
    return Planner(PLUGINS).decide(Job("default/g", tuple(members), len(members)), ledger.snapshot(), 0.0)


def devices(decision: Decision, position: int = 0) -> Counter[str]:
    """The devices of a claim of the members, by position, with the number of members that name each."""
    return Counter(
        f"{result.pool}/{result.device}"
        for placement in decision.placements
        for choice in placement.assignment.claims
        if choice.position == position
        for result in choice.allocation.devices.results
    )


def test_all_members_share_the_devices_of_the_claim() -> None:
    ledger = on_nodes(8)
    a_group(ledger)
    decision = decided(ledger, [a_member(f"m{i}") for i in range(4)])
    assert len(decision.placements) == 4
    assert list(devices(decision).values()) == [4]
    assert not ledger.nodes.claims.pending


@pytest.mark.parametrize(
    ("ledger", "members", "where"),
    [
        pytest.param(on_nodes(*[2] * 12, 6, *[2] * 12), 6, {"n12"}, id="the one node that takes all, of many"),
        pytest.param(in_racks([2, 2], [4, 4], [2]), 8, {"r1-0", "r1-1"}, id="the one rack that takes all"),
        pytest.param(in_racks([4], [4], [1, 1, 1, 1, 1]), 5, {f"r2-{i}" for i in range(5)}, id="many small nodes"),
        pytest.param(in_racks([2] * 10, [3] * 20, [2] * 10), 60, {f"r1-{i}" for i in range(20)}, id="a large gang"),
    ],
)
def test_the_claim_is_allocated_where_all_members_fit(ledger: Ledger, members: int, where: set[str]) -> None:
    a_group(ledger)
    decision = decided(ledger, [a_member(f"m{i}") for i in range(members)])
    assert {each.node for each in decision.placements} == where
    assert len(decision.placements) == members
    assert len(devices(decision)) == 1


def test_none_is_placed_if_no_place_takes_all() -> None:
    ledger = in_racks([2, 2], [4], [3])
    a_group(ledger)
    assert not decided(ledger, [a_member(f"m{i}") for i in range(5)]).placements
    assert not ledger.nodes.claims.pending


def test_claims_of_members_are_exchanged_beside_the_shared_one() -> None:
    ledger = a_ledger([a_node("n1", cpu=8)])
    ledger.upsert_device_class(a_class())
    ledger.upsert_resource_slice(a_slice("s", [a_device(each, attributes={"kind": each}) for each in "abcf"]))
    a_group(ledger, "f")
    for kinds in ("ab", "bc", "a"):
        a_claim(ledger, kinds, kinds)
    decision = decided(ledger, [a_member(f"m-{kinds}", kinds) for kinds in ("ab", "bc", "a")])
    assert devices(decision) == {"n1/f": 3}
    assert devices(decision, 1) == {"n1/a": 1, "n1/b": 1, "n1/c": 1}
    assert not ledger.nodes.claims.pending


def test_shared_claims_are_looked_for_once_for_all_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def counted(member_classes: Sequence[MemberClass], store: ClaimStore) -> SharingMembers | None:
        looks.append(len(member_classes))
        return sharing_members(member_classes, store)

    monkeypatch.setattr(backtracking, "sharing_members", counted)
    ledger = in_racks([2, 1], [1, 2], [1, 1])
    for name in [f"r{rack}-{i}" for rack in range(3) for i in range(2)]:
        ledger.upsert_node(a_node(name, cpu=9, pods=1, zone=name[:2], labels={"rack": name[1]}))
    a_group(ledger)
    assert not decided(ledger, [a_member(f"m{i}") for i in range(4)]).placed
    assert len(looks) == 1
