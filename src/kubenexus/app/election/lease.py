"""The Lease that candidates for leadership compete for (`coordination.k8s.io/v1`), and the API calls on it as data.

The object is kept as received, so that labels and other fields that are not ours survive an update.
"""

import math
from typing import Any

import msgspec

from kubenexus.api.json_outline import without_deep_parts
from kubenexus.api.keys.scheduler import SLOW_JOBS
from kubenexus.api.meta import ApiObject
from kubenexus.base.timestamps import format_micro_time
from kubenexus.client.calls import Call
from kubenexus.client.kinds import LEASES
from kubenexus.client.verbs import create, get, update
from kubenexus.config.v1 import LeaderElection

Raw = dict[str, Any]


class LeaseConfig(msgspec.Struct, frozen=True, gc=False):
    """Name and namespace of the Lease, and its durations in seconds.

    A leader that has not renewed for `renew` seconds starts no more writes, and each write ends within `write_timeout`.
    So all its writes have ended after `lease` seconds, when another candidate may begin.
    """

    namespace: str
    name: str
    lease: int = 15
    renew: float = 10.0
    retry: float = 2.0

    @staticmethod
    def of(wanted: LeaderElection) -> "LeaseConfig":
        """Returns the durations of the configuration, adjusted. `lease` is rounded up, because the API has whole
        seconds. The last second of a lease (the last third, if it is shorter than 3 s) is reserved for writes: a later
        renew deadline is cut to where that begins."""
        lease = math.ceil(wanted.lease_duration.seconds)
        return LeaseConfig(
            namespace=wanted.resource_namespace,
            name=wanted.resource_name,
            lease=lease,
            renew=min(wanted.renew_deadline.seconds, lease - min(1.0, lease / 3)),
            retry=wanted.retry_period.seconds,
        )

    @property
    def write_timeout(self) -> float:
        return self.lease - self.renew


class LeaseSpec(ApiObject):
    """The `spec` of a Lease. Other programs write it too, so every field may be missing."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None

    @property
    def holder(self) -> str:
        return self.holder_identity or ""


class Lease(msgspec.Struct, frozen=True, gc=False):
    """A Lease: `raw` is the whole object, `spec` the part that the election reads."""

    raw: Raw
    spec: LeaseSpec

    @staticmethod
    def read(body: bytes) -> "Lease":
        """Decodes a Lease. Raises `msgspec.MsgspecError` if the body is none."""
        try:
            raw = msgspec.json.decode(body, type=Raw)
        except (RecursionError, UnicodeDecodeError):  # `managedFields` may be nested deeply, with keys of any bytes
            raw = msgspec.json.decode(without_deep_parts(body).decode("utf-8", "replace"), type=Raw)
        return Lease(raw, msgspec.convert(raw.get("spec") or {}, LeaseSpec))

    @property
    def slow_jobs(self) -> str:
        """Returns the annotation that a leader wrote about slow jobs (`app.election.slow_jobs`), "" for none."""
        text = self._annotations().get(SLOW_JOBS.key)
        return text if isinstance(text, str) else ""

    def with_spec(self, spec: LeaseSpec, slow_jobs: str | None = None) -> Raw:
        """Returns the object to write, with this spec. `slow_jobs` replaces the annotation, "" removes it, None leaves
        it."""
        changed = self.raw | {"spec": (self.raw.get("spec") or {}) | msgspec.to_builtins(spec)}
        if slow_jobs is None or slow_jobs == self.slow_jobs:
            return changed
        annotations = {key: value for key, value in self._annotations().items() if key != SLOW_JOBS.key}
        if slow_jobs:
            annotations[SLOW_JOBS.key] = slow_jobs
        metadata = {key: value for key, value in self._metadata().items() if key != "annotations"}
        return changed | {"metadata": metadata | ({"annotations": annotations} if annotations else {})}

    def _metadata(self) -> Raw:
        found = self.raw.get("metadata")
        return found if isinstance(found, dict) else {}

    def _annotations(self) -> Raw:
        found = self._metadata().get("annotations")
        return found if isinstance(found, dict) else {}


def acquired_spec(identity: str, terms: LeaseConfig, now: float, old: LeaseSpec | None) -> LeaseSpec:
    """Returns the spec with which `identity` acquires the lease, or renews it if it holds the lease already."""
    mine = old is not None and old.holder == identity
    transitions = 0 if old is None else (old.lease_transitions or 0) + (not mine)
    return LeaseSpec(
        holder_identity=identity,
        lease_duration_seconds=terms.lease,
        acquire_time=(old.acquire_time if mine and old is not None else None) or format_micro_time(now),
        renew_time=format_micro_time(now),
        lease_transitions=transitions,
    )


def released_spec(now: float, old: LeaseSpec) -> LeaseSpec:
    """Returns the spec of a lease without a holder, released at `now`."""
    return LeaseSpec(
        holder_identity="",
        lease_duration_seconds=1,
        acquire_time=format_micro_time(now),
        renew_time=format_micro_time(now),
        lease_transitions=old.lease_transitions or 0,
    )


def get_call(terms: LeaseConfig) -> Call:
    return get(LEASES, terms.namespace, terms.name)


def create_call(terms: LeaseConfig, spec: LeaseSpec) -> Call:
    body = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": terms.name, "namespace": terms.namespace},
        "spec": spec,
    }
    return create(LEASES, body, terms.namespace)


def update_call(terms: LeaseConfig, lease: Lease, spec: LeaseSpec, slow_jobs: str | None = None) -> Call:
    """Returns a PUT with the resourceVersion that was read: after a concurrent write the API server refuses it with
    409."""
    return update(LEASES, terms.namespace, terms.name, lease.with_spec(spec, slow_jobs))
