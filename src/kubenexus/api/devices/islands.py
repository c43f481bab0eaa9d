"""Islands: which devices of a node are joined by a link better than PCIe, directly or through others."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from kubenexus.api.devices.device import DeviceKind, FactSource, Link
from kubenexus.api.devices.draft import Draft
from kubenexus.api.devices.models import AMD

Edges = set[tuple[int, int]]


def components(size: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Returns the connected component of each of `size` members, as the number of its first member."""
    first = list(range(size))
    for one, other in edges:
        roots = _root(first, one), _root(first, other)
        first[max(roots)] = min(roots)
    return [_root(first, member) for member in range(size)]


def _root(first: list[int], member: int) -> int:
    while first[member] != member:
        first[member] = member = first[first[member]]
    return member


def published_islands(drafts: Sequence[Draft]) -> None:
    """Joins devices by the domains, peers and hops that DRA drivers publish about them.

    Peers are kept only for an island in which not all are peers of all. A device without a published link keeps its
    island open for the next source.
    """
    published = [draft for draft in drafts if draft.kind is DeviceKind.GPU]
    direct, joined = _published_edges(published)
    roots = components(len(published), direct | joined)
    members: dict[int, list[int]] = defaultdict(list)
    for member, root in enumerate(roots):
        members[root].append(member)
    peers: dict[int, list[int]] = defaultdict(list)
    for one, other in sorted(direct | {(other, one) for one, other in direct}):
        peers[one].append(other)
    for island in members.values():
        if len(island) == 1 and not _published(published[island[0]]):
            continue
        complete = all(len(peers[each]) in (0, len(island) - 1) for each in island)
        _put_island([published[each] for each in island], FactSource.DRA)
        for each in island if not complete else ():
            if names := tuple(published[peer].text("name") for peer in peers[each]):
                published[each].put("peers", names, FactSource.DRA)


def _published(draft: Draft) -> bool:
    links = draft.links
    return links.domain is not None or links.peers is not None or links.hops is not None


def _published_edges(drafts: Sequence[Draft]) -> tuple[Edges, Edges]:
    """Returns pairs that are linked directly, and pairs that are in one domain or joined through others. Each pair is
    of one vendor, and its smaller number comes first."""
    direct: Edges = set()
    joined: Edges = set()
    by_name: dict[tuple[str, str], int] = {}
    by_vendor: dict[str, list[int]] = defaultdict(list)
    domains: dict[tuple[str, str], int] = {}
    for number, draft in enumerate(drafts):
        by_vendor[draft.vendor].append(number)
        for text in (draft.text("uuid"), draft.text("name")):
            by_name[draft.vendor, text] = number
    for number, draft in enumerate(drafts):
        alike = by_vendor[draft.vendor]
        if draft.links.domain is not None:
            joined.add((domains.setdefault((draft.vendor, draft.links.domain), number), number))
        for text in draft.links.peers or ():
            peer = by_name.get((draft.vendor, text))
            _add(direct, number, peer if peer is not None else _numbered(text, draft.vendor, by_name, alike))
        for index, hops in (draft.links.hops or {}).items():
            _add(direct if hops == 1 else joined, number, alike[index] if hops and index < len(alike) else None)
    return direct, joined


def _numbered(text: str, vendor: str, by_name: dict[tuple[str, str], int], alike: Sequence[int]) -> int | None:
    """Returns the device that a plain number means: the one named so, else the one at that position."""
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        return None
    named = by_name.get((vendor, f"gpu-{int(text)}"))
    return named if named is not None else alike[int(text)] if int(text) < len(alike) else None


def _add(edges: Edges, one: int, other: int | None) -> None:
    if other is not None and other != one:
        edges.add((min(one, other), max(one, other)))


def join(drafts: Iterable[Draft], source: FactSource, link: Link = Link.UNKNOWN) -> None:
    """Makes one island of the GPUs of each vendor among `drafts`, except those whose island a better source knows."""
    vendors: dict[str, list[Draft]] = defaultdict(list)
    for draft in drafts:
        if draft.kind is DeviceKind.GPU and "island" not in draft.facts:
            vendors[draft.vendor].append(draft)
    for island in vendors.values():
        _put_island(island, source, link)


def _put_island(island: Sequence[Draft], source: FactSource, link: Link = Link.UNKNOWN) -> None:
    """Sets the island, still as its first member; `finish_islands` numbers it."""
    for draft in island:
        draft.put("island", island[0], source)
        if link is not Link.UNKNOWN:
            draft.put("link", link, source)


def finish_islands(drafts: Iterable[Draft]) -> None:
    """Numbers the islands in the order of their first members, and names the link where only its presence is known."""
    numbers: dict[Draft, int] = {}
    joined = [draft for draft in drafts if "island" in draft.facts]
    for draft in joined:
        draft.facts["island"] = numbers.setdefault(draft.facts["island"], len(numbers))
    sizes = Counter(draft.facts["island"] for draft in joined)
    for draft in joined:
        if sizes[draft.facts["island"]] > 1:
            link = Link.XGMI if draft.vendor == AMD else Link.NVSWITCH if draft.text("clique") else Link.NVLINK
            draft.put("link", link, draft.sources["island"])
