"""A node with its cards and a pod with its requests, as plain lists: what the references of the rules look at."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.devices.device import UNKNOWN, Device, DeviceKind, Link
from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.api.devices.device_share import held_shares
from kubenexus.api.devices.pod_needs import DeviceNeeds, device_needs
from kubenexus.testing.harness import NodeInfo
from tests.plugins.reference import asked, offered, taken

DRIVER = 512 << 20
QUALITY = {Link.NVSWITCH: 100, Link.NVLINK: 80, Link.XGMI: 80, Link.PCIE: 50, Link.UNKNOWN: 30}


class Card(NamedTuple):
    """A card of a node: what of it pods leave, in thousandths and bytes."""

    device: Device
    share: int
    memory: int

    @property
    def usable(self) -> int:
        return max(0, self.device.memory - DRIVER)

    @property
    def size(self) -> int:
        """The memory of the card as users state it."""
        nominal, memory = self.device.nominal_memory, self.device.memory
        return nominal if memory == UNKNOWN or nominal > memory >= nominal * 9 / 10 else memory

    @property
    def free(self) -> bool:
        """Whether one more unit can be taken."""
        return self.device.healthy and self.share >= 1000 // self.device.replicas


class Request(NamedTuple):
    resource: str
    number: int
    needs: DeviceNeeds

    @property
    def is_part(self) -> bool:
        return bool(self.needs.share or self.needs.share_memory)

    @property
    def joined(self) -> bool:
        return self.number > 1 and (self.needs.link == "required" or self.needs.bandwidth > 0)

    @property
    def memory(self) -> int:
        return self.needs.card_memory or -(-self.needs.card_memory_total // self.number)

    def names(self, card: Card) -> bool:
        """Whether the card is of the resource; without one, whether it is a GPU."""
        return card.device.resource == self.resource if self.resource else card.device.kind is DeviceKind.GPU

    def could(self, card: Card) -> bool:
        """Whether the card could serve if nothing were taken."""
        device, needs = card.device, self.needs
        words = f"{device.vendor} {device.family} {device.model} {device.kind}".lower().replace("-", " ").split()
        typed = all(word in words for word in needs.type.split("-") if word)
        fast = device.bandwidth >= needs.bandwidth or self.number == 1 or not needs.bandwidth
        large = not self.memory or card.size >= self.memory
        return self.names(card) and device.healthy and large and typed and fast

    def can(self, card: Card, shared: bool) -> bool:
        """Whether the card can serve now."""
        if not self.is_part:
            return self.could(card) and card.free
        share, memory = self.part(card)
        return self.could(card) and shared and card.share >= share and card.memory >= memory

    def part(self, card: Card) -> tuple[int, int]:
        share, memory = self.needs.share, self.needs.share_memory
        if share:
            return share, memory or share * card.usable // 1000
        return (-(-memory * 1000 // card.usable) if card.usable else 1001), memory


class Machine:
    """A node, its cards and what is not known about them."""

    def __init__(self, info: NodeInfo) -> None:
        node = info.cluster.devices.get(info.node.metadata.name)
        self.info, self.shared = info, bool(node and node.shared and node.devices)
        self.devices = node.devices if node else ()
        left = {device.name: [1000, max(0, device.memory - DRIVER)] for device in self.devices}
        self.named: dict[str, int] = {}
        for pod in info.pods:
            for device, take in self._counted(pod):
                left[device.name][0] -= take.share
                left[device.name][1] -= take.memory
                if asked(pod, status=True).get(device.resource):
                    self.named[device.resource] = self.named.get(device.resource, 0) + 1
        self.cards = [Card(device, *left[device.name]) for device in self.devices]
        self.sliced = any(device.replicas > 1 for device in self.devices)
        self.quality = max((QUALITY[device.link] for device in self.devices), default=0)

    def _counted(self, pod: Pod) -> Iterable[tuple[Device, Any]]:
        """What a pod holds: no more of a resource than it requests, and of others only where cards are shared."""
        rights = asked(pod, status=True)
        by_name = {device.name: device for device in self.devices}
        for take in held_shares(pod):
            device = by_name.get(take.device)
            if device is None:
                continue
            if not device.resource:
                yield device, take
            elif rights.setdefault(device.resource, int(self.shared)) > 0:
                rights[device.resource] -= 1
                yield device, take

    def unnamed(self, resource: str) -> int:
        """Units that are taken or missing on cards that are not known."""
        if not any(device.resource == resource for device in self.devices):
            return 0
        there = sum(device.replicas for device in self.devices if device.resource == resource and device.healthy)
        used = taken(self.info, resource) if _is_offered(resource, self.info) else 0
        in_kubelet = offered(self.info).get(resource, 0)
        sick = sum(device.replicas for device in self.devices if device.resource == resource and not device.healthy)
        if in_kubelet > there:  # some of what it offers may be unhealthy cards
            in_kubelet = max(there, in_kubelet - sick)
        return used - self.named.get(resource, 0) + there - in_kubelet

    def unnamed_devices(self, resource: str) -> int:
        """The same as cards; under time slicing replicas are counted instead."""
        return 0 if self.sliced else self.unnamed(resource)

    def unnamed_cards(self, request: Request) -> int:
        names = {device.resource for device in self.devices} - {""}
        return sum(max(self.unnamed(name), 0) for name in ([request.resource] if request.resource else names))

    def groups(self, field: str) -> list[list[Card]]:
        """The cards that share an island, a switch or a NUMA node: two or more."""
        found: dict[int, list[Card]] = {}
        for card in self.cards:
            number = getattr(card.device, field)
            if number != UNKNOWN and (field != "island" or card.device.link in (Link.NVSWITCH, Link.NVLINK)):
                found.setdefault(number, []).append(card)
        return [group for group in found.values() if len(group) > 1]

    def islands(self) -> list[list[Card]]:
        return self.groups("island")

    def joined(self, cards: Sequence[Card], field: str = "island") -> list[int]:
        """How many of these cards are together in each group; in islands without links through others."""
        return [
            largest_component([card.device for card in group if card in cards])
            if field == "island" and any(each.device.peers for each in self.cards)
            else sum(card in cards for card in group)
            for group in self.groups(field)
        ]


def _is_offered(resource: str, info: NodeInfo) -> bool:
    """Whether any node offers the resource: else its use is not counted, since no pod could be placed for it."""
    return any(offered(each).get(resource) for each in info.cluster.infos().values())


def largest_component(devices: list[Device]) -> int:
    """The most devices that are linked with each other without others; one without peers is linked with all."""
    left, largest = {device.name: device for device in devices}, 0
    while left:
        reached = [left.pop(next(iter(left)))]
        for each in reached:
            near = [name for name, other in left.items() if _linked(each, other)]
            reached += [left.pop(name) for name in near]
        largest = max(largest, len(reached))
    return largest


def _linked(one: Device, other: Device) -> bool:
    return not one.peers or not other.peers or other.name in one.peers


def requests_of(pod: Pod) -> list[Request]:
    needs = device_needs(pod)
    if needs is None:
        return []
    numbers = [
        (name, number) for name, number in asked(pod, status=False).items() if number and is_device_resource(name)
    ]
    if not numbers and (needs.share or needs.share_memory):
        numbers = [("", 1)]
    return [Request(name, number, needs) for name, number in sorted(numbers)]
