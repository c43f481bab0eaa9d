"""A ResourceReservation as a user writes it: from the options of `kubenexus reserve create` to a manifest."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import msgspec

from kubenexus.api.codec import from_data
from kubenexus.api.reservations.request import request_of
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.base.errors import Malformed
from kubenexus.base.timestamps import format_time, parse_timestamp

API_VERSION = "scheduling.kubenexus.io/v1alpha1"


class ManifestOptions(msgspec.Struct, frozen=True):
    """What to reserve (`count` entries of `resources`), when, for whom and where. Empty fields are left out."""

    name: str
    namespace: str
    count: int = 1
    resources: Mapping[str, str] = {}
    starts_at: str = ""
    duration: str = ""
    group: str = ""
    namespaces: Sequence[str] = ()
    namespace_labels: Mapping[str, str] = {}
    pod_labels: Mapping[str, str] = {}
    tier: str = ""
    node_labels: Mapping[str, str] = {}
    tolerations: Sequence[str] = ()
    priority: int | None = None


def manifest(options: ManifestOptions) -> dict[str, Any]:
    """Returns the object. Raises Malformed if the scheduler could not use it."""
    owner = {
        "namespaces": list(options.namespaces),
        "namespaceSelector": {"matchLabels": dict(options.namespace_labels)} if options.namespace_labels else None,
        "podSelector": {"matchLabels": dict(options.pod_labels)} if options.pod_labels else None,
    }
    spec = {
        "podGroupName": options.group,
        "from": options.starts_at,
        "duration": options.duration,
        "count": options.count,
        "resources": dict(options.resources),
        "owner": {key: value for key, value in owner.items() if value},
        "tenantTier": options.tier,
        "nodeSelector": dict(options.node_labels),
        "tolerations": [_toleration(text) for text in options.tolerations],
        "priority": options.priority,
    }
    body = {
        "apiVersion": API_VERSION,
        "kind": "ResourceReservation",
        "metadata": {"name": options.name, "namespace": options.namespace},
        "spec": {key: value for key, value in spec.items() if value not in ("", {}, [], None)},
    }
    request_of(from_data(body, ResourceReservation))
    return body


def _toleration(text: str) -> dict[str, str]:
    """Parses a taint as kubectl writes it: `key=value:Effect`, `key:Effect` or `key`."""
    mark, _, effect = text.partition(":")
    key, equals, value = mark.partition("=")
    found = {"key": key, "operator": "Equal" if equals else "Exists", "value": value, "effect": effect}
    return {name: word for name, word in found.items() if word}


def start_time(text: str, now: float, zone: tzinfo | None = None) -> str:
    """Returns the time that a user means as a timestamp: `18:00` is the next time that clocks in `zone` show it, a
    timestamp is itself. Raises Malformed."""
    if not text:
        return ""
    at = parse_timestamp(text, None)
    if at is not None:
        return format_time(at)
    try:
        wanted = datetime.strptime(text, "%H:%M")
    except ValueError:
        raise Malformed(f"must be a time like 18:00 or 2026-11-17T18:00:00Z, not {text!r}", field="from") from None
    today = datetime.fromtimestamp(now, zone or UTC)
    found = today.replace(hour=wanted.hour, minute=wanted.minute, second=0, microsecond=0)
    if found.timestamp() < now:
        found += timedelta(days=1)
    return format_time(found.timestamp())
