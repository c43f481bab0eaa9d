"""GPU time and cost by tenant and hardware tier, integrated over time from the bound pods of the ledger.

    pod bound, ended ─▶ meter of (tenant, tier, hardware tier) ─▶ `drain`: metrics
    namespace or queue changed, node relabelled, its devices read ─▶ due ─▶ `settle`: its pods move to other meters

Each change costs the same however many pods there are: a changed namespace or node is only noted, and `settle` moves
some of its pods in each turn of the loop. Until then a pod counts where it did. Meters are brought up to date when
their rate changes and when they are read, so that a reading depends on the number of tenants and not on that of pods.

Counting begins when this process starts to schedule and the devices of nodes are known: a standby counts nothing, so
that the counters of several replicas can be added. After a restart the counters begin at 0 with what runs then.
"""

from decimal import Decimal
from typing import Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.devices.hardware_tier import HardwareTier
from kubenexus.api.keys import gpu
from kubenexus.api.keys.reading import read_key
from kubenexus.base.changed_groups import ChangedGroups
from kubenexus.base.clock import Clock
from kubenexus.observe.tenant_metrics import Usage, UsageKey
from kubenexus.state.devices.columns import RowDevices
from kubenexus.state.devices.hardware_tiers import row_tier
from kubenexus.state.devices.held_gpus import card_part, held_thousandths, holds_devices
from kubenexus.state.ledger import Ledger
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord, PodStage
from kubenexus.state.tenants import TenantFields
from kubenexus.state.view import OneNode

MICRO: Final = 10**6  # prices are integers, so that adding and removing pods leaves no rest
HOUR: Final = 3600.0
PORTION: Final = 256  # pods that are counted again in one turn, half for namespaces and half for nodes: 2 ms


class Rate(NamedTuple):
    """Thousandths of cards, and millionths of the price of an hour. `priced`: pods on nodes that have a price."""

    thousandths: int = 0
    price: int = 0
    priced: int = 0

    def plus(self, other: "Rate", sign: int = 1) -> "Rate":
        thousandths, price, priced = other
        return Rate(self.thousandths + sign * thousandths, self.price + sign * price, self.priced + sign * priced)


_NOTHING: Final = Rate()


class _Meter:
    """The rate of one key, and what it added up to since the last reading."""

    __slots__ = ("cost", "gpu_seconds", "has_price", "rate", "since")

    def __init__(self, now: float) -> None:
        self.rate, self.since = _NOTHING, now
        self.gpu_seconds = self.cost = 0.0
        self.has_price = False

    def settle(self, now: float, counting: bool) -> None:
        if counting and now > self.since:
            self.gpu_seconds += self.rate.thousandths / WHOLE * (now - self.since)
            self.cost += self.rate.price / MICRO * (now - self.since) / HOUR
            self.has_price |= self.rate.priced > 0
        self.since = max(now, self.since)


class NodeFacts(NamedTuple):
    """What the rates of all pods of a node depend on. `price` is that of all its cards, in millionths, None if it has
    none that can be read; `cards` are thousandths of cards."""

    row: int
    devices: RowDevices
    hardware: HardwareTier
    cards: int
    price: int | None


class _Held(NamedTuple):
    """What is counted for a pod, and where."""

    record: PodRecord
    fields: TenantFields
    key: UsageKey
    rate: Rate


class TenantUsage:
    """The use of GPUs by tenant. `EventHandlers` reports pods, namespaces and nodes, and the scheduling loop calls
    `settle`; no method blocks."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._pods: dict[str, _Held] = {}
        self._by_namespace, self._by_node = ChangedGroups[str](), ChangedGroups[str]()
        self._node_facts: dict[str, NodeFacts] = {}
        self._meters: dict[UsageKey, _Meter] = {}
        self._nodes_read = ledger.nodes.node_changes.mark
        self._scheduling = self._counting = False

    def start(self) -> None:
        """Lets counting begin as soon as all devices are read. Called when the process starts to schedule."""
        self._scheduling = True

    # --- changes --------------------------------------------------------------------------------------------------

    def on_pod(self, key: str, pod: Pod | None) -> None:
        """Counts a pod as the ledger has it now. Called after each change of a pod; for a pod without devices it takes
        half a microsecond."""
        record = self._ledger.pods.get(key)
        if record is None or pod is None or record.stage is not PodStage.BOUND or not holds_devices(record):
            if key in self._pods:
                self._begin_change()
                self._remove(key)
            return
        fields, held = self._ledger.nodes.tenants.fields(pod), self._pods.get(key)
        if held is not None and held.record is record and held.fields == fields:
            return
        self._begin_change()
        if held is not None:
            self._remove(key)
        self._add(key, record, fields)

    def on_namespace(self, namespace: str) -> None:
        """Notes that tenants of a namespace have changed: `settle` moves what runs there. Called after each change of
        its labels and queues."""
        self._by_namespace.changed(namespace)

    def on_node(self, node: str) -> None:
        """Notes that a node has changed: `settle` moves its pods to the hardware tier and the price that it has
        now."""
        self._node_facts.pop(node, None)
        self._by_node.changed(node)

    @property
    def busy(self) -> bool:
        """Whether pods have to be counted again because of a change that was noted."""
        return bool(self._by_namespace) or bool(self._by_node)

    def settle(self, most: int = PORTION) -> None:
        """Counts up to `most` pods again whose namespace or node has changed. Called in each turn of the loop."""
        self._begin_change()
        for groups in (self._by_namespace, self._by_node):
            for _ in range(most // 2):
                key = groups.next()
                if key is None:
                    break
                self._count_again(key)

    # --- reading --------------------------------------------------------------------------------------------------

    def drain(self) -> list[Usage]:
        """Returns what each tenant uses now and used since the last call, by falling use. Empty until counting
        begins. A pod that is due counts where it did before the change."""
        self.settle()
        if not self._counting:
            return []
        now = self._clock.now()
        found = [self._drain_meter(key, now) for key in list(self._meters)]
        return sorted(found, key=lambda usage: (-usage.gpus, -usage.gpu_seconds, usage.key))

    def _drain_meter(self, key: UsageKey, now: float) -> Usage:
        meter = self._meters[key]
        meter.settle(now, self._counting)
        cost = meter.cost if meter.has_price or meter.rate.priced else None
        usage = Usage(key, meter.rate.thousandths / WHOLE, meter.gpu_seconds, cost)
        meter.gpu_seconds = meter.cost = 0.0
        meter.has_price = False
        if meter.rate == _NOTHING:
            del self._meters[key]
        return usage

    # --- internal -------------------------------------------------------------------------------------------------

    def _begin_change(self) -> None:
        """Notes the nodes that changed since the last change here, and begins to count if it is time to."""
        changes = self._ledger.nodes.node_changes
        if changes.mark != self._nodes_read:
            rows, names = changes.rows_since(self._nodes_read), self._ledger.nodes.names
            self._nodes_read = changes.mark
            if rows is None:
                self._node_facts.clear()
                self._by_node.changed_all()
            else:
                for row in rows.tolist():
                    self.on_node(names[row])
        if self._scheduling and not self._counting and not self._ledger.has_unread_devices:
            self._counting = True
            for meter in self._meters.values():
                meter.since = self._clock.now()

    def _add(self, key: str, record: PodRecord, fields: TenantFields) -> None:
        hardware, rate = pod_rate(record, self._facts(record.node))
        usage_key = UsageKey(*self._ledger.nodes.tenants.of_fields(fields), hardware)
        self._pods[key] = _Held(record, fields, usage_key, rate)
        self._by_namespace.add(fields.namespace, key)
        self._by_node.add(record.node, key)
        self._change_meter(usage_key, rate, 1)

    def _remove(self, key: str) -> None:
        held = self._pods.pop(key)
        node = held.record.node
        self._by_namespace.remove(held.fields.namespace, key)
        self._by_node.remove(node, key)
        if node not in self._by_node:
            self._node_facts.pop(node, None)
        self._change_meter(held.key, held.rate, -1)

    def _count_again(self, key: str) -> None:
        """Moves a pod to the meter of its tenant and its node as they are now. If the node is gone, its hardware and
        its rate stay as they were until the pod is gone, too."""
        held = self._pods[key]
        hardware, rate = held.key.hardware, held.rate
        if held.record.node in self._ledger.nodes.row_of:
            hardware, rate = pod_rate(held.record, self._facts(held.record.node))
        usage_key = UsageKey(*self._ledger.nodes.tenants.of_fields(held.fields), hardware)
        if usage_key != held.key or rate != held.rate:
            self._change_meter(held.key, held.rate, -1)
            self._change_meter(usage_key, rate, 1)
            self._pods[key] = held._replace(key=usage_key, rate=rate)

    def _facts(self, node: str) -> NodeFacts:
        """Returns the facts of a node, read once after each of its changes."""
        facts, columns = self._node_facts.get(node), self._ledger.nodes
        if facts is None or facts.row != columns.row_of.get(node, -1):
            facts = self._node_facts[node] = node_facts(node, columns)
        return facts

    def _change_meter(self, key: UsageKey, rate: Rate, sign: int) -> None:
        now = self._clock.now()
        meter = self._meters.get(key)
        if meter is None:
            meter = self._meters[key] = _Meter(now)
        meter.settle(now, self._counting)
        meter.rate = meter.rate.plus(rate, sign)


def node_facts(node: str, columns: NodeColumns) -> NodeFacts:
    """Returns what the rates of a node's pods depend on."""
    row = columns.row_of.get(node, -1)
    devices = columns.devices.of_row(row)
    hardware = HardwareTier(row_tier(OneNode(columns, row))) if row >= 0 else HardwareTier.UNKNOWN
    if hardware is HardwareTier.NONE:  # another scheduler gave pods devices that no source shows
        hardware = HardwareTier.UNKNOWN
    cards = sum(card_part(device) for device in devices.node.devices)
    price = node_price(columns.labels.of_row(row)) if cards else None
    return NodeFacts(row, devices, hardware, cards, None if price is None else int(price * MICRO))


def pod_rate(record: PodRecord, facts: NodeFacts) -> tuple[HardwareTier, Rate]:
    """Returns the hardware tier of a pod's node, and what the pod takes of the node. Its part of the node's price is
    its part of the node's cards."""
    thousandths = held_thousandths(record, facts.devices)
    if facts.price is None:
        return facts.hardware, Rate(thousandths)
    return facts.hardware, Rate(thousandths, facts.price * thousandths // facts.cards, 1)


def node_price(labels: dict[str, str]) -> Decimal | None:
    """Returns what a node costs in an hour, by its label; None if it has none that can be read."""
    return read_key(gpu.COST_HOUR, labels, {}).value
