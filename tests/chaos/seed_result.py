"""Who is to blame: what the checker saw, held against what the proxy wrote down.

A node over capacity is a crime only of who could have known. Two schedulers that bind to one node in the same instant
cannot know of each other, and neither can one whose watch is frozen: such a race is counted and named, but it is no
breach. Our own processes must always know of each other's binds: that is what the lease is for.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.amounts import over
from tests.chaos.invariants import Breach, Overbooked
from tests.chaos.observed_cluster import PodSeen
from tests.chaos.request_log import Asked, RequestLog

REACTION: Final = 0.5  # seconds from hearing of a pod to counting it


@dataclass
class SeedResult:
    breaches: list[str] = field(default_factory=list)
    races: list[str] = field(default_factory=list)


def judged(breaches: Iterable[Breach], journal: RequestLog) -> SeedResult:
    """The checker's breaches, without those that nobody could have avoided."""
    verdict, ours = SeedResult(), _authors(journal)
    for breach in breaches:
        guilty = breach.law != Overbooked.name or _could_know(breach, journal, ours)
        (verdict.breaches if guilty else verdict.races).append(f"{breach.law}: {breach.text}")
    return verdict


def _authors(journal: RequestLog) -> dict[tuple[str, str], list[Asked]]:
    """Our binds, by the pod's UID and node."""
    found = dict[tuple[str, str], list[Asked]]()
    for asked in journal.binds:
        found.setdefault((asked.uid, asked.node), []).append(asked)
    return found


def _could_know(breach: Breach, journal: RequestLog, ours: Mapping[tuple[str, str], list[Asked]]) -> bool:
    """Whether the pods that its binder could know of were too many already."""
    pod = breach.pod
    assert pod is not None
    assert breach.has is not None
    if (pod.uid, pod.node) not in ours:
        return False  # somebody else came last
    last = ours[pod.uid, pod.node][-1]
    heard = journal.knew(last.who, last.at - REACTION)
    known = [each for each in breach.others if (each.uid, each.node) in ours or each.bound_at <= heard]
    return bool(over([pod.asks, *(each.asks for each in known)], breach.has))


def evicted_twice(journal: RequestLog) -> Iterator[str]:
    """Pods (by UID) whose eviction the API server accepted more than once."""
    accepted = Counter(asked.uid for asked in journal.evictions if 200 <= asked.answer < 300)
    names = {asked.uid: asked.pod for asked in journal.evictions}
    for uid, times in accepted.items():
        if times > 1:
            yield f"pod {names[uid]} was evicted {times} times"


# --- the lease ----------------------------------------------------------------------------------------------------


@dataclass
class Fence:
    """Writes by those who may not. `latest` is how long after its process's last renewal a write came, at most."""

    breaches: list[str] = field(default_factory=list)
    latest: float = 0.0


def fenced(journal: RequestLog, lease: float) -> Fence:
    """A write may start until the renew deadline and must have ended when the lease is over, `lease` seconds after the
    last renewal was sent: then another may lead. None may come before the first renewal, or after the lease was given
    up."""
    fence = Fence()
    renewals = dict[str, list[Asked]]()
    for asked in journal.requests:
        if asked.sort == "lease" and asked.method != "GET" and 0 < asked.code < 300:
            renewals.setdefault(asked.who, []).append(asked)
    for asked in journal.requests:
        if asked.writes:
            mine = [each for each in renewals.get(asked.who, ()) if each.at <= asked.at]
            _hold(fence, journal, asked, mine[-1] if mine else None, lease)
    return fence


def _hold(fence: Fence, journal: RequestLog, asked: Asked, renewal: Asked | None, lease: float) -> None:
    what = f"{asked.who}: {asked.method} {asked.path}"
    if renewal is None:
        fence.breaches.append(f"{what} before it led")
    elif not renewal.holder:
        fence.breaches.append(f"{what} after it gave its lease up")
    else:
        late = journal.earliest(asked.at) - renewal.at
        fence.latest = max(fence.latest, late)
        if late > lease:
            fence.breaches.append(f"{what} {late:.2f} s after its last renewal")


def seconds_led(journal: RequestLog, begin: float, end: float, lease: float) -> float:
    """For how long of this time a process of ours held the lease: from each renewal to its end, or to the next."""
    led, until = 0.0, begin
    for asked in journal.requests:
        if asked.sort == "lease" and asked.method != "GET" and asked.holder and 0 < asked.code < 300:
            since, to = max(asked.at, until), min(asked.at + lease, end)
            led, until = led + max(0.0, to - since), max(until, to)
    return led


def binds_under_another(
    journal: RequestLog, history: Iterable[PodSeen], watched: Mapping[int, str], strangers: Collection[str]
) -> Iterator[str]:
    """Binds that took effect while another process of ours held the lease, by resourceVersion.

    `history` are pods as they got their nodes; `watched` are the holders that the checker saw.
    A lease that a stranger has stolen says nothing: then only the time since the last renewal counts.
    """
    holders, identity = dict(watched), dict[str, str]()
    for asked in journal.requests:
        if asked.sort == "lease" and asked.holder:
            identity[asked.who] = asked.holder
        if asked.sort == "lease" and asked.version and asked.method != "GET":
            holders[asked.version] = asked.holder
    moments, ours = sorted(holders), _authors(journal)
    for pod in history:
        binds = ours.get((pod.uid, pod.node))
        if binds is None:
            continue
        before = bisect_right(moments, pod.bound_at)
        holder = holders[moments[before - 1]] if before else ""
        if holder not in strangers and holder not in {identity.get(each.who, "") for each in binds}:
            yield f"pod {pod.key} was bound by {binds[-1].who} while {holder or 'nobody'} held the lease"
