"""The metrics of what tenants use. Names of tenants are labels here, so their number is bounded."""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kubenexus.api.devices.hardware_tier import HardwareTier
from kubenexus.observe.meters import OTHER, Counter, Gauge

MAX_TENANTS: Final = 256  # with a name of their own in metrics, the first ones; all others are `other`
LOW_TIERS: Final = frozenset({"silver", "bronze"})  # tenants for whom premium hardware is not meant


class UsageKey(NamedTuple):
    tenant: str
    tier: str
    hardware: HardwareTier

    @property
    def is_premium_by_low_tier(self) -> bool:
        return self.hardware is HardwareTier.PREMIUM and self.tier in LOW_TIERS


class Usage(NamedTuple):
    """What a tenant uses now (`gpus`), and what it used since the last reading. `cost` is in the unit of the label
    `hardware.kubenexus.io/cost-hour`, None if no node of its pods had that label."""

    key: UsageKey
    gpus: float
    gpu_seconds: float
    cost: float | None


class TenantMetrics:
    """Attributes have the names of the metrics, without `kubenexus_` and units."""

    def __init__(self, counter: Callable[[str], Counter], gauge: Callable[[str], Gauge]) -> None:
        self.gpus = gauge("kubenexus_tenant_gpus")
        self.gpu_seconds = counter("kubenexus_tenant_gpu_seconds_total")
        self.cost = counter("kubenexus_tenant_cost_total")
        self.premium_by_low_tiers = counter("kubenexus_premium_gpu_seconds_by_low_tiers_total")
        self._named: set[str] = set()

    def record(self, usages: Iterable[Usage]) -> None:
        """Adds what was used since the last call. Of new tenants the first ones get a name, so they are sorted by
        what they use."""
        gpus: dict[tuple[str, ...], float] = {}
        for key, now, seconds, cost in usages:
            tenant = self._name(key.tenant)
            labels = (tenant, key.tier, key.hardware.label)
            if now:
                gpus[labels] = gpus.get(labels, 0.0) + now
            self.gpu_seconds.labels(*labels).add(seconds)
            if cost is not None:
                self.cost.labels(*labels).add(cost)
            if key.is_premium_by_low_tier:
                self.premium_by_low_tiers.labels(tenant, key.tier).add(seconds)
        self.gpus.replace(gpus)

    def _name(self, tenant: str) -> str:
        """Returns the label of a tenant. A tenant keeps it: a counter that moved to another label would decrease."""
        if tenant not in self._named:
            if len(self._named) >= MAX_TENANTS:
                return OTHER
            self._named.add(tenant)
        return tenant
