"""What processes use, from /proc; and what the API server was asked for, from its own /metrics.

The server's metrics do not say who asked. But only one contestant runs at a time, and whatever else asks is ours: what
we and the witness send is known and taken off.
"""

import os
import re
import ssl
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from kubenexus.testing.controlplane import ControlPlane, ManagedProcess

TICKS: Final = os.sysconf("SC_CLK_TCK")
_SAMPLE: Final = re.compile(
    r"^(apiserver_(?:request_total|response_sizes_sum|watch_events_sizes_sum|request_body_size_bytes_sum))"
    r"\{(.*)\} (\S+)$",
    re.MULTILINE,
)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
# Who renews leases and reviews tokens is the server itself, or somebody who reads /metrics.
_NOT_SCHEDULING: Final = frozenset({"leases", "tokenreviews", "subjectaccessreviews"})
_OURS: Final = frozenset({("POST", "pods"), ("POST", "nodes"), ("POST", "services"), ("DELETE", "pods")})
_DRIVER: Final = _OURS | {("DELETE", "nodes"), ("DELETE", "services"), ("PATCH", "nodes"), ("GET", "pods")}


def cpu_of(pid: int) -> float:
    """Seconds of processor time, user and system, so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_of(pid: int, what: str = "VmRSS") -> float:
    """Resident, in MB; `VmHWM` is the most it ever was."""
    return int(Path(f"/proc/{pid}/status").read_text().split(f"{what}:")[1].split()[0]) / 1024


def program(plane: ControlPlane, name: str) -> ManagedProcess:
    return next(each for each in plane.family.programs if each.name == name)


class Asked(NamedTuple):
    """So far: calls by what they were, and bytes by the way they went. Headers, encryption and the answers to writes
    are not among the bytes: the server does not count them."""

    calls: Counter[str]
    bytes: Counter[str]

    def since(self, before: "Asked") -> "Asked":
        return Asked(self.calls - before.calls, self.bytes - before.bytes)


def asked(plane: ControlPlane) -> Asked:
    """Blocks for as long as the server needs to write its page."""
    request = urllib.request.Request(f"{plane.server}/metrics", headers={"Authorization": f"Bearer {plane.token()}"})
    trust = ssl.create_default_context(cafile=str(plane.authority))
    with urllib.request.urlopen(request, timeout=60, context=trust) as answer:
        return read(answer.read().decode())


def read(page: str) -> Asked:
    calls: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for name, text, value in _SAMPLE.findall(page):
        labels, number = dict(_LABEL.findall(text)), int(float(value))
        if labels.get("resource") in _NOT_SCHEDULING:
            continue
        if name == "apiserver_request_total":
            calls[_call(labels)] += number
        elif name == "apiserver_watch_events_sizes_sum":
            sizes["watched"] += number
        elif name == "apiserver_request_body_size_bytes_sum":
            sizes["sent"] += number
        elif labels.get("verb") in ("LIST", "GET"):
            sizes["listed"] += number
    calls.pop("", None)
    return Asked(calls, sizes)


def _call(labels: dict[str, str]) -> str:
    """`binding`, `event`, `status`, `list`, `watch` or `other`; "" for what the driver of the measurement does."""
    verb, resource, part = labels.get("verb", ""), labels.get("resource", ""), labels.get("subresource", "")
    if part == "binding" or (part == "status" and resource == "pods"):
        return part
    if (verb, resource) in _DRIVER or not resource:
        return ""
    return "event" if resource == "events" else verb.lower() if verb in ("LIST", "WATCH") else "other"
