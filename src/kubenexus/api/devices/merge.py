"""What each source adds to the drafts of a node's devices. A field that a better source has set stays."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from kubenexus.api.devices.device import UNKNOWN, DeviceKind, FactSource, Link
from kubenexus.api.devices.draft import Draft, Warnings
from kubenexus.api.devices.from_labels import CloudFacts, GfdFacts, ManualFacts, NfdFacts
from kubenexus.api.devices.islands import join
from kubenexus.api.devices.models import NVIDIA, cluster_clique, find_model, profile_memory
from kubenexus.api.devices.node_resource_topology import MAX_ZONES, NodeResourceTopology
from kubenexus.api.keys import discovered, gpu, numa
from kubenexus.api.keys.values import quoted
from kubenexus.api.quantity import to_units
from kubenexus.base.errors import Malformed, truncated

_MAX_NUMA: Final = 1023


def put_zones(
    drafts: Iterable[Draft], topology: NodeResourceTopology, stated: Mapping[Draft, int], warnings: Warnings
) -> None:
    """Gives the devices of each resource to the NUMA zones, if the zones have exactly as many. A zone only counts its
    devices: where `stated` has a zone for each device and the counts agree, these are theirs, else they are in order.
    """
    offered: dict[str, list[Draft]] = defaultdict(list)
    for draft in drafts:
        offered[draft.text("resource")].append(draft)
    zones = _zone_counts(topology, offered, warnings)
    for resource, devices in offered.items():
        replicas = devices[0].facts.get("replicas", 1)
        counts = [(zone, count // replicas) for zone, count in sorted(zones.get(resource, {}).items())]
        if sum(count for _, count in counts) != len(devices):
            continue
        by_card = [stated.get(device, UNKNOWN) for device in devices]
        if Counter(by_card) == Counter(dict(counts)):
            for device, zone in zip(devices, by_card, strict=True):
                device.put("numa", zone, FactSource.MANUAL)
            continue
        remaining = iter(devices)
        for zone, count in counts:
            for _ in range(count):
                next(remaining).put("numa", zone, FactSource.NRT)


def _zone_counts(
    topology: NodeResourceTopology, offered: Container[str], warnings: Warnings
) -> dict[str, dict[int, int]]:
    """Returns the capacity of each resource that is offered in each NUMA zone."""
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    if len(topology.zones) > MAX_ZONES:
        warnings.add(f"NodeResourceTopology: {len(topology.zones)} zones; at most {MAX_ZONES} are read")
        return counts
    for zone in topology.zones:
        number = zone.numa
        if not 0 <= number <= _MAX_NUMA:
            continue
        for resource in zone.resources:
            if resource.name not in offered or "/" not in resource.name:
                continue
            try:
                counts[resource.name][number] = max(to_units(resource.capacity), 0)
            except Malformed as error:
                where = f"NodeResourceTopology, zone {truncated(zone.name)}, {truncated(resource.name)}"
                warnings.add(f"{where}: {error}")
    return counts


def put_gfd(drafts: Iterable[Draft], gfd: GfdFacts) -> None:
    """Adds the labels of GPU Feature Discovery to NVIDIA's devices. Its memory is that of a MIG device if all are."""
    clique = cluster_clique(gfd.clique)
    for draft in drafts:
        if draft.vendor != NVIDIA:
            continue
        mig, profile = draft.kind is DeviceKind.MIG, draft.text("profile")
        memory = gfd.memory if profile == gfd.profile else UNKNOWN
        if mig and profile in gfd.mig_memory:
            memory = gfd.mig_memory[profile]
        if gfd.model:
            draft.put("model", gfd.model, FactSource.GFD)
        if memory > 0:
            draft.put("memory", memory, FactSource.GFD)
        if clique and not mig:
            draft.put("clique", clique, FactSource.GFD)


def put_nfd(drafts: Iterable[Draft], nfd: NfdFacts) -> None:
    """Adds models by PCI id: one to all devices of its vendor, several in order if their counts add up."""
    vendors: dict[str, list[Draft]] = defaultdict(list)
    for draft in drafts:
        vendors[draft.vendor].append(draft)
    for vendor, devices in vendors.items():
        known = [each for each in nfd.devices if each.vendor == vendor and each.model]
        cards = [draft for draft in devices if draft.kind is not DeviceKind.MIG]
        if len(known) == 1:
            for draft in devices:
                draft.put("model", known[0].model, FactSource.NFD)
        elif all(each.count for each in known) and sum(each.count for each in known) == len(cards):
            models = (each.model for each in known for _ in range(each.count))
            for draft, model in zip(cards, models, strict=True):
                draft.put("model", model, FactSource.NFD)


def put_manual(drafts: Sequence[Draft], cards: Sequence[Draft], manual: ManualFacts, warnings: Warnings) -> None:
    """Adds what administrators write. A model is for the devices of its vendor, the memory for whole cards."""
    model = find_model(manual.model)
    meant = [draft for draft in drafts if model is None or draft.vendor in ("", model.vendor)]
    if model is not None and not meant:
        warnings.add(f"{gpu.MODEL.key}: {quoted(manual.model)} is of {model.vendor}, but no device of the node is")
    for draft in meant if manual.model else ():
        draft.put("model", manual.model, FactSource.MANUAL)
    for draft in meant or drafts:
        if draft.kind is not DeviceKind.MIG and manual.memory > 0:
            draft.put("memory", manual.memory, FactSource.MANUAL)
    for number, zone in manual.numa.items():
        if number < len(cards):
            cards[number].put("numa", zone, FactSource.MANUAL)
        else:
            warnings.add(f"{numa.GPU.at(number).key}: the node has {len(cards)} cards, numbered from 0")
    for draft in drafts if manual.healthy is not None else ():
        if not manual.healthy:
            draft.facts.pop("healthy", None)  # a failed check is worse than a driver that knows of no fault
        draft.put("healthy", manual.healthy, FactSource.MANUAL)


def put_cloud(drafts: Iterable[Draft], cloud: CloudFacts, warnings: Warnings) -> None:
    """Adds what the cloud states about its machine to the devices of the model's vendor, the memory to whole cards. It
    adds nothing to more cards than the machine has: such cards are shares."""
    model = find_model(cloud.model)
    vendor = model.vendor if model is not None else ""
    meant = [
        draft
        for draft in drafts
        if draft.vendor in ("", vendor) or (not vendor and draft.kind is not DeviceKind.ACCELERATOR)
    ]
    cards = sum(draft.kind is not DeviceKind.MIG for draft in meant)
    if 0 < cloud.count < cards:
        problem = f"{discovered.CLOUD_COUNT.key} is {cloud.count}, but the kubelet offers {cards} cards"
        warnings.add(f"{problem}: they are shares, of a size that no label states")
        return
    for draft in meant:
        if cloud.model:
            draft.put("model", cloud.model, FactSource.CLOUD)
        if draft.kind is not DeviceKind.MIG and cloud.memory > 0:
            draft.put("memory", cloud.memory, FactSource.CLOUD)


def split_evenly(cards: Sequence[Draft], nfd: NfdFacts) -> None:
    """Spreads the cards over the NUMA nodes in order, where only the number of nodes is known."""
    for number, draft in enumerate(cards if nfd.numa_nodes else ()):
        draft.put("numa", number * nfd.numa_nodes // len(cards), nfd.numa_source)


def put_model(draft: Draft) -> None:
    """Adds what the model's name implies. A nominal size that contradicts the reported one is not of this card."""
    model = find_model(draft.text("model"))
    nominal = UNKNOWN
    if model is not None:
        draft.put("family", model.family, FactSource.MODEL)
        draft.put("vendor", model.vendor, FactSource.MODEL)
        nominal = model.memory
    if draft.kind is DeviceKind.MIG:
        nominal = profile_memory(draft.text("profile"))
    elif model is not None and model.bandwidth > 0:
        draft.put("bandwidth", model.bandwidth, FactSource.MODEL)
    reported = draft.facts.get("memory", nominal)
    # A card reports up to 9 % less than it is sold with: 14.8 GiB of a T4's 16.
    if nominal > 0 and 100 * reported <= 102 * nominal <= 102 * 115 * reported // 100:
        draft.put("nominal_memory", nominal, FactSource.MODEL)
        draft.put("memory", nominal, FactSource.MODEL)


def join_cards(cards: Sequence[Draft], gfd: GfdFacts, manual: ManualFacts, warnings: Warnings) -> None:
    """Joins cards to islands by labels and models, except those that a DRA driver publishes links of."""
    link = Link(manual.topology)
    if gfd.clique:
        join((draft for draft in cards if draft.vendor == NVIDIA), FactSource.GFD, Link.NVSWITCH)
    stated = [_members(cards, group, warnings) for group in manual.islands]
    for members in stated:
        join(members, FactSource.MANUAL, link if link is not Link.PCIE else Link.UNKNOWN)
    joined = [draft for draft in cards if "island" in draft.facts]
    if link in (Link.NVSWITCH, Link.NVLINK):
        for draft in joined:
            draft.put("link", link, FactSource.MANUAL)
    if not any(stated):
        _join_all(cards, link)
    for draft in cards:
        model = find_model(draft.text("model"))
        if "island" in draft.facts and model is not None and model.link is not Link.UNKNOWN:
            draft.put("link", model.link, FactSource.MODEL)
        if draft.facts.get("link") is Link.PCIE and draft.sources.get("bandwidth") is FactSource.MODEL:
            del draft.facts["bandwidth"], draft.sources["bandwidth"]


def _members(cards: Sequence[Draft], group: Sequence[int], warnings: Warnings) -> list[Draft]:
    """Returns the cards of a group of numbers; none if they are not GPUs of one vendor."""
    members = [cards[number] for number in group if number < len(cards)]
    if len(members) < len(group):
        warnings.add(f"{gpu.ISLANDS.key}: the node has {len(cards)} cards, numbered from 0")
    if len({draft.vendor for draft in members}) > 1 or any(draft.kind is not DeviceKind.GPU for draft in members):
        warnings.add(f"{gpu.ISLANDS.key}: only GPUs of one vendor are joined")
        return []
    return members


def _join_all(cards: Sequence[Draft], link: Link) -> None:
    """Joins all GPUs of a vendor by the label of the topology, else those whose model has a link in any machine."""
    unjoined = [draft for draft in cards if draft.kind is DeviceKind.GPU and "island" not in draft.facts]
    if link is Link.PCIE:
        for draft in unjoined:
            draft.put("link", link, FactSource.MANUAL)
        return
    if link is not Link.UNKNOWN:
        join(unjoined, FactSource.MANUAL, link)
        return
    families: dict[tuple[str, Link], list[Draft]] = defaultdict(list)
    for draft in unjoined:
        model = find_model(draft.text("model"))
        if model is not None and model.link is not Link.UNKNOWN:
            families[model.family, model.link].append(draft)
    for (_, joined), members in families.items():
        if len(members) > 1:
            join(members, FactSource.MODEL, joined)
