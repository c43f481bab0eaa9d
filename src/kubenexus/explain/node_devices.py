"""The devices of nodes as data and as a table: what each is, where each fact comes from, and which pods hold it."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kubenexus.api.devices.device import UNKNOWN, Device, DeviceKind, FactSource, Link
from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.devices.hardware_tier import HardwareTier, labelled_tier
from kubenexus.explain.text_table import text_table
from kubenexus.plugins.devices.need_text import memory_text
from kubenexus.state.devices.columns import held_devices, usable_memory
from kubenexus.state.ledger import Ledger
from kubenexus.state.nodes import NodeColumns

PLAN = (
    "The kubelet's device plugin picks the card of a pod with whole GPUs: the names of such pods are KubeNexus's plan, "
    "their number is exact. A pod with a part of a GPU has the card that is shown (docs/devices.md)."
)


class DeviceHolder(msgspec.Struct, frozen=True, gc=False):
    """A pod and what it holds of a device: thousandths, and bytes of memory where it takes a part."""

    pod: str
    share: int = WHOLE
    memory: int = 0


class DeviceState(msgspec.Struct, frozen=True, gc=False):
    """A device, the pods that hold it, and what is free of it in thousandths and bytes.

    `free_memory` is the memory that pods can still share; None where the memory of the device is not known.
    """

    device: Device
    held_by: tuple[DeviceHolder, ...] = ()
    free: int = WHOLE
    free_memory: int | None = None


class ResourceUse(msgspec.Struct, frozen=True, gc=False):
    """How the kubelet offers devices: `offered` units of a resource, of which pods hold `used`.

    `without_names` of these are held by pods whose cards are not known: no annotation of theirs names a card.
    """

    resource: str
    offered: int
    used: int
    without_names: int = 0


class NodeTier(msgspec.Struct, frozen=True, gc=False):
    """The hardware tier of a node, and whether its label (`label`) or its best card (`model`) shows it. Both are ""
    where neither does."""

    tier: str = ""
    source: str = ""


class NodeDeviceReport(msgspec.Struct, frozen=True, gc=False):
    """All that is known about the devices of one node. `shared`: pods may hold parts of a card."""

    node: str
    shared: bool
    devices: tuple[DeviceState, ...]
    resources: tuple[ResourceUse, ...] = ()
    warnings: tuple[str, ...] = ()
    hardware: NodeTier = NodeTier()


def device_reports(ledger: Ledger, node: str = "") -> list[NodeDeviceReport]:
    """Returns the report of a node, or of all nodes with devices or warnings about them, by name."""
    names = [node] if node else sorted(ledger.nodes.row_of)
    reports = (_report(ledger, name) for name in names)
    return [each for each in reports if node or each.devices or each.warnings]


def _report(ledger: Ledger, name: str) -> NodeDeviceReport:
    columns, found = ledger.nodes, ledger.devices_of(name)
    holders = _holders(ledger, name)
    states = []
    for device in found.devices:
        holding = holders.get(device.name, [])
        memory = max(0, usable_memory(device) - sum(each.memory for each in holding))
        free = max(0, WHOLE - sum(each.share for each in holding)) if device.healthy else 0
        states.append(DeviceState(device, tuple(holding), free, memory if device.memory != UNKNOWN else None))
    row, uses = columns.row_of[name], list[ResourceUse]()
    for resource in sorted({device.resource for device in found.devices if device.resource}):
        known = columns.resources
        offered, used = (int(table[known.index[resource], row]) for table in (known.alloc, known.used))
        named = columns.devices.attributed.get(resource)
        uses.append(ResourceUse(resource, offered, used, max(0, used - int(named[row]) if named is not None else used)))
    tier = _tier(columns, row)
    return NodeDeviceReport(name, found.shared, tuple(states), tuple(uses), found.warnings, tier)


def _tier(columns: NodeColumns, row: int) -> NodeTier:
    labelled = labelled_tier(columns.labels.of_row(row))
    if labelled is not None:
        return NodeTier(labelled.label, "label")
    tier = HardwareTier(columns.devices.tiers.item(row))
    return NodeTier() if tier in (HardwareTier.NONE, HardwareTier.UNKNOWN) else NodeTier(tier.label, "model")


def _holders(ledger: Ledger, node: str) -> dict[str, list[DeviceHolder]]:
    """Returns, by device, the pods that hold it."""
    here = ledger.nodes.devices.of_row(ledger.nodes.row_of.get(node, -1))
    holders: dict[str, list[DeviceHolder]] = {}
    for record in sorted(ledger.on_node(node), key=lambda record: record.key):
        for _, each in held_devices(record.device_shares, record.footprint.amounts, here):
            holders.setdefault(each.device, []).append(DeviceHolder(record.key, each.share, each.memory))
    return holders


def report_data(reports: Iterable[NodeDeviceReport]) -> Any:
    """Returns the reports for JSON: all fields of each device, null where no source has the fact."""
    nodes = []
    for report in reports:
        data = msgspec.to_builtins(report)
        for entry, state in zip(data["devices"], report.devices, strict=True):
            facts = msgspec.structs.asdict(state.device)
            entry["device"] = {field: None if value in ("", UNKNOWN) else value for field, value in facts.items()}
        nodes.append(data)
    return {"nodes": nodes}


# --- text -------------------------------------------------------------------------------------------------------------


def render_table(reports: Iterable[NodeDeviceReport]) -> str:
    """Returns the reports as a table with a line for each device, and what it does not show as sentences below."""
    shown = list(reports)
    rows = [["NODE", "TIER", "CARD", "MODEL", "MEMORY", "NUMA", "ISLAND", "STATE"]]
    rows += ([report.node, _tier_text(report.hardware), *_cells(state)] for report in shown for state in report.devices)
    lines = text_table(rows) if len(rows) > 1 else ["no devices"]
    notes = [note for report in shown for note in _notes(report)]
    if any(report.resources for report in shown):
        notes.append(PLAN)
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _tier_text(hardware: NodeTier) -> str:
    """Returns `premium (model)`, or `-` if the tier is not known."""
    return f"{hardware.tier} ({hardware.source})" if hardware.tier else "-"


def _cells(state: DeviceState) -> list[str]:
    device, sources = state.device, state.device.sources
    model = " ".join(each for each in (device.model, device.profile) if each)
    return [
        _fact(device.name, sources.get("name")),
        _fact(model, sources.get("model", sources.get("profile"))),
        _fact(memory_text(device.memory) if device.memory != UNKNOWN else "", sources.get("memory")),
        _fact(str(device.numa) if device.numa != UNKNOWN else "", sources.get("numa")),
        _island(device),
        state_text(state),
    ]


def _fact(text: str, source: FactSource | None) -> str:
    """Returns `80Gi (gfd)`, or `-` if no source has the fact."""
    if not text:
        return "-"
    return f"{text} ({source})" if source is not None else text


def _island(device: Device) -> str:
    """Returns `0 nvswitch (dra)`; the source is that of the island, and of the link where that is another one."""
    sources = device.sources
    island = _fact(str(device.island) if device.island != UNKNOWN else "", sources.get("island"))
    if device.link is Link.UNKNOWN:
        return island
    if sources.get("link") == sources.get("island"):
        return _fact(f"{device.island} {device.link}", sources.get("island"))
    return f"{island} {_fact(device.link, sources.get('link'))}"


def state_text(state: DeviceState) -> str:
    """Returns `free`, `held by ml/a`, or `held by ml/a 50%, ml/b 25%; 25% free`."""
    health = "" if state.device.healthy else _fact("unhealthy", state.device.sources.get("healthy"))
    if not state.held_by:
        return health or "free"
    parts = any(each.share < WHOLE for each in state.held_by)
    pods = ", ".join(each.pod + (f" {percent(each.share)}" if parts else "") for each in state.held_by)
    left = f"; {percent(state.free)} free" if parts and state.free else ""
    return f"{health}; held by {pods}" if health else f"held by {pods}{left}"


def percent(share: int) -> str:
    """Returns thousandths as users read them: `50%`, `12.5%`."""
    return f"{share / 10:g}%"


def _notes(report: NodeDeviceReport) -> Iterator[str]:
    for use in report.resources:
        if use.without_names:
            yield f"{report.node}: {use.without_names} {use.resource} held by pods without names, on cards not known"
        cards = [state.device for state in report.devices if state.device.resource == use.resource]
        there = sum(device.replicas for device in cards if device.healthy)
        if use.offered != there:
            yield f"{report.node}: the kubelet offers {use.offered} {use.resource}, the healthy cards are {there}"
        replicas = max(device.replicas for device in cards)
        if replicas > 1:
            yield f"{report.node}: each card is offered {replicas} times as {use.resource}"
    claimed = sum(not state.device.resource and state.device.kind is not DeviceKind.MIG for state in report.devices)
    if claimed:
        yield f"{report.node}: {claimed} cards are in no resource of the kubelet; pods that claim them are not shown"
    if report.shared:
        yield f"{report.node}: shares its cards, pods may hold parts of them"
    yield from (f"{report.node}: warning: {warning}" for warning in report.warnings)
