"""The recorded answers for one pod, typed. An unknown field is an error, so that nothing is skipped silently."""

from typing import NamedTuple

import msgspec

# Code and reasons of a refusal. Reasons are compared as a set: upstream returns some in random order.
Status = tuple[str, frozenset[str]]
# The same with the plugin.
First = tuple[str, str, frozenset[str]]


class PreFiltered(NamedTuple):
    """The result of one plugin's PreFilter: it refused the pod, or it restricted the nodes."""

    status: Status | None = None
    nodes: frozenset[str] | None = None


class _Said(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of the recorded answer."""


class RecordedPreFilter(_Said, frozen=True):
    """As `PreFiltered`; absent for a plugin that did neither."""

    status: list[str] | None = None
    nodes: list[str] | None = None

    def answer(self) -> PreFiltered:
        return PreFiltered(
            None if self.status is None else status_of(self.status),
            None if self.nodes is None else frozenset(self.nodes),
        )


class Reject(_Said, frozen=True):
    """Why a node is not feasible: the first refusal with nominated pods, and all refusals without them."""

    first: list[str]
    all: dict[str, list[str]] = {}


class Scores(_Said, frozen=True):
    """One plugin's scores, parallel to the feasible nodes."""

    raw: list[int]
    norm: list[int]


class RecordedCandidate(_Said, frozen=True):
    """A node in the dry run of preemption: its victims, the most important first, and the budgets they violate."""

    pods: list[str]
    pdb_violations: int


class RecordedPreemption(_Said, frozen=True):
    """The dry run of DefaultPreemption. `best` has several nodes only if kube-scheduler may take any of them."""

    eligible: bool
    why: str = ""
    potential_nodes: list[str] = []
    candidates: dict[str, RecordedCandidate] = {}
    not_candidates: dict[str, list[str]] = {}
    best: list[str] = []


class ExpectedPod(_Said, frozen=True):
    requests: dict[str, int]
    feasible: list[str]
    non_zero_requests: dict[str, int] = {}
    skip_filter: list[str] = []
    pre_filter: dict[str, RecordedPreFilter] = {}
    pre_filter_fail: list[str] | None = None
    pre_filter_nodes: list[str] | None = None
    rejects: dict[str, Reject] = {}
    scores: dict[str, Scores] | None = None
    skip_score: list[str] = []
    total: list[int] = []
    best: list[str] | None = None
    score_error: str = ""
    error: str = ""
    fit_error: str | None = None
    devices: dict[str, dict[str, list[list[str]]]] = {}
    preemption: RecordedPreemption | None = None


class Expected(_Said, frozen=True):
    """Keyed by `namespace/name` of the incoming pods."""

    pods: dict[str, ExpectedPod]


def status_of(said: list[str]) -> Status:
    code, *reasons = said
    return code, frozenset(reasons)


def first_of(said: list[str]) -> First:
    plugin, code, *reasons = said
    return plugin, code, frozenset(reasons)
