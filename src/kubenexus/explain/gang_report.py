"""The gangs of a cluster: how many members each has, where they are, and the topology that it asks for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import GangDeclaration, TopologyRequest
from kubenexus.api.gangs.levels import TopologyLevel
from kubenexus.api.gangs.resolver import Gang, declared_gang, merge_gangs, resolve_gang
from kubenexus.app.http.api.documents import Document, as_time
from kubenexus.app.http.api.pages import PageQuery, page_of
from kubenexus.base.errors import Malformed
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.explain.text_table import text_table
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import is_finished

MAX_PODS: Final = 10_000  # of one gang whose nodes are listed
MAX_DOMAINS: Final = 32  # of one level that are named
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))


class GangPod(NamedTuple):
    """A live pod that declares a gang. `since`: when it was created."""

    key: str
    claim: GangDeclaration
    since: float | None
    priority: int = 0


class GangDocument(Document, frozen=True):
    """A gang. `state` is one of

    Forming   fewer members exist than must start together, or the object that the gang names does not exist
    Pending   no member has a node
    Degraded  fewer members have a node than must start together
    Partial   enough have a node, others wait
    Running   all members have a node

    `topology` is what the gang asks for, `domains` where its members are: by level, from the outside in. `nodes` has
    the node of each member, "" for one that waits; `more` counts the members beyond those.
    """

    name: str
    namespace: str
    members: int
    minimum: int
    placed: int
    state: str
    priority: int
    topology: str
    domains: dict[str, tuple[str, ...]]
    since: str
    why: str = ""
    nodes: dict[str, str] = {}
    more: int = 0


class GangPage(Document, frozen=True):
    """`next` is the parameter `continue` of the next page, "" on the last one."""

    items: tuple[GangDocument, ...]
    next: str = ""


def declared_pods(pods: Iterable[Pod]) -> Iterator[GangPod]:
    """Yields the live pods that declare a gang. A declaration that cannot be read is no gang."""
    for pod in pods:
        if pod.metadata.deletion_timestamp or is_finished(pod):
            continue
        try:
            claim = declared_gang(pod)
        except Malformed:
            continue
        if claim is not None:
            since = parse_timestamp(pod.metadata.creation_timestamp, None)
            yield GangPod(pod.key, claim, since, pod.spec.priority)


def gang_documents(
    pods: Iterable[GangPod],
    ledger: Ledger,
    levels: Sequence[TopologyLevel],
    namespace: str,
    why: Mapping[str, str],
) -> list[GangDocument]:
    """Returns the gangs of a namespace, or ("") of all, by name. `why` has the reasons of those that wait, by key."""
    gangs: dict[str, list[GangPod]] = {}
    for pod in pods:
        if namespace in ("", pod.key.partition("/")[0]):
            gangs.setdefault(pod.claim.key, []).append(pod)
    found = (_document(members, ledger, levels, why) for members in gangs.values())
    return sorted((each for each in found if each is not None), key=lambda each: (each.namespace, each.name))


def gang_page(gangs: list[GangDocument], query: PageQuery, name: str = "", *, nodes: bool = True) -> GangPage:
    """Returns a page of gangs, or those with this name. Only with `nodes` their domains, which are labels of nodes."""
    found = [each for each in gangs if name in ("", each.name)]
    if not nodes:
        found = [msgspec.structs.replace(each, domains={}) for each in found]
    if name:
        return GangPage(tuple(found[: query.limit]))
    some, after = page_of(found, lambda each: f"{each.namespace}/{each.name}", query)
    return GangPage(tuple([msgspec.structs.replace(each, nodes={}, more=each.members) for each in some]), after)


def _document(
    members: list[GangPod], ledger: Ledger, levels: Sequence[TopologyLevel], why: Mapping[str, str]
) -> GangDocument | None:
    claim, reason = members[0].claim, ""
    try:
        different = {id(each.claim): each.claim for each in members}.values()
        gang = merge_gangs([resolve_gang(each, ledger.groups) for each in different])
    except Malformed as problem:
        gang, reason = Gang(claim.key, claim.display_name, claim.minimum, claim.topology), str(problem)
    if gang.is_trivial and not reason:
        return None
    nodes = {each.key: _node(ledger, each.key) for each in sorted(members)}
    placed = sum(map(bool, nodes.values()))
    ages = [each.since for each in members if each.since is not None]
    shown = dict(list(nodes.items())[:MAX_PODS])
    return GangDocument(
        claim.display_name.partition("/")[2],
        claim.key.partition("/")[0],
        len(nodes),
        gang.minimum,
        placed,
        _state(gang, len(nodes), placed, reason),
        max(each.priority for each in members),
        topology_text(gang.topology),
        _domains(ledger, set(nodes.values()) - {""}, levels),
        as_time(min(ages, default=0.0)),
        reason or gang.missing_object or why.get(claim.key, ""),
        shown,
        len(nodes) - len(shown),
    )


def _node(ledger: Ledger, key: str) -> str:
    record = ledger.pods.get(key)
    return "" if record is None else record.node


def _state(gang: Gang, members: int, placed: int, problem: str) -> str:
    if placed == members and placed >= gang.minimum:
        return "Running"
    if placed:
        return "Partial" if placed >= gang.minimum else "Degraded"
    return "Forming" if problem or gang.missing_object or members < gang.minimum else "Pending"


def topology_text(wanted: TopologyRequest) -> str:
    """Returns `rack`, or `rack (preferred)`, or ""."""
    if wanted.required:
        return wanted.required
    return f"{wanted.preferred} (preferred)" if wanted.preferred else ""


def _domains(ledger: Ledger, nodes: set[str], levels: Sequence[TopologyLevel]) -> dict[str, tuple[str, ...]]:
    """Returns the domains that the nodes are in, by level, from the outside in. Nodes themselves are no level here."""
    columns, found = ledger.nodes, dict[str, set[str]]()
    for row in [columns.row_of[name] for name in nodes if name in columns.row_of]:
        labels = columns.labels.of_row(row)
        for level in levels[:0:-1]:
            value = next((labels[key] for key in level.keys if labels.get(key)), "")
            if value:
                found.setdefault(level.name, set()).add(value)
    return {level.name: tuple(sorted(found[level.name])[:MAX_DOMAINS]) for level in levels[::-1] if level.name in found}


# --- as text ----------------------------------------------------------------------------------------------------------


def render_gangs(gangs: Sequence[GangDocument], now: float, *, namespaces: bool, wide: bool = False) -> str:
    """Returns a table as kubectl prints it. `wide` adds the priority, the domains and the reason."""
    if not gangs:
        return "No gangs found.\n"
    head = ["NAME", "MEMBERS", "MIN", "PLACED", "STATE", "TOPOLOGY", "AGE"]
    rows = [[*head, "PRIORITY", "DOMAINS", "WHY"] if wide else head]
    for each in gangs:
        row = [each.name, str(each.members), str(each.minimum), str(each.placed), each.state, each.topology or "<none>"]
        row.append(age_text(now, each.since))
        rows.append([*row, str(each.priority), _places(each), each.why or "<none>"] if wide else row)
    if namespaces:
        names = ["NAMESPACE", *(each.namespace for each in gangs)]
        rows = [[name, *row] for name, row in zip(names, rows, strict=True)]
    lines = text_table(rows)
    return "".join("".join(each if each.isprintable() else "?" for each in line) + "\n" for line in lines)


def _places(gang: GangDocument) -> str:
    """Returns `zone=a,rack=r1`; of several domains of a level their number."""
    named = [
        f"{level}={names[0]}" if len(names) == 1 else f"{len(names)} {level}s" for level, names in gang.domains.items()
    ]
    return ",".join(named) or "<none>"


def age_text(now: float, since: str) -> str:
    """Returns an age as kubectl writes it: `42s`, `17m`, `5h`, `3d`."""
    began = parse_timestamp(since, None)
    if began is None:
        return "<unknown>"
    seconds = max(0, int(now - began))
    if seconds < 120:
        return f"{seconds}s"
    length, unit = next(each for each in _UNITS if seconds >= 2 * each[0])
    return f"{seconds // length}{unit}"


def report_data(gangs: Sequence[GangDocument]) -> object:
    """Returns the gangs for JSON and YAML."""
    return {"items": msgspec.to_builtins(gangs)}
