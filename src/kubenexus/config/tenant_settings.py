"""The tenant settings of a profile (`pluginConfig`, `KubeNexus`), as the queue and the ledger use them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubenexus.config.args import SETTINGS
from kubenexus.framework.profile import DEFAULT_SCHEDULER


class TenantSettings(msgspec.Struct, frozen=True):
    """`allow_pod_tier`: pods may choose their tier where neither queue nor namespace has one. `tier_boosts` and
    `namespace_priorities` order jobs of equal priority."""

    allow_pod_tier: bool = False
    tier_boosts: Mapping[str, int] = {}
    namespace_priorities: Mapping[str, int] = {}

    @property
    def orders(self) -> bool:
        """Whether the order of jobs depends on their tenants."""
        return any(self.tier_boosts.values()) or any(self.namespace_priorities.values())

    def boost(self, tier: str, namespace: str) -> int:
        """Returns what a job of this tenant counts more than others of its priority."""
        return self.tier_boosts.get(tier, 0) + self.namespace_priorities.get(namespace, 0)


def tenant_settings(args: Mapping[str, Any], profile: str = "") -> TenantSettings:
    """Makes the settings from the arguments of a loaded configuration, by plugin. A profile with kube-scheduler's name
    keeps kube-scheduler's order unless the arguments change it."""
    ours: Mapping[str, Any] = args.get(SETTINGS, {})
    said, usual = ours.get("tierBoosts"), profile != DEFAULT_SCHEDULER
    boosts = {"gold": 20, "silver": 10, "bronze": 0} if said is None and usual else said or {}
    return TenantSettings(bool(ours.get("allowPodTier")), boosts, ours.get("namespacePriorities", {}))


def own_tier_profiles(args: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns the profiles whose pods may choose their tier, from the arguments by profile."""
    return [name for name, each in args.items() if tenant_settings(each, name).allow_pod_tier]
