"""GPU time and cost by tenant and hardware tier, integrated over time from the bound pods of the ledger.

    pod bound, ended ─▶ account of its tenant ─▶ meter of (tenant, tier, hardware tier) ─▶ `drain`: metrics
    namespace relabelled ─▶ the accounts of the namespace move to other meters
    node relabelled, its devices read ─▶ the pods on it move to other meters

A pod's bind and end cost the same however many pods there are. A namespace's change moves accounts, not pods: pods of
a namespace whose tenant depends on the same labels share one. Meters are settled when their rate changes and when they
are read.

Counting begins when this process starts to schedule and the devices of nodes are known: a standby counts nothing, so
that the counters of several replicas can be added. After a restart the counters begin at 0 with what runs then.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.devices.hardware_tier import HardwareTier
from kubenexus.api.keys import gpu
from kubenexus.api.keys.reading import read_key
from kubenexus.base.clock import Clock
from kubenexus.observe.tenant_metrics import Usage, UsageKey
from kubenexus.plugins.devices.hardware_tier import row_tier
from kubenexus.state.devices.held_gpus import card_part, held_thousandths, holds_devices
from kubenexus.state.ledger import Ledger
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord, PodStage
from kubenexus.state.tenants import TENANT_KEYS, Tenant
from kubenexus.state.view import OneNode

MICRO: Final = 10**6  # prices are integers, so that adding and removing pods leaves no rest
HOUR: Final = 3600.0


class Rate(NamedTuple):
    """Thousandths of cards, and millionths of the price of an hour. `priced`: pods on nodes that have a price."""

    thousandths: int = 0
    price: int = 0
    priced: int = 0

    def plus(self, other: "Rate", sign: int = 1) -> "Rate":
        return Rate(*[mine + sign * theirs for mine, theirs in zip(self, other, strict=True)])


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


class _Account:
    """Pods of a namespace that are of one tenant for the same reason. `pod` stands for all of them."""

    __slots__ = ("pod", "pods", "rates", "tenant")

    def __init__(self, pod: Pod, tenant: Tenant) -> None:
        self.pod, self.tenant, self.pods = pod, tenant, 0
        self.rates: dict[HardwareTier, Rate] = {}


AccountKey = tuple[str, tuple[tuple[str, str], ...]]


class _Held(NamedTuple):
    """What is counted for a pod."""

    record: PodRecord
    account: AccountKey
    hardware: HardwareTier
    rate: Rate


class TenantUsage:
    """The use of GPUs by tenant. `EventHandlers` reports pods, namespaces and nodes; no method blocks."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._pods: dict[str, _Held] = {}
        self._accounts: dict[AccountKey, _Account] = {}
        self._by_namespace: dict[str, set[AccountKey]] = {}
        self._by_node: dict[str, set[str]] = {}
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
        account, held = _account_key(pod), self._pods.get(key)
        if held is not None and held.record is record and held.account == account:
            return
        self._begin_change()
        if held is not None:
            self._remove(key)
        self._add(key, record, account, pod)

    def on_namespace(self, namespace: str) -> None:
        """Moves what runs in a namespace to the tenant that it has now. Called after each change of its labels."""
        keys = self._by_namespace.get(namespace)
        if keys:
            self._begin_change()
            self._move_accounts(keys)

    def on_node(self, node: str) -> None:
        """Moves the pods on a node to the hardware tier and the price that it has now."""
        if node in self._by_node:
            self._begin_change()
            self._move_pods(node)

    # --- reading --------------------------------------------------------------------------------------------------

    def drain(self) -> list[Usage]:
        """Returns what each tenant uses now and used since the last call, by falling use. Empty until counting
        begins."""
        self._begin_change()
        self._move_accounts(list(self._accounts))  # of tenants that depend on other objects than namespaces
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
        """Reads the nodes that changed since the last change here, and begins to count if it is time to."""
        changes = self._ledger.nodes.node_changes
        if changes.mark != self._nodes_read:
            rows = changes.rows_since(self._nodes_read)
            self._nodes_read, names = changes.mark, self._ledger.nodes.names
            changed: Iterable[str] = list(self._by_node) if rows is None else [names[row] for row in rows.tolist()]
            for node in changed:
                if node in self._by_node:
                    self._move_pods(node)
        if self._scheduling and not self._counting and not self._ledger.has_unread_devices:
            self._counting = True
            for meter in self._meters.values():
                meter.since = self._clock.now()

    def _add(self, key: str, record: PodRecord, account_key: AccountKey, pod: Pod) -> None:
        account = self._accounts.get(account_key)
        if account is None:
            account = self._accounts[account_key] = _Account(pod, self._ledger.nodes.tenants.of(pod))
            self._by_namespace.setdefault(record.namespace, set()).add(account_key)
        account.pods += 1
        hardware, rate = pod_rate(record, self._ledger.nodes)
        self._pods[key] = _Held(record, account_key, hardware, rate)
        self._by_node.setdefault(record.node, set()).add(key)
        self._charge(account, hardware, rate, 1)

    def _remove(self, key: str) -> None:
        held = self._pods.pop(key)
        account, on_node = self._accounts[held.account], self._by_node[held.record.node]
        on_node.discard(key)
        if not on_node:
            del self._by_node[held.record.node]
        self._charge(account, held.hardware, held.rate, -1)
        account.pods -= 1
        if not account.pods:
            del self._accounts[held.account]
            keys = self._by_namespace[held.account[0]]
            keys.discard(held.account)
            if not keys:
                del self._by_namespace[held.account[0]]

    def _move_pods(self, node: str) -> None:
        """Counts the pods of a node again. If the node is gone they stay as they were until they are gone, too."""
        if node not in self._ledger.nodes.row_of:
            return
        for key in self._by_node[node]:
            held = self._pods[key]
            hardware, rate = pod_rate(held.record, self._ledger.nodes)
            if (hardware, rate) != (held.hardware, held.rate):
                account = self._accounts[held.account]
                self._charge(account, held.hardware, held.rate, -1)
                self._charge(account, hardware, rate, 1)
                self._pods[key] = held._replace(hardware=hardware, rate=rate)

    def _move_accounts(self, keys: Iterable[AccountKey]) -> None:
        for key in keys:
            account = self._accounts[key]
            tenant = self._ledger.nodes.tenants.of(account.pod)
            if tenant != account.tenant:
                for hardware, rate in account.rates.items():
                    self._change_meter(UsageKey(*account.tenant, hardware), rate, -1)
                    self._change_meter(UsageKey(*tenant, hardware), rate, 1)
                account.tenant = tenant

    def _charge(self, account: _Account, hardware: HardwareTier, rate: Rate, sign: int) -> None:
        left = account.rates.get(hardware, _NOTHING).plus(rate, sign)
        if left == _NOTHING:
            account.rates.pop(hardware, None)
        else:
            account.rates[hardware] = left
        self._change_meter(UsageKey(*account.tenant, hardware), rate, sign)

    def _change_meter(self, key: UsageKey, rate: Rate, sign: int) -> None:
        now = self._clock.now()
        meter = self._meters.get(key)
        if meter is None:
            meter = self._meters[key] = _Meter(now)
        meter.settle(now, self._counting)
        meter.rate = meter.rate.plus(rate, sign)


def pod_rate(record: PodRecord, columns: NodeColumns) -> tuple[HardwareTier, Rate]:
    """Returns the hardware tier of a pod's node, and what the pod takes of the node. Its part of the node's price is
    its part of the node's cards."""
    row = columns.row_of.get(record.node, -1)
    here = columns.devices.of_row(row)
    thousandths = held_thousandths(record, here)
    hardware = HardwareTier(row_tier(OneNode(columns, row))) if row >= 0 else HardwareTier.UNKNOWN
    if hardware is HardwareTier.NONE:  # another scheduler gave it devices that no source shows
        hardware = HardwareTier.UNKNOWN
    cards = sum(card_part(device) for device in here.node.devices)
    price = node_price(columns.labels.of_row(row)) if cards else None
    if price is None:
        return hardware, Rate(thousandths)
    return hardware, Rate(thousandths, int(price * MICRO) * thousandths // cards, 1)


def node_price(labels: dict[str, str]) -> Decimal | None:
    """Returns what a node costs in an hour, by its label; None if it has none that can be read."""
    return read_key(gpu.COST_HOUR, labels, {}).value


def _account_key(pod: Pod) -> AccountKey:
    """Returns what the tenant of a pod depends on: its namespace, its own labels and annotations about tenants, its
    scheduler and its priority class."""
    meta = pod.metadata
    both = (("label", meta.labels), ("annotation", meta.annotations))
    texts = [(f"{kind} {key}", here[key]) for kind, here in both for key in sorted(TENANT_KEYS & here.keys())]
    fields = [("scheduler", pod.spec.scheduler_name), ("priority class", pod.spec.priority_class_name)]
    return meta.namespace, (*fields, *texts)
