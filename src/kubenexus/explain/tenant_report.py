"""What tenants use of GPUs, as data and as a table, from a dump of the cluster.

The scheduler's metrics count GPU time while it runs. A dump has no past: the hours here are those of the pods that run
now, since each one's start.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.devices.hardware_tier import HardwareTier
from kubenexus.app.report.tenant_usage import HOUR, MICRO, NodeFacts, node_facts, pod_rate
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.explain.text_table import text_table
from kubenexus.observe.tenant_metrics import UsageKey
from kubenexus.state.devices.held_gpus import holds_devices
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodStage
from kubenexus.state.tenants import Tenant

_SHOWN = (HardwareTier.PREMIUM, HardwareTier.STANDARD, HardwareTier.ECONOMY, HardwareTier.UNKNOWN)
NOTE = "GPU-HOURS are those of the pods that run now, each since its start."


class TenantReport(msgspec.Struct, gc=False):
    """What the bound pods of a tenant use.

    gpus                       cards now, parts included; `hardware` has the same by hardware tier
    gpu_hours                  of these pods, since each one's start
    premium_hours_by_low_tier  those on premium nodes, of a tenant that is not gold
    cost_per_hour              None if no node of theirs has a price
    """

    tenant: str
    tier: str
    pods: int = 0
    gpus: float = 0.0
    hardware: dict[str, float] = {}
    gpu_hours: float = 0.0
    premium_hours_by_low_tier: float = 0.0
    cost_per_hour: float | None = None


def tenant_reports(ledger: Ledger, pods: Mapping[str, Pod], now: float) -> list[TenantReport]:
    """Returns a report for each tenant with GPUs, by falling use. `now` is when the dump was made."""
    found: dict[Tenant, TenantReport] = {}
    facts: dict[str, NodeFacts] = {}
    for key, record in ledger.pods.items():
        if record.stage is not PodStage.BOUND or not holds_devices(record):
            continue
        if record.node not in facts:
            facts[record.node] = node_facts(record.node, ledger.nodes)
        hardware, rate = pod_rate(record, facts[record.node])
        if not rate.thousandths:
            continue
        tenant, gpus = ledger.nodes.tenants.of(pods[key]), rate.thousandths / WHOLE
        report = found.setdefault(tenant, TenantReport(*tenant, hardware={tier.label: 0.0 for tier in _SHOWN}))
        hours = gpus * max(0.0, now - started_at(pods[key], now)) / HOUR
        report.pods += 1
        report.gpus += gpus
        report.hardware[hardware.label] += gpus
        report.gpu_hours += hours
        if UsageKey(*tenant, hardware).is_premium_by_low_tier:
            report.premium_hours_by_low_tier += hours
        if rate.priced:
            report.cost_per_hour = (report.cost_per_hour or 0.0) + rate.price / MICRO
    return sorted(found.values(), key=lambda report: (-report.gpus, report.tenant, report.tier))


def started_at(pod: Pod, default: float) -> float:
    """Returns when a pod began to hold its devices: when its kubelet started it, else when it was bound."""
    bound = next((each.last_transition_time for each in pod.status.conditions if each.type == "PodScheduled"), "")
    for text in (pod.status.start_time, bound):
        moment = parse_timestamp(text, None) if text else None
        if moment is not None:
            return moment
    return default


def report_data(reports: Iterable[TenantReport]) -> Any:
    """Returns the reports for JSON."""
    return {"tenants": [msgspec.to_builtins(report) for report in reports]}


def render_table(reports: Iterable[TenantReport]) -> str:
    """Returns the reports as a table with a line for each tenant and tier."""
    header = ["TENANT", "TIER", "PODS", "GPUS", *(tier.label.upper() for tier in _SHOWN)]
    rows = [[*header, "GPU-HOURS", "PREMIUM BY LOW TIER", "COST/H"]]
    rows += (_cells(report) for report in reports)
    if len(rows) == 1:
        return "no pods with GPUs\n"
    return "\n".join([*text_table(rows), "", NOTE]) + "\n"


def _cells(report: TenantReport) -> list[str]:
    by_hardware = [_number(report.hardware[tier.label]) for tier in _SHOWN]
    cost = "-" if report.cost_per_hour is None else f"{report.cost_per_hour:.2f}"
    hours, premium = f"{report.gpu_hours:.1f}", report.premium_hours_by_low_tier
    start = [report.tenant, report.tier, str(report.pods), _number(report.gpus)]
    return [*start, *by_hardware, hours, f"{premium:.1f}" if premium else "-", cost]


def _number(gpus: float) -> str:
    return f"{gpus:.3f}".rstrip("0").rstrip(".") if gpus else "-"
