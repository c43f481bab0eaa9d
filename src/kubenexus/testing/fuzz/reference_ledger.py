"""The reference for the ledger: its expected state, in dictionaries and Python integers.

It follows the state machine in the ledger's docstring and keeps the last readable version of every object. It has no
columns, caches, caps or rows, so it is unlikely to share the ledger's errors.
"""

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.resource_claim import DeviceClass
from kubenexus.api.quantity import NANO, NANO_PER_MILLI, read_quantity
from kubenexus.api.resource_names import CPU, is_scalar
from kubenexus.api.resources import pod_requests

_BASIC = ("cpu", "memory", "ephemeral-storage")


class ReferencePod(msgspec.Struct):
    """A pod that counts on a node; `ours` if we placed it and it is not confirmed yet."""

    pod: Pod
    node: str
    ours: bool = False
    counted: dict[str, int] | None = None

    @property
    def amounts(self) -> dict[str, int]:
        if self.counted is None:
            self.counted = wanted(self.pod, status=True)
        return self.counted


class ReferenceLedger:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.placed: dict[str, ReferencePod] = {}
        self.waiting: dict[str, Pod] = {}
        self.nominated: dict[str, Pod] = {}
        self.blocked: dict[str, str] = {}
        self._on: dict[str, dict[str, ReferencePod]] = {}

    def seen(self, pod: Pod) -> None:
        """The ledger accepted the pod."""
        key = pod.key
        if pod.status.phase in ("Succeeded", "Failed"):
            return self.gone(key)
        self._other_uid(pod)
        self.blocked.pop(key, None)
        self.nominated.pop(key, None)
        if pod.spec.node_name:
            self.place(pod, pod.spec.node_name)
            return None
        if pod.status.nominated_node_name:
            self.nominated[key] = pod
        if key not in self.placed:
            self.waiting[key] = pod
        return None

    def refused(self, pod: Pod) -> None:
        """The ledger could not count the pod."""
        self._other_uid(pod)
        self.unreadable(pod.key, pod.spec.node_name)

    def unreadable(self, key: str, node: str) -> None:
        """Blocks the pod's node and drops what was known of the pod.

        A pod that we placed and that is not confirmed yet stays on its node: it may be bound at any moment.
        """
        held = self.placed.get(key)
        self.gone(key)
        if node:
            self.blocked[key] = node
        elif held is not None and held.ours:
            self.place(held.pod, held.node, ours=True)

    def gone(self, key: str) -> None:
        for table in (self.waiting, self.nominated, self.blocked):
            table.pop(key, None)
        self.take_off(key)

    def place(self, pod: Pod, node: str, *, ours: bool = False) -> None:
        self.take_off(pod.key)
        self.waiting.pop(pod.key, None)
        self.placed[pod.key] = self._on.setdefault(node, {})[pod.key] = ReferencePod(pod, node, ours)

    def take_off(self, key: str) -> None:
        held = self.placed.pop(key, None)
        if held is not None:
            del self._on[held.node][key]

    def on(self, node: str) -> list[ReferencePod]:
        return list(self._on.get(node, {}).values())

    def used(self, node: str) -> dict[str, int]:
        """Returns the exact sums of all that counts on a node, including `pods`."""
        total = {"pods": 0}
        for held in self.on(node):
            total["pods"] += 1
            for name, amount in held.amounts.items():
                total[name] = total.get(name, 0) + amount
        return total

    def _other_uid(self, pod: Pod) -> None:
        held = self.placed.get(pod.key)
        if held is not None and held.pod.metadata.uid != pod.metadata.uid:
            self.gone(pod.key)


def wanted(pod: Pod, *, status: bool) -> dict[str, int]:
    """Returns the requests of a pod in whole milli or units, without a cap."""
    exact = {name: quantity.nano for name, quantity in pod_requests(pod, status=status).items()}
    return {name: _up(name, nano) for name, nano in exact.items() if nano and (name in _BASIC or is_scalar(name))}


def offered(node: Node) -> dict[str, int]:
    """Returns the allocatable amounts of a node in the same form."""
    exact = {name: max(read_quantity(text).nano, 0) for name, text in node.status.allocatable.items()}
    return {name: _up(name, nano) for name, nano in exact.items() if name in (*_BASIC, "pods") or is_scalar(name)}


def _up(name: str, nano: int) -> int:
    return -(-nano // (NANO_PER_MILLI if name == CPU else NANO))
