"""A scheduler with NUMATopology and nodes that report their NUMA nodes."""

from collections.abc import Mapping

from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.framework.profile import EnabledPlugin
from kubenexus.plan.decide import Planner
from kubenexus.plugins import default_profile, profile_plugins
from kubenexus.testing.builders import a_node
from kubenexus.testing.harness import Run, a_ledger
from tests.api.numa.builders import GPU, Row

GI = 1 << 30
EIGHT: Row = (8, 8, 8)
PROFILE = default_profile(also=[EnabledPlugin("NUMATopology", 4)])  # nothing but kube-scheduler's plugins beside it


def a_run(
    *nrts: NodeResourceTopology,
    others: int = 0,
    gpus: int = 0,
    cpu: int = 16,
    memory: str = "64Gi",
    labels: Mapping[str, str] | None = None,
) -> Run:
    """A scheduler and nodes with these reports and labels, and `others` without a report."""
    resources, labels = {GPU: gpus} if gpus else {}, dict(labels or {})
    names = [*(nrt.metadata.name for nrt in nrts), *(f"other-{number}" for number in range(others))]
    ledger = a_ledger([a_node(name, cpu=cpu, memory=memory, resources=resources, labels=labels) for name in names])
    for nrt in nrts:
        ledger.upsert_node_topology(nrt)
    ledger.read_devices()
    return Run(ledger, Planner(profile_plugins(PROFILE)), {})
