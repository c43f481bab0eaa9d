"""How much of the cards of its node a pod holds, in thousandths: whole cards, parts, replicas and MIG devices."""

from typing import Final

from kubenexus.api.devices.device import Device, DeviceKind
from kubenexus.api.devices.device_resources import find_resource, is_device_resource
from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.devices.mig import mig_thousandths
from kubenexus.api.resource_names import Amounts
from kubenexus.state.devices.columns import RowDevices, held_devices, unit_share
from kubenexus.state.pods import PodRecord

_PLAIN: Final = frozenset({"cpu", "memory", "ephemeral-storage"})


def holds_devices(record: PodRecord) -> bool:
    """Returns whether a pod may hold devices; for most pods after two comparisons."""
    for name, _ in record.footprint.amounts:
        if name not in _PLAIN and is_device_resource(name):
            return True
    return bool(record.device_shares)


def held_thousandths(record: PodRecord, here: RowDevices) -> int:
    """Returns what a pod holds of the devices of its node. Devices that it requests by number and that no name stands
    for count by their number. On a node that does not share its devices each counts as a unit at least: the kubelet
    gives no less, and the owner of a pod may write any share. Claims of DRA are not counted: they are not read."""
    amounts: Amounts = record.footprint.amounts
    left = {name: amount for name, amount in amounts if is_device_resource(name)}
    held = 0
    for slot, each in held_devices(record.device_shares, amounts, here):
        device = here.node.devices[slot]
        share = each.share if here.node.shared else max(each.share, unit_share(device))
        held += share * card_part(device) // WHOLE
        if device.resource in left:
            left[device.resource] -= 1
    return held + sum(number * _unit(name, here) for name, number in left.items() if number > 0)


def card_part(device: Device) -> int:
    """Returns the part of a card that a device is, in thousandths: all of it, or that of its MIG profile."""
    return mig_thousandths(device.profile, device.model) if device.kind is DeviceKind.MIG else WHOLE


def _unit(resource: str, here: RowDevices) -> int:
    """Returns what one unit of a resource is of a card: of the node's devices, else by the resource's name."""
    for device in here.node.devices:
        if device.resource == resource:
            return unit_share(device) * card_part(device) // WHOLE
    known = find_resource(resource)
    return mig_thousandths(known.profile, "") if known is not None and known.kind is DeviceKind.MIG else WHOLE
