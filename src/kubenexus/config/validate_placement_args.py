"""Validates arguments of our own plugins that place pods by workload and tenant."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from kubenexus.config import args as kinds
from kubenexus.config.field_errors import FieldPath

_TENANTS: Final = ("gold", "silver", "bronze")
_HARDWARE: Final = ("premium", "standard", "economy")
_MAX_WEIGHT: Final = 100
_MAX_COST: Final = 1000.0


def workload_aware(args: kinds.WorkloadAwareScoringArgs, place: FieldPath) -> None:
    weights = (("cpuWeight", args.cpu_weight), ("memoryWeight", args.memory_weight), ("gpuWeight", args.gpu_weight))
    for name, weight in weights:
        if not 0 <= weight <= _MAX_WEIGHT:
            place[name].invalid(weight, f"not in valid range [0, {_MAX_WEIGHT}]")
    if not args.cpu_weight and not args.memory_weight:
        place["cpuWeight"].invalid(args.cpu_weight, "cannot be zero at the same time as memoryWeight")


def tenant_hardware(args: kinds.TenantHardwareAffinityScoreArgs, place: FieldPath) -> None:
    for tier, points in _known(args.scores, _TENANTS, place["scores"]):
        for hardware, each in _known(points, _HARDWARE, place["scores"][tier]):
            if not 0 <= each <= 100:
                place["scores"][tier][hardware].invalid(each, "not in valid range [0, 100]")
    for hardware, factor in _known(args.cost_factors, _HARDWARE, place["costFactors"]):
        if not 1.0 <= factor <= _MAX_COST:
            place["costFactors"][hardware].invalid(factor, f"not in valid range [1, {_MAX_COST:g}]")
    for tier, allowed in _known(args.allowed_tiers, _TENANTS, place["allowedTiers"]):
        _allowed(allowed, place["allowedTiers"][tier])
    for tenant, allowed in args.tenant_allowed_tiers.items():
        _allowed(allowed, place["tenantAllowedTiers"][tenant])


def _known(given: Mapping[str, Any], names: Collection[str], place: FieldPath) -> list[tuple[str, Any]]:
    """Returns the entries with a known name, and reports the others."""
    for name in given:
        if name not in names:
            place[name].unsupported(name, list(names))
    return [(name, each) for name, each in given.items() if name in names]


def _allowed(tiers: list[str], place: FieldPath) -> None:
    if not tiers:
        place.required("at least one of premium, standard, economy")
    for index, tier in enumerate(tiers):
        if tier not in _HARDWARE:
            place[index].unsupported(tier, list(_HARDWARE))
