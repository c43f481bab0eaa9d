"""What is noted every few seconds of a soak: the process as the system sees it, and what it says about itself."""

import re
import ssl
import urllib.request
from itertools import pairwise
from pathlib import Path

import msgspec

_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LAG = "kubenexus_loop_lag_seconds"
QUEUES = ("active", "backoff", "unschedulable", "gated")


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """At `seconds` after the beginning, when `done` pods had lived and died. `lag_ms` is the longest of the interval,
    as the upper bound of its bucket."""

    seconds: float
    done: int
    rss_mb: float
    cpu_s: float
    lag_ms: float
    queues: dict[str, int]
    known_pods: int
    known_nodes: int
    binding: int
    events_dropped: int


class Page:
    """The text of `/metrics`, read."""

    def __init__(self, text: str) -> None:
        self._values = {(name, labels): float(value) for name, labels, value in _SAMPLE.findall(text)}

    def value(self, name: str, label: str = "") -> float:
        """The sum over all whose labels contain this."""
        return sum(value for (each, labels), value in self._values.items() if each == name and label in labels)

    def queues(self) -> dict[str, int]:
        return {queue: int(self.value("scheduler_pending_pods", f'queue="{queue}"')) for queue in QUEUES}

    def lag_buckets(self) -> list[tuple[float, float]]:
        """Upper bounds in seconds, and how often the loop was at most so late."""
        found = [(labels, value) for (name, labels), value in self._values.items() if name == f"{LAG}_bucket"]
        return sorted((float(labels.split('"')[1].replace("+Inf", "inf")), value) for labels, value in found)


def longest_lag(before: Page, now: Page) -> float:
    """The bound under which the loop stayed between two pages, in seconds; 0 if it was not looked at."""
    earlier = dict(before.lag_buckets())
    grown = [(bound, count - earlier.get(bound, 0.0)) for bound, count in now.lag_buckets()]
    steps = [(bound, count - below) for (_, below), (bound, count) in pairwise([(0.0, 0.0), *grown])]
    return max((bound for bound, count in steps if count > 0), default=0.0)


def read_page(address: str, token: str) -> Page:
    """Blocks. The certificate is made at the scheduler's start and nobody vouches for it; it is our own child."""
    trust = ssl._create_unverified_context()
    request = urllib.request.Request(f"{address}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
        return Page(answer.read().decode())


def memory_of(pid: int) -> float:
    """Resident, in MB."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def sample(page: Page, before: Page, pid: int, seconds: float, done: int) -> Sample:
    return Sample(
        seconds=round(seconds, 1),
        done=done,
        rss_mb=round(memory_of(pid), 1),
        cpu_s=page.value("process_cpu_seconds_total"),
        lag_ms=1000 * longest_lag(before, page),
        queues=page.queues(),
        known_pods=int(page.value("scheduler_cache_size", 'type="pods"')),
        known_nodes=int(page.value("scheduler_cache_size", 'type="nodes"')),
        binding=int(page.value("scheduler_goroutines", 'operation="binding"')),
        events_dropped=int(page.value("kubenexus_events_dropped_total")),
    )
