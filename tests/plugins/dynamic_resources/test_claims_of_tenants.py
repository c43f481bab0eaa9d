"""A tenant gets no hardware by a device claim that it would not get by number."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod, PodResourceClaim
from kubenexus.api.devices.resource_claim import ResourceClaim
from kubenexus.framework.job import Job
from kubenexus.framework.profile import Profile
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.plugins.devices.fragmentation import RESERVED
from kubenexus.plugins.tenant.hardware_affinity import NOT_ALLOWED
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import GPU, a_node, a_pod
from tests.plugins.dynamic_resources.cluster import a_class, a_device, a_request, a_slice

BACKED = "example.com/accelerator"
PREMIUM = {"hardware.kubenexus.io/tier": "premium"}
KEPT_FOR_GOLD = PREMIUM | {"tenant.kubenexus.io/reserved-tier": "gold"}
BY_NUMBER = a_pod("p", requests={GPU: 1})
BY_CLAIM = a_pod("p", resource_claims=[PodResourceClaim(name="c", resource_claim_name="c")])
BY_CLASS = a_pod("p", requests={BACKED: 1})
BY_CLASS_NAME = a_pod("p", requests={"deviceclass.resource.kubernetes.io/gpu": 1})
WITHOUT = a_pod("p", cpu=1)
WAYS = [
    pytest.param(BY_NUMBER, id="by number"),
    pytest.param(BY_CLAIM, id="by a claim"),
    pytest.param(BY_CLASS, id="by a resource that a class backs"),
    pytest.param(BY_CLASS_NAME, id="by the name of a class"),
]


def a_cluster(tier: str, labels: dict[str, str], *, classes: bool = True) -> Ledger:
    """One node that offers GPUs by number and by claims."""
    ledger = Ledger()
    ledger.upsert_node(a_node("n", gpu=2, labels=labels))
    if classes:
        ledger.upsert_device_class(a_class("gpu", extendedResourceName=BACKED))
    ledger.upsert_resource_slice(a_slice("s", [a_device("gpu-0"), a_device("gpu-1")], node="n"))
    meta, spec = {"name": "c", "namespace": "default", "uid": "c"}, {"devices": {"requests": [a_request()]}}
    ledger.upsert_resource_claim(from_data({"metadata": meta, "spec": spec}, ResourceClaim))
    ledger.nodes.tenants.set_namespace("default", {"tenant.kubenexus.io/tier": tier})
    ledger.read_devices()
    return ledger


def a_profile(**args: Any) -> Profile:
    """Returns the shipped profile with these arguments of TenantHardwareAffinityScore."""
    profile = shipped_profile()
    plugins = [
        msgspec.structs.replace(each, args=args) if each.name == "TenantHardwareAffinityScore" else each
        for each in profile.plugins
    ]
    return msgspec.structs.replace(profile, plugins=tuple(plugins))


def said(pod: Pod, ledger: Ledger, planner: Planner | None = None, **args: Any) -> str:
    """The node that a pod gets, or why it gets none."""
    planner = planner or Planner(profile_plugins(a_profile(**args)))
    decision = planner.decide(Job.of(pod), ledger.snapshot(), now=0.0)
    return decision.placements[0].node if decision.placements else decision.sentence()


@pytest.mark.parametrize("pod", WAYS)
def test_a_reserved_node_is_kept_for_its_tier(pod: Pod) -> None:
    assert RESERVED.text in said(pod, a_cluster("bronze", KEPT_FOR_GOLD))
    assert said(pod, a_cluster("gold", KEPT_FOR_GOLD)) == "n"


@pytest.mark.parametrize("pod", WAYS)
def test_hardware_that_a_tenant_may_not_use_is_kept_from_it(pod: Pod) -> None:
    by_tier: dict[str, Any] = {"allowedTiers": {"bronze": ["economy"]}}
    by_name: dict[str, Any] = {"tenantAllowedTiers": {"default": ["economy"]}}
    for args in (by_tier, by_name):
        assert NOT_ALLOWED.text in said(pod, a_cluster("bronze", PREMIUM), **args)
    assert said(pod, a_cluster("gold", PREMIUM), **by_tier) == "n"


def test_pods_without_devices_may_use_such_nodes() -> None:
    ledger = a_cluster("bronze", KEPT_FOR_GOLD)
    assert said(WITHOUT, ledger, allowedTiers={"bronze": ["economy"]}) == "n"


def test_a_class_that_comes_later_counts_for_pods_that_were_signed_before() -> None:
    ledger, planner = a_cluster("bronze", KEPT_FOR_GOLD, classes=False), Planner(profile_plugins(shipped_profile()))
    assert "Insufficient" in said(BY_CLASS, ledger, planner)
    ledger.upsert_device_class(a_class("gpu", extendedResourceName=BACKED))
    assert RESERVED.text in said(BY_CLASS, ledger, planner)
