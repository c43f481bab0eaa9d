"""Checks an installation: the server's version, the scheduler's permissions, its lease and clock, our own kind, and
whether nodes have the labels that placement reads."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kubenexus.api.devices.device import UNKNOWN
from kubenexus.api.gangs.levels import DEFAULT_LEVELS
from kubenexus.api.meta import ApiObject
from kubenexus.app.election.lease import Lease, LeaseConfig
from kubenexus.app.permissions import OPTIONAL_PERMISSIONS, Permission, required_permissions
from kubenexus.app.watch.informers import OPTIONAL, WATCHED_KINDS
from kubenexus.base.errors import KubeNexusError, truncated
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.client import kinds
from kubenexus.client.calls import Api, ApiError, Call
from kubenexus.client.verbs import create, get, list_call
from kubenexus.explain.cluster_dump import ClusterDump
from kubenexus.explain.text_table import text_table

OK, WARN, FAIL, UNCLEAR = "ok", "warn", "fail", "unclear"
OLDEST_MINOR = 33  # of Kubernetes 1
MAX_SKEW = 5.0  # seconds that a clock may be ahead of ours
MAX_NAMED = 5


class Check(msgspec.Struct, frozen=True):
    """The result of one check. `state`: ok, warn (something works less well), fail, or unclear (it could not be
    checked)."""

    name: str
    state: str
    text: str


class Account(msgspec.Struct, frozen=True):
    """The service account of the scheduler, and its lease in the same namespace."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


class _Version(ApiObject):
    major: str = ""
    minor: str = ""
    git_version: str = ""


class _Status(ApiObject):
    allowed: bool = False


class _Review(ApiObject):
    status: _Status = _Status()


async def check_server(api: Api, account: Account, now: float) -> list[Check]:
    """Returns what the API server says about the installation. Raises KubeNexusError if it does not answer."""
    lease = await _lease(api, account, now)
    return [await _version(api), await _rights(api, account), *lease, await _own_kind(api)]


def check_cluster(dump: ClusterDump) -> list[Check]:
    """Returns what the objects of the cluster show."""
    return [*_objects(dump), *_topology(dump), _devices(dump), *_numa(dump)]


def render_checks(checks: Sequence[Check]) -> str:
    """Returns the checks as a table."""
    rows = [(each.state.upper(), each.name, each.text) for each in checks]
    return "\n".join(text_table([("STATE", "CHECK", "FOUND"), *rows])) + "\n"


async def _version(api: Api) -> Check:
    raw = await api.send(Call("GET", "/version"))
    try:
        found = msgspec.json.decode(raw, type=_Version)
        minor = int("".join(filter(str.isdigit, found.minor)))
    except (msgspec.DecodeError, ValueError):
        return Check("version", UNCLEAR, "the server's version cannot be read")
    state = OK if (found.major, minor) >= ("1", OLDEST_MINOR) else FAIL
    needed = "" if state == OK else f"; KubeNexus needs 1.{OLDEST_MINOR} or newer"
    return Check("version", state, f"Kubernetes {truncated(found.git_version)}{needed}")


async def _rights(api: Api, account: Account) -> Check:
    """Asks the server what the scheduler's account may do."""
    terms = LeaseConfig(name=account.name, namespace=account.namespace)
    needed = required_permissions([kind for kind in WATCHED_KINDS if kind not in OPTIONAL], terms)
    wanted = [*needed, *OPTIONAL_PERMISSIONS]
    answers = await asyncio.gather(*(_allowed(api, account.user, each) for each in wanted))
    if None in answers:
        return Check("permissions", UNCLEAR, "you may not create subjectaccessreviews, so they cannot be checked")
    denied = [each for each, allowed in zip(wanted, answers, strict=True) if not allowed]
    if not denied:
        return Check("permissions", OK, f"{account.user} may do all that the scheduler calls")
    state = FAIL if any(each in needed for each in denied) else WARN
    return Check("permissions", state, f"{account.user} may not {_named(map(str, denied))}")


async def _allowed(api: Api, user: str, wanted: Permission) -> bool | None:
    attributes = {
        "verb": wanted.verb,
        "group": wanted.resource.group,
        "resource": wanted.resource.plural,
        "subresource": wanted.part,
        "namespace": wanted.namespace,
        "name": wanted.name,
    }
    groups = ["system:serviceaccounts", "system:authenticated"]
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": attributes},
    }
    try:
        return msgspec.json.decode(await api.send(create(kinds.ACCESS_REVIEWS, body)), type=_Review).status.allowed
    except (ApiError, msgspec.DecodeError):
        return None


async def _lease(api: Api, account: Account, now: float) -> list[Check]:
    try:
        spec = Lease.read(await api.send(get(kinds.LEASES, account.namespace, account.name))).spec
    except ApiError as error:
        likely = "no scheduler has led yet, it has another name, or it runs with --leader-elect=false"
        missing = f"no lease {account.namespace}/{account.name}: {likely}"
        return [Check("lease", FAIL if error.code == 404 else UNCLEAR, missing if error.code == 404 else str(error))]
    except msgspec.MsgspecError:
        return [Check("lease", UNCLEAR, "the lease cannot be read")]
    renewed = parse_timestamp(spec.renew_time or "", None)
    if not spec.holder or renewed is None:
        return [Check("lease", FAIL, "no scheduler leads")]
    age = now - renewed
    if age < -MAX_SKEW:
        skew = f"the leader's clock is {-age:.0f} s ahead of this machine's"
        return [Check("lease", OK, f"{truncated(spec.holder)} leads"), Check("clock", WARN, skew)]
    seconds = spec.lease_duration_seconds or 15
    state = OK if age <= seconds + MAX_SKEW else FAIL
    return [
        Check("lease", state, f"{truncated(spec.holder)} leads, renewed {max(age, 0):.0f} s ago (of {seconds} s)"),
        Check("clock", OK, "the lease is not renewed in the future"),
    ]


async def _own_kind(api: Api) -> Check:
    try:
        await api.send(list_call(kinds.RESOURCE_RESERVATIONS, limit=1))
    except ApiError as error:
        if error.code == 404:
            hint = "deploy/resourcereservations.yaml is not installed: there are no ResourceReservations"
            return Check("definitions", WARN, hint)
        return Check("definitions", UNCLEAR, str(error))
    return Check("definitions", OK, "ResourceReservations are served")


def _objects(dump: ClusterDump) -> list[Check]:
    problems = [*dump.problems, *dump.ledger.unread_parts.values()]
    if problems:
        return [Check("objects", WARN, f"{len(problems)} cannot be read or listed: {_named(problems)}")]
    return [Check("objects", OK, f"{len(dump.nodes)} nodes and {len(dump.pods)} pods can be read")]


def _topology(dump: ClusterDump) -> list[Check]:
    """Whether all nodes have the labels of a level, or none."""
    found: list[Check] = []
    for level in DEFAULT_LEVELS:
        without = [
            name for name, node in dump.nodes.items() if not any(key in node.metadata.labels for key in level.keys)
        ]
        if without and len(without) < len(dump.nodes):
            text = (
                f"{len(without)} of {len(dump.nodes)} nodes have no label of the level {level.name}: {_named(without)}"
            )
            found.append(Check("labels", WARN, text))
    warned = dump.ledger.take_node_warnings()
    named = [f"{node}: {'; '.join(texts)}" for node, texts in warned.items() if texts]
    found += (
        [Check("labels", WARN, f"{len(named)} nodes have labels that cannot be read: {_named(named)}")] if named else []
    )
    return found or [Check("labels", OK, "each level of the topology is on all nodes or on none")]


def _devices(dump: ClusterDump) -> Check:
    """Whether the models of all GPUs are known: memory, islands and hardware tiers follow from them."""
    devices: Callable[[str], Any] = dump.ledger.devices_of
    with_devices = {name: devices(name).devices for name in dump.nodes if devices(name).devices}
    unknown = [name for name, found in with_devices.items() if any(each.model in ("", UNKNOWN) for each in found)]
    if unknown:
        hint = "install GPU Feature Discovery, or set the labels by hand (docs/devices.md)"
        return Check("devices", WARN, f"{len(unknown)} nodes with GPUs of an unknown model: {_named(unknown)}; {hint}")
    return Check("devices", OK, f"{len(with_devices)} nodes with devices")


def _numa(dump: ClusterDump) -> list[Check]:
    """Which reports of NUMA nodes tell nothing: kubelets of these nodes are not predicted."""
    nodes = dump.ledger.nodes
    unusable = [f"{nodes.names[row]}: {why}" for row, why in sorted(nodes.numa.unusable.items())]
    if not unusable:
        return []
    text = f"{len(unusable)} nodes with a NodeResourceTopology that cannot be used: {_named(unusable)}"
    return [Check("numa", WARN, text)]


def _named(texts: Any) -> str:
    every = [truncated(str(text)) for text in texts]
    more = f" and {len(every) - MAX_NAMED} more" if len(every) > MAX_NAMED else ""
    return ", ".join(every[:MAX_NAMED]) + more


def parse_account(text: str) -> Account:
    """Parses NAMESPACE/NAME. Raises KubeNexusError."""
    namespace, _, name = text.partition("/")
    if not namespace or not name:
        raise KubeNexusError(f"expected NAMESPACE/NAME, not {text!r}")
    return Account(namespace, name)
