"""What the proxy saw: who asked for what and when, what came back, and what each process had been told by then.

Written by the proxy's thread, read by the judges when all is over.
"""

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import msgspec

REVIEWS: Final = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "tokenreviews", "subjectaccessreviews")
VERSION: Final = re.compile(rb'"resourceVersion": ?"(\d+)"')
BIND: Final = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)/(?:binding|eviction)$")


@dataclass(slots=True)
class Asked:
    """One request. `code` is what its process was told; 0 if it was told nothing. `answer` is the server's, 0 if it was
    not passed on. `version` is of what was written."""

    who: str
    sort: str
    method: str
    path: str
    at: float
    pod: str = ""  # namespace/name, of a bind or an eviction
    uid: str = ""
    node: str = ""
    holder: str = ""  # of a lease that is written
    fault: str = ""
    code: int = 0
    answer: int = 0
    version: int = 0

    @property
    def writes(self) -> bool:
        """Whether only the leader may: reviews are questions, and the lease is how one becomes it."""
        return self.method != "GET" and self.sort not in ("lease", "review")


@dataclass
class RequestLog:
    """`told` by process: when it had heard of pods up to which resourceVersion. `beats` are moments at which the proxy
    was awake: what it saw between two of them may have come at any time in between."""

    requests: list[Asked] = field(default_factory=list)
    told: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    sorts: Counter[str] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)  # faults
    beats: list[float] = field(default_factory=list)

    def ask(self, who: str, method: str, path: str, body: bytes, at: float) -> Asked:
        sort = sort_of(method, path)
        asked = Asked(who, sort, method, path, at)
        if sort == "bind":
            said, match = msgspec.json.decode(body), BIND.search(path)
            asked.uid = said["metadata"].get("uid", "")
            asked.node, asked.pod = said["target"]["name"], "/".join(match.groups()) if match else ""
        elif sort == "evict":
            said, match = msgspec.json.decode(body), BIND.search(path)
            asked.uid = ((said.get("deleteOptions") or {}).get("preconditions") or {}).get("uid", "")
            asked.pod = "/".join(match.groups()) if match else ""
        elif sort == "lease" and body:
            asked.holder = (msgspec.json.decode(body).get("spec") or {}).get("holderIdentity") or ""
        self.sorts[sort] += 1
        if asked.writes or sort == "lease":
            self.requests.append(asked)
        return asked

    def tell(self, who: str, text: bytes, at: float) -> None:
        """Pods that a process hears of: a line of a watch, or the beginning of a list."""
        if found := VERSION.search(text):
            self.told.setdefault(who, []).append((at, int(found.group(1))))

    def knew(self, who: str, at: float) -> int:
        """Up to which resourceVersion a process had heard of pods."""
        return max((version for when, version in self.told.get(who, ()) if when <= at), default=0)

    def earliest(self, at: float) -> float:
        """When something may have come that was seen at this moment, on a machine that has too much to do."""
        before = bisect_right(self.beats, at) - 2
        return self.beats[before] if before >= 0 else at

    @property
    def binds(self) -> list[Asked]:
        return [each for each in self.requests if each.sort == "bind"]

    @property
    def evictions(self) -> list[Asked]:
        return [each for each in self.requests if each.sort == "evict"]


def sort_of(method: str, path: str) -> str:
    """What a request is for, as far as faults and judges tell them apart."""
    place, _, query = path.partition("?")
    if method == "GET":
        return _reading(place, query)
    if place.endswith("/binding"):
        return "bind"
    if place.endswith("/eviction"):
        return "evict"
    if "/leases" in place:
        return "lease"
    if place.rpartition("/")[2] in REVIEWS:
        return "review"
    return "event" if "/events" in place else "status" if place.endswith("/status") else "write"


def _reading(place: str, query: str) -> str:
    if "watch=" in query:
        return f"watch {place.rpartition('/')[2]}"
    if "/leases" in place:
        return "lease"
    return "list" if "limit=" in query or query.startswith("fieldSelector") else "get"
