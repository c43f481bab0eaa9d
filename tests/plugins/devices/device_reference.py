"""The rules about devices for one pod and one node, in plain Python."""

from kubenexus.api.core import Pod
from kubenexus.api.devices.device import DeviceKind
from kubenexus.api.devices.pod_needs import device_needs
from kubenexus.api.keys import gpu, tenant
from kubenexus.framework.verdict import Code
from kubenexus.testing.harness import NodeInfo
from tests.plugins.devices.device_machine import Card, Machine, Request, requests_of
from tests.plugins.reference import Reasons


class DeviceFit:
    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        machine, reasons = Machine(info), Reasons()
        for request in requests_of(pod):
            reasons += self._part(request, machine) if request.is_part else self._whole(request, machine)
        return list(dict.fromkeys(reasons))

    def _whole(self, request: Request, machine: Machine) -> Reasons:
        cards = [card for card in machine.cards if card.device.resource == request.resource]
        units = sum(max(card.share, 0) // (1000 // card.device.replicas) for card in cards if card.device.healthy)
        if not cards or units - machine.unnamed(request.resource) >= request.number:
            return []
        return [("node(s) didn't have enough free devices", Code.UNSCHEDULABLE)]

    def _part(self, request: Request, machine: Machine) -> Reasons:
        if not machine.shared:
            return [("node(s) didn't share their GPUs", Code.UNRESOLVABLE)]
        large = [card for card in machine.cards if request.names(card) and card.usable >= request.needs.share_memory]
        if len(large) < request.number:
            return [("node(s) didn't have a GPU with so much memory to share", Code.UNRESOLVABLE)]
        fitting = sum(request.can(card, True) for card in machine.cards) - machine.unnamed_cards(request)
        return (
            []
            if fitting >= request.number
            else [("node(s) didn't have enough of a shared GPU free", Code.UNSCHEDULABLE)]
        )


class VRAMScheduler:
    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        machine, reasons = Machine(info), Reasons()
        for request in requests_of(pod):
            cards = [card for card in machine.cards if request.names(card)]
            free = sum(request.can(card, machine.shared) for card in cards) - machine.unnamed_devices(request.resource)
            if not any(card.size >= 0 for card in cards):
                reasons.append(("node(s) didn't report the memory of their GPUs", Code.UNRESOLVABLE))
            elif sum(request.could(card) for card in cards) < request.number:
                reasons.append(("node(s) didn't have enough GPUs with the requested memory", Code.UNRESOLVABLE))
            elif free < request.number:
                reasons.append(("node(s) didn't have enough free GPUs with the requested memory", Code.UNSCHEDULABLE))
        return list(dict.fromkeys(reasons))

    def score_one(self, pod: Pod, info: NodeInfo) -> int:
        machine, request = Machine(info), requests_of(pod)[0]
        cards = [card.size for card in machine.cards if request.could(card)]
        if not cards:
            return 0
        percent = 100 * request.memory / min(cards)
        table = ((90, 100), (60, 80), (40, 60), (20, 30))  # bronze: the namespaces of these tests have no tier
        points = next((points for least, points in table if percent >= least), 0)
        if not points:
            return 0
        points = min(points + (10 if min(cards) >= 80 << 30 and percent >= 70 else 0), 100)
        if request.number > 1:
            free = [card for card in machine.cards if request.can(card, machine.shared)]
            for field, more in (("numa", 15), ("island", 25), ("switch", 10)):
                points += more if max(machine.joined(free, field), default=0) >= request.number else 0
        return min(points, 100)


class GPUTopology:
    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        machine, reasons = Machine(info), Reasons()
        for request in requests_of(pod):
            could = [card for card in machine.cards if request.could(card)]
            can = [card for card in could if request.can(card, machine.shared)]
            if request.needs.type:
                reasons += self._typed(request, machine, could, can)
            if request.joined:
                reasons += self._joined(request, machine, could, can)
        return list(dict.fromkeys(reasons))

    def _typed(self, request: Request, machine: Machine, could: list[Card], can: list[Card]) -> Reasons:
        if len(could) < request.number:
            return [("node(s) didn't have enough GPUs of the requested type", Code.UNRESOLVABLE)]
        free = len(can) - machine.unnamed_devices(request.resource)
        said = "node(s) didn't have enough free GPUs of the requested type"
        return [] if free >= request.number else [(said, Code.UNSCHEDULABLE)]

    def _joined(self, request: Request, machine: Machine, could: list[Card], can: list[Card]) -> Reasons:
        number = request.number
        if max(machine.joined(could), default=0) < number:
            return [(f"node(s) didn't have {number} GPUs joined by NVLink", Code.UNRESOLVABLE)]
        spare = sum(max(each - number + 1, 0) for each in machine.joined(can))
        if spare > max(machine.unnamed_devices(request.resource), 0):
            return []
        return [(f"node(s) didn't have {number} free GPUs joined by NVLink", Code.UNSCHEDULABLE)]

    def score_one(self, pod: Pod, info: NodeInfo) -> int:
        machine, several = Machine(info), [request for request in requests_of(pod) if request.number > 1]
        return min((self._close(request, machine) for request in several), default=50)

    def _close(self, request: Request, machine: Machine) -> int:
        can = [card for card in machine.cards if request.can(card, machine.shared)]
        for field, points in (("island", 100), ("switch", 70), ("numa", 60)):
            if max(machine.joined(can, field), default=0) >= request.number:
                return points
        return 30


class ResourceFragmentationScore:
    def filter_one(self, pod: Pod, info: NodeInfo) -> Reasons:
        if device_needs(pod) is None or info.node.metadata.labels.get(tenant.RESERVED_TIER.key) != "gold":
            return []
        return [("node(s) were reserved for tenants of a higher tier", Code.UNRESOLVABLE)]

    def score_one(self, pod: Pod, info: NodeInfo) -> int:
        machine, requests = Machine(info), requests_of(pod)
        if not requests:
            return 0 if any(card.device.kind is DeviceKind.GPU for card in machine.cards) else 100
        request = requests[0]
        islands = machine.islands() or [machine.cards]
        used = machine.sliced or info.node.metadata.labels.get(gpu.PRISTINE.key) == "false"
        used = used or (bool(request.resource) and machine.unnamed(request.resource) > 0)
        score = self._part if request.is_part else self._whole
        return max((score(request, machine, island, used) for island in islands), default=0)

    def _whole(self, request: Request, machine: Machine, island: list[Card], used: bool) -> int:
        total = sum(request.could(card) for card in island)
        free = sum(request.can(card, machine.shared) for card in island)
        if free < request.number:
            return 0
        if free == request.number:
            return 100
        if used or free < total:
            return 90 - (free - request.number)
        if total < 4 or not machine.islands():
            return 40
        return 20 + machine.quality // 10 if request.number > 2 and 2 * request.number < total else 0

    def _part(self, request: Request, machine: Machine, island: list[Card], used: bool) -> int:
        could = [card for card in island if request.could(card)]
        whole = all(card.free for card in could) and not used
        best = 0
        for card in machine.cards:
            if request.can(card, machine.shared) and card.share < 1000:
                rest = card.share - request.part(card)[0]
                best = max(best, 100 if rest == 0 else 90 - rest // 100)
        if any(card.share == 1000 and request.can(card, machine.shared) for card in could):
            best = max(best, 50 if not whole else 40 if len(could) < 4 or not machine.islands() else 0)
        return best
