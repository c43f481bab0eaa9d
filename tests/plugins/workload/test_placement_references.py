"""The rules of workloads and tenants say of each node what their references say: over all rows, some, and one."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.plugins import BUILT_IN, profile_plugins, shipped_profile
from kubenexus.testing.builders import a_pod
from kubenexus.testing.harness import CheckedCluster
from kubenexus.testing.reference_check import assert_matches_reference
from kubenexus.testing.strategies import clusters, pods
from tests.plugins.devices.device_cluster import device_clusters, device_pods
from tests.plugins.workload import placement_reference as reference

PLUGINS = profile_plugins(shipped_profile())
RULES: dict[str, Any] = {
    "WorkloadAwareScoring": reference.WorkloadAwareScoring(),
    "BackfillScoring": reference.BackfillScoring(),
    "TenantHardwareAffinityScore": reference.TenantHardwareAffinityScore(),
}
TIERS = st.sets(st.sampled_from(["premium", "standard", "economy"]))
MARKS: tuple[dict[str, str], ...] = (
    {},
    {"workload.kubenexus.io/type": "training"},
    {"workload.kubenexus.io/type": "service"},
    {"workload.kubenexus.io/placement": "pack"},
    {"workload.kubenexus.io/placement": "spread", "workload.kubenexus.io/type": "batch"},
    {"workload.kubenexus.io/preemptible": "true"},
    {"scheduling.kubenexus.io/backfill": "true", "workload.kubenexus.io/type": "batch"},
)


def marked(pod: Pod, labels: dict[str, str]) -> Pod:
    meta = msgspec.structs.replace(pod.metadata, labels={**pod.metadata.labels, **labels})
    return msgspec.structs.replace(pod, metadata=meta)


def check(cluster: CheckedCluster, pod: Pod) -> None:
    pod_class = ClassCache(PLUGINS).make_class(pod, cluster.ledger.nodes)
    for name, rule in RULES.items():
        if name in pod_class.signed:
            assert_matches_reference(BUILT_IN[name]({}), rule, pod, cluster, pod_class)


@given(cluster=clusters(), pod=pods(), labels=st.sampled_from(MARKS))
def test_of_nodes_of_many_sizes(cluster: CheckedCluster, pod: Pod, labels: dict[str, str]) -> None:
    check(cluster, marked(pod, labels))


@given(cluster=device_clusters(), pod=device_pods() | st.just(a_pod(cpu=1)), labels=st.sampled_from(MARKS))
def test_of_nodes_with_devices(cluster: CheckedCluster, pod: Pod, labels: dict[str, str]) -> None:
    check(cluster, marked(pod, labels))


@given(
    cluster=device_clusters(),
    pod=device_pods() | st.just(a_pod(cpu=1)),
    allowed=st.sets(st.sampled_from(["premium", "standard", "economy"])),
)
def test_of_hardware_that_a_tier_may_use(cluster: CheckedCluster, pod: Pod, allowed: set[str]) -> None:
    rule: Any = BUILT_IN["TenantHardwareAffinityScore"]({"allowedTiers": {"bronze": sorted(allowed)}})
    pod_class = ClassCache(PLUGINS).make_class(pod, cluster.ledger.nodes)
    expected = reference.TenantHardwareAffinityScore(tuple(allowed))
    assert_matches_reference(rule, expected, pod, cluster, pod_class)
