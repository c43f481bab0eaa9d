"""What the live API answers, as structs. The published schema is generated from them (`schema`)."""

from typing import Any

import msgspec

from kubenexus.base.timestamps import format_time


class Document(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Times are RFC 3339, in UTC."""


class JobDocument(Document, frozen=True):
    """A job that waits, or whose binds are under way. `state` is active, backoff, unschedulable, gated or in flight.
    `why` is the last refusal of a job like it, or what keeps it from being tried. `expected_start` is known for the
    first job that lacks capacity, if the ends of other pods tell (docs/backfill.md)."""

    name: str
    namespace: str
    profile: str
    priority: int
    pods: int
    minimum: int
    gang: bool
    state: str
    attempts: int
    since: str
    why: str = ""
    expected_start: str = ""


class EtaDocument(Document, frozen=True):
    """When a job is expected to start. A start in ten is before `early`, every second one before `likely`, nine of ten
    before `late`; "" where that is not known. `basis` says what the times are based on, or why there are none. `place`
    counts the jobs of all namespaces that are tried, from 1; 0: it is not tried. `state` is that of a job, or
    `scheduled` for one that has its nodes. `waits_for` is as `why` of a job."""

    name: str
    namespace: str
    place: int
    waiting: int
    state: str
    since: str
    early: str = ""
    likely: str = ""
    late: str = ""
    basis: str = ""
    waits_for: str = ""


class QueueDocument(Document, frozen=True):
    """The jobs of a namespace that wait, by state, and their pods. `queue` is the Queue that takes them, if there are
    queues."""

    namespace: str
    tenant: str
    tier: str
    pods: int
    active: int = 0
    backoff: int = 0
    unschedulable: int = 0
    gated: int = 0
    in_flight: int = 0
    queue: str = ""


class ResourceDocument(Document, frozen=True):
    """Milli-units of cpu, bytes of memory, and units of all other resources."""

    name: str
    allocatable: int
    used: int


class NodeDocument(Document, frozen=True):
    """A node. `blocked`: a pod there cannot be read, so the node gets no others. `domains` are its topology labels."""

    name: str
    cordoned: bool
    blocked: bool
    pods: int
    resources: tuple[ResourceDocument, ...]
    domains: dict[str, str]


class DecisionDocument(Document, frozen=True):
    """A decision. `number` counts from the start of the process. `nodes` has the node of each pod that was placed.
    `evicts` are pods of the same namespace that have to go first, and `evicts_others` counts those of others."""

    number: int
    time: str
    job: str
    namespace: str
    outcome: str
    message: str
    nodes: dict[str, str] = {}
    evicts: tuple[str, ...] = ()
    evicts_others: int = 0


class JobPage(Document, frozen=True):
    """`next` is the parameter `continue` of the next page, "" on the last one."""

    items: tuple[JobDocument, ...]
    next: str = ""


class EtaPage(Document, frozen=True):
    """`time` is when the expected starts were computed."""

    time: str
    items: tuple[EtaDocument, ...]
    next: str = ""


class QueuePage(Document, frozen=True):
    items: tuple[QueueDocument, ...]
    next: str = ""


class NodePage(Document, frozen=True):
    items: tuple[NodeDocument, ...]
    next: str = ""


class DecisionPage(Document, frozen=True):
    items: tuple[DecisionDocument, ...]
    next: str = ""


class WhatIfRequest(Document, frozen=True):
    """The body of a what-if. `manifest` is YAML or JSON. `add_nodes` has nodes to copy, and how many copies."""

    manifest: str = ""
    add_nodes: dict[str, int] = {}
    remove_nodes: tuple[str, ...] = ()
    cordon: tuple[str, ...] = ()
    uncordon: tuple[str, ...] = ()


PUBLISHED: tuple[Any, ...] = (JobPage, EtaPage, QueuePage, NodePage, DecisionPage, DecisionDocument, WhatIfRequest)


def as_time(seconds: float) -> str:
    """Returns a time as documents have it; "" for none."""
    return format_time(seconds) if 0 < seconds < float("inf") else ""
