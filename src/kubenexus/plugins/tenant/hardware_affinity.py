"""TenantHardwareAffinityScore: the best GPUs for the tenants that pay for them, and cheap ones for the others.

Score of a pod with GPUs, by the tier of its tenant and the hardware tier of the node (`hardware_tier`):

              premium  standard  economy  not known  no GPUs
    gold      100      70        60       70         50
    silver    20       100       70       70         50
    bronze    0        50        100      70         50

It is a preference: a bronze pod gets a premium GPU when no other is free. While placements follow demand
(`devices.demand`), a stated tier counts `BEFORE_DEMAND` times as much, so that demand chooses among nodes of the tier
that the tenant prefers, and never another tier. Tenants that are bronze by default have no such preference: there
demand may keep economy GPUs for pods that need them. Pods without GPUs score 50 on nodes without GPUs and less on
others, the less the more precious the GPUs are.

Filter, only where the configuration has `allowedTiers` for the tenant or its tier: GPU pods get no other hardware. Nor
do pods with device claims, which may be for GPUs; their points are those of pods without GPUs.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.devices.hardware_tier import HardwareTier
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import Depends, Normalize
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason
from kubenexus.plugins.devices.request import may_claim_devices, needs_of
from kubenexus.plugins.devices.tenant_tier import TIER_EVENT
from kubenexus.state.devices.hardware_tiers import hardware_tiers
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

NOT_ALLOWED: Final = Reason("node(s) had GPUs of a tier that the tenant may not use", Code.UNRESOLVABLE)
NEUTRAL: Final = 50
NOT_KNOWN: Final = 70
# By tenant tier: the points of premium, standard and economy hardware.
POINTS: Final = {"gold": (100, 70, 60), "silver": (20, 100, 70), "bronze": (0, 50, 100)}
# Of pods without GPUs, on nodes whose GPUs have the tier.
CPU_ONLY: Final = {
    HardwareTier.NONE: NEUTRAL,
    HardwareTier.ECONOMY: 20,
    HardwareTier.STANDARD: 10,
    HardwareTier.PREMIUM: 0,
    HardwareTier.UNKNOWN: 10,
}
# With the shipped weights one point counts more than all that demand can (`demand.scoring`: 16,100 points of weight 5).
BEFORE_DEMAND: Final = 5040
_HARDWARE: Final = (HardwareTier.PREMIUM, HardwareTier.STANDARD, HardwareTier.ECONOMY)


class SignedTenant(NamedTuple):
    """What a pod signs: its tier, the name of a tenant that the configuration has rules for, and how many times its
    points count, 0 if it requests no GPUs. A pod without GPUs and claims signs no tier."""

    tier: str = ""
    name: str = ""
    times: int = 0


_WITHOUT_GPUS: Final = SignedTenant()


class TenantHardwareAffinityScore:
    name = "TenantHardwareAffinityScore"
    reads = ()
    depends = Depends.NODE
    normalize = Normalize("points")  # with a demand there are more than 100
    signs_template = True

    def __init__(self, args: Mapping[str, Any]) -> None:
        costs = {tier: float((args.get("costFactors") or {}).get(tier.label, 1.0)) for tier in _HARDWARE}
        given = args.get("scores") or {}
        self._points = {
            tier: _column(tier, {**_by_label(usual), **given.get(tier, {})}, costs) for tier, usual in POINTS.items()
        }
        self._without: Any = np.array([CPU_ONLY[tier] for tier in HardwareTier], np.uint8)
        self._refused = {tier: _refused(labels) for tier, labels in (args.get("allowedTiers") or {}).items()}
        by_name = args.get("tenantAllowedTiers") or {}
        self._refused_by_name = {name: _refused(labels) for name, labels in by_name.items()}

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        has_gpus = needs_of(pod) is not None
        if not has_gpus and not may_claim_devices(pod, nodes):
            return _WITHOUT_GPUS
        tenant = nodes.tenants.of(pod)
        before_demand = has_gpus and nodes.demand is not None and nodes.tenants.states_tier(pod)
        times = BEFORE_DEMAND if before_demand else int(has_gpus)
        return SignedTenant(tenant.tier, tenant.name if tenant.name in self._refused_by_name else "", times)

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        tier, name, _ = pod.signed.get(self.name, _WITHOUT_GPUS)
        refused = self._refused_by_name[name] if name else self._refused.get(tier)
        if refused is not None:
            verdict.reject(refused[hardware_tiers(nodes)], NOT_ALLOWED)

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Leaves `capacity` as it is: a node refuses each member alike."""

    def amounts(self, pod: PodClass) -> Mapping[str, int]:
        return {}

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        tier, _, times = pod.signed.get(self.name, _WITHOUT_GPUS)
        if not times and not nodes.columns.devices.count:
            return NEUTRAL
        if times:
            found: IntColumn = self._points[tier][hardware_tiers(nodes)].astype(np.int32) * times
            return found
        own = np.where(nodes.devices.offered("") == 0, HardwareTier.NONE, hardware_tiers(nodes))
        kept: IntColumn = self._without[own]
        return kept

    events_to_register = (
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        ClusterEventWithHint(EventResource.RESOURCE_SLICE, ActionType.ALL),
        ClusterEventWithHint(EventResource.NODE_RESOURCE_TOPOLOGY, ActionType.ALL),
        TIER_EVENT,
    )


def _by_label(points: tuple[int, int, int]) -> dict[str, int]:
    return {tier.label: each for tier, each in zip(_HARDWARE, points, strict=True)}


def _column(tenant: str, points: Mapping[str, int], costs: Mapping[HardwareTier, float]) -> Any:
    """Returns the points by hardware tier. Hardware above the tenant's own counts less by its cost factor."""
    column = np.full(len(HardwareTier), NOT_KNOWN, np.uint8)
    column[HardwareTier.NONE] = NEUTRAL
    own = dict(zip(POINTS, _HARDWARE, strict=True))[tenant]
    for tier in _HARDWARE:
        column[tier] = int(points[tier.label] / costs[tier]) if tier > own else points[tier.label]
    return column


def _refused(allowed: Any) -> Any:
    """Returns by hardware tier whether GPU pods are refused. What is not known is refused too: it may be any."""
    return np.array([tier is not HardwareTier.NONE and tier.label not in allowed for tier in HardwareTier], np.bool_)
