"""The devices of a node, merged from all sources field by field.

    ResourceSlices ─ complete pools ─ drafts ┐
    allocatable, labels ─── groups ── drafts ┴─ NRT ─ GFD ─ NFD ─ manual ─ cloud ─ model ─ islands ─ devices

DRA drivers name their devices and put them in order. Where no driver lists the devices of a vendor, allocatable and
labels give their number. Each source then adds the fields that no better one has. What no source knows stays unknown.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kubenexus.api.core import Node
from kubenexus.api.devices.card_groups import CardGroup, LabelFacts, card_groups
from kubenexus.api.devices.cloud_machines import machine_product
from kubenexus.api.devices.device import MAX_DEVICES, NO_DEVICES, DeviceKind, FactSource, NodeDevices
from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.api.devices.draft import Draft, Warnings
from kubenexus.api.devices.from_labels import (
    READ,
    READ_BY_OTHERS,
    LabelReader,
    check_others,
    read_cloud,
    read_gfd,
    read_manual,
    read_nfd,
)
from kubenexus.api.devices.from_slices import driver_kind, read_slices
from kubenexus.api.devices.islands import finish_islands, published_islands
from kubenexus.api.devices.merge import (
    join_cards,
    put_cloud,
    put_gfd,
    put_manual,
    put_model,
    put_nfd,
    put_zones,
    split_evenly,
)
from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.api.devices.resource_slice import ResourceSlice, complete_devices
from kubenexus.api.keys import KeyKind, discovered
from kubenexus.api.quantity import to_units
from kubenexus.base.errors import Malformed

MAX_READ: Final = 1024  # labels, and annotations, of one node about devices; further ones by name are not read
_MAX_RESOURCES: Final = 128
_MACHINE_TYPES: Final = discovered.INSTANCE_TYPE.keys
_OTHERS: Final = frozenset[str]().union(*(entry.keys for entry in READ_BY_OTHERS))


class NodeFacts(msgspec.Struct, frozen=True, gc=False):
    """What of a Node its devices are read from: nodes with equal facts have equal devices."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    allocatable: tuple[tuple[str, int], ...] = ()


NO_FACTS: Final = NodeFacts()


def _keys_read(kind: KeyKind) -> tuple[frozenset[str], tuple[str, ...]]:
    """Returns the keys that are read as labels or as annotations, and the beginnings of those with slots."""
    keys = {each.key for entry in READ for each in entry.spellings if kind in each.kind}
    slotted = {key for key in keys if "<" in key}
    return frozenset(keys - slotted), tuple(sorted({key.partition("<")[0] for key in slotted}))


_LABELS: Final = _keys_read(KeyKind.LABEL)
_ANNOTATIONS: Final = _keys_read(KeyKind.ANNOTATION)


def node_facts(node: Node) -> NodeFacts:
    """Returns the labels, annotations and resources of a node that devices are read from; `NO_FACTS` for most."""
    labels = _chosen(node.metadata.labels, *_LABELS)
    for key in _MACHINE_TYPES & labels.keys():  # nearly all nodes in clouds have one, most of them without devices
        if not machine_product(labels[key]):
            del labels[key]
    annotations = _chosen(node.metadata.annotations, *_ANNOTATIONS)
    names = [name for name in node.status.allocatable if is_device_resource(name)]
    if not (labels or annotations or names):
        return NO_FACTS
    amounts: list[tuple[str, int]] = []
    for name in sorted(names)[:_MAX_RESOURCES]:
        try:
            amounts.append((name, max(to_units(node.status.allocatable[name]), 0)))
        except Malformed:  # the ledger reports the node
            continue
    return NodeFacts(labels, annotations, tuple(amounts))


def _chosen(texts: Mapping[str, str], keys: frozenset[str], beginnings: tuple[str, ...]) -> dict[str, str]:
    chosen = {key: text for key, text in texts.items() if key in keys or key.startswith(beginnings)}
    return chosen if len(chosen) <= MAX_READ else {key: chosen[key] for key in sorted(chosen)[:MAX_READ]}


def node_devices(
    facts: NodeFacts,
    slices: Sequence[ResourceSlice] = (),
    topology: NodeResourceTopology | None = None,
    *,
    node_name: str = "",
) -> NodeDevices:
    """Returns the devices of a node.

    `slices` are all slices of the pools that have devices of the node, in any order. A pool may have devices of other
    nodes, too; then `node_name` must be given.
    """
    if not slices and facts == NO_FACTS:
        return NO_DEVICES
    warnings = Warnings()
    reader = LabelReader(facts.labels, facts.annotations, warnings)
    check_others(reader)
    if not (slices or facts.allocatable) and _OTHERS.issuperset((*facts.labels, *facts.annotations)):
        return NodeDevices(warnings=warnings.all())  # 10 µs, not 150: all CPU nodes may have the label of a fabric
    labels = LabelFacts(read_gfd(reader), read_nfd(reader), read_manual(reader), read_cloud(reader))
    pools = complete_devices([each for each in slices if driver_kind(each.spec.driver) is not None], node_name)
    warnings.add(*pools.warnings)
    drafts = read_slices(pools.devices, warnings)
    groups = card_groups(facts.allocatable, labels, warnings, with_dra=bool(drafts))
    _add_groups(drafts, groups, warnings)
    if not drafts:
        return NodeDevices(warnings=warnings.all())
    _merge(drafts, labels, topology, warnings)
    shared = labels.gfd.shared if labels.manual.shared is None else labels.manual.shared
    return NodeDevices(tuple(draft.device() for draft in drafts), shared, warnings.all())


def _merge(
    drafts: Sequence[Draft], labels: LabelFacts, topology: NodeResourceTopology | None, warnings: Warnings
) -> None:
    cards = [draft for draft in drafts if draft.kind is not DeviceKind.MIG]
    if topology is not None:
        stated = {cards[number]: zone for number, zone in labels.manual.numa.items() if number < len(cards)}
        put_zones(drafts, topology, stated, warnings)
    put_gfd(drafts, labels.gfd)
    put_nfd(drafts, labels.nfd)
    put_manual(drafts, cards, labels.manual, warnings)
    put_cloud(drafts, labels.cloud, warnings)
    split_evenly(cards, labels.nfd)
    for draft in drafts:
        put_model(draft)
    published_islands(drafts)
    join_cards(cards, labels.gfd, labels.manual, warnings)
    finish_islands(drafts)


def _add_groups(drafts: list[Draft], groups: Iterable[CardGroup], warnings: Warnings) -> None:
    """Adds the devices of groups that no DRA driver lists, and sets the resource of those that one does."""
    listed = list(drafts)
    vendors = {draft.vendor for draft in listed}
    dropped = 0
    for group in groups:
        same = [draft for draft in listed if _key(draft) == (group.vendor, group.kind, group.profile)]
        if not same and (group.resource or group.vendor not in vendors):
            room = min(group.count, MAX_DEVICES - len(drafts))
            same = [_draft(group) for _ in range(room)]
            _name(same, group, drafts)
            drafts += same
            dropped += group.count - room
        for draft in same:
            _put_resource(draft, group)
    if dropped:
        warnings.add(f"{len(drafts) + dropped} devices; the first {MAX_DEVICES} count")


def _key(draft: Draft) -> tuple[str, DeviceKind, str]:
    return draft.vendor, draft.kind, draft.text("profile")


def _draft(group: CardGroup) -> Draft:
    draft = Draft(group.kind, group.vendor, group.source)
    if group.profile:
        draft.put("profile", group.profile, group.source)
    return draft


def _put_resource(draft: Draft, group: CardGroup) -> None:
    if group.resource:
        draft.put("resource", group.resource, FactSource.ALLOCATABLE)
        if group.replicas > 1:
            draft.put("replicas", group.replicas, FactSource.GFD)


def _name(drafts: Iterable[Draft], group: CardGroup, before: Sequence[Draft]) -> None:
    """Names devices by their number among the cards of the node, MIG devices by that among those of their profile."""
    taken = {draft.text("name") for draft in before}
    mig = group.kind is DeviceKind.MIG
    stem = f"mig-{group.profile}" if mig else "gpu" if group.kind is DeviceKind.GPU else "accelerator"
    number = 0 if mig else sum(draft.kind is not DeviceKind.MIG for draft in before)
    for draft in drafts:
        while (name := f"{stem}-{number}") in taken:
            number += 1
        draft.put("name", name, group.source)
        number += 1
