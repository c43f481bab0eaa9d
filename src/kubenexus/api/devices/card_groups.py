"""How many devices a node has where no DRA driver lists them: groups of equal ones, by allocatable and by labels."""

from collections.abc import Iterable, Sequence

import msgspec

from kubenexus.api.devices.device import DeviceKind, FactSource
from kubenexus.api.devices.device_resources import DeviceResource, find_resource, resource_order
from kubenexus.api.devices.draft import Warnings
from kubenexus.api.devices.from_labels import CloudFacts, GfdFacts, ManualFacts, NfdFacts
from kubenexus.api.devices.models import NVIDIA, find_model
from kubenexus.api.keys import discovered, gpu


class CardGroup(msgspec.Struct, frozen=True, gc=False):
    """Devices of one vendor and kind. `resource` is "" if the kubelet does not offer them."""

    vendor: str
    kind: DeviceKind
    count: int
    source: FactSource
    resource: str = ""
    replicas: int = 1
    profile: str = ""


class LabelFacts(msgspec.Struct, frozen=True, gc=False):
    """What the labels and annotations of a node contain, by the agent that writes them."""

    gfd: GfdFacts
    nfd: NfdFacts
    manual: ManualFacts
    cloud: CloudFacts = CloudFacts()


def card_groups(
    allocatable: Iterable[tuple[str, int]], labels: LabelFacts, warnings: Warnings, *, with_dra: bool
) -> list[CardGroup]:
    """Returns the groups, those of resources first. `with_dra`: a DRA driver lists devices of the node, so labels of
    administrators alone make none."""
    offers = _offers(allocatable)
    several = sum(resource.kind is not DeviceKind.MIG for resource, _ in offers) > 1
    divided = any(resource.kind is DeviceKind.MIG and amount for resource, amount in offers)
    groups = [_offered(*offer, labels, warnings, several=several, divided=divided) for offer in offers]
    vendors = {group.vendor for group in groups if group.count}
    groups += (group for group in _labelled(labels) if group.vendor not in vendors)
    if not groups and not with_dra:
        groups += _manual(labels.manual)
    return [group for group in groups if group.count > 0]


def _offers(allocatable: Iterable[tuple[str, int]]) -> list[tuple[DeviceResource, int]]:
    """Returns each resource and its amount; of those that offer the same cards only one."""
    found = [(resource, amount) for name, amount in allocatable if (resource := find_resource(name)) is not None]
    found.sort(key=lambda offer: (offer[1] <= 0, resource_order(offer[0])))
    by_cards: dict[str, tuple[DeviceResource, int]] = {}
    for offer in found:
        by_cards.setdefault(offer[0].cards, offer)
    return sorted(by_cards.values(), key=lambda offer: resource_order(offer[0]))


def _offered(
    resource: DeviceResource, amount: int, labels: LabelFacts, warnings: Warnings, *, several: bool, divided: bool
) -> CardGroup:
    gfd, kind, profile, replicas = labels.gfd, resource.kind, resource.profile, 1
    if kind is DeviceKind.MIG:
        replicas = gfd.mig_replicas.get(profile, 1)
        known, said = 0, ""
    else:
        known, said = _known_count(resource.vendor, labels, several=several, divided=divided)
    if kind is DeviceKind.GPU and resource.vendor == NVIDIA:
        replicas = gfd.replicas
        if gfd.profile:
            kind, profile = DeviceKind.MIG, gfd.profile
    offered = -(-amount // replicas)
    if 0 < known < offered:
        warnings.add(f"{said} is {known}, but the kubelet offers {offered} of {resource.name}")
    source = FactSource.ALLOCATABLE
    return CardGroup(resource.vendor, kind, max(known, offered), source, resource.name, replicas, profile)


def _known_count(vendor: str, labels: LabelFacts, *, several: bool, divided: bool) -> tuple[int, str]:
    """Returns how many cards of a vendor labels count, and the label. An unhealthy card is in none of the kubelet's
    numbers. Where some cards are divided into MIG devices, labels count those cards, too, and do not help."""
    if vendor == NVIDIA and divided:
        return 0, ""
    if vendor == NVIDIA and labels.gfd.count:
        return labels.gfd.count, discovered.COUNT.key
    if labels.manual.count and not several and not divided:
        return labels.manual.count, gpu.COUNT.key
    return sum(each.count for each in labels.nfd.devices if each.vendor == vendor), discovered.PCI_DEVICE_COUNT.key


def _labelled(labels: LabelFacts) -> list[CardGroup]:
    """Returns groups of vendors that only labels of discovery agents name."""
    gfd = labels.gfd
    groups: list[CardGroup] = []
    if gfd.is_there:
        kind = DeviceKind.MIG if gfd.profile else DeviceKind.GPU
        count = gfd.count or labels.manual.count or 0
        groups.append(CardGroup(NVIDIA, kind, count, FactSource.GFD, replicas=gfd.replicas, profile=gfd.profile))
    vendors = dict.fromkeys(each.vendor for each in labels.nfd.devices)
    for vendor in vendors:
        devices = [each for each in labels.nfd.devices if each.vendor == vendor]
        if vendor == NVIDIA and gfd.is_there:
            continue
        count = sum(max(each.count, 1) for each in devices)
        if len(vendors) == 1 and labels.manual.count and not any(each.count for each in devices):
            count = labels.manual.count
        groups.append(CardGroup(vendor, devices[0].kind, count, FactSource.NFD))
    return groups


def _manual(manual: ManualFacts) -> Sequence[CardGroup]:
    """Returns the cards of which only an administrator writes. One, if their number is not set."""
    if manual.count is None and not manual.model and manual.memory <= 0:
        return ()
    model = find_model(manual.model)
    count = 1 if manual.count is None else manual.count
    kind = model.kind if model else DeviceKind.GPU
    return (CardGroup(model.vendor if model else "", kind, count, FactSource.MANUAL),)
