"""Watches pods on connections of its own, and pairs each evicted pod with the pods that got its room."""

import ssl
import threading
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from kubenexus.base.clock import WallClock
from tests.chaos.amounts import asked_by
from tests.chaos.checker import PODS, Watcher

CLOCK = WallClock()
EVICTED = ("PreemptionByScheduler", "EvictionByEvictionAPI")


@dataclass(frozen=True)
class Evicted:
    """A pod that was told to end for another, and what it held of which node."""

    name: str
    node: str
    cpu: int
    priority: int


@dataclass
class EvictionObserver:
    """Used as a context. `evicted` are by UID."""

    host: str
    token: str
    trust: ssl.SSLContext
    evicted: dict[str, Evicted] = field(default_factory=dict)
    pods: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._watcher = Watcher(self.host, self.token, self.trust, PODS, "", self._told, self.over)
        self._watcher.start()
        if not self._watcher.listed.wait(20):
            raise TimeoutError("the observer could not list pods")
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._watcher.hang_up()
        self._watcher.join(10)

    def _told(self, kind: str, item: Mapping[str, Any], version: int) -> None:
        meta, status = item["metadata"], item.get("status") or {}
        uid = meta["uid"]
        if kind == "DELETED":
            self.pods.pop(uid, None)
        else:
            self.pods[uid] = item
        if any(each.get("reason") in EVICTED for each in status.get("conditions") or ()):
            self.evicted.setdefault(uid, Evicted(meta["name"], item["spec"]["nodeName"], *_cpu_and_priority(item)))

    def sees(self, names: Collection[str], seconds: float = 20.0) -> bool:
        """Whether pods of all these names have nodes, as soon as it has seen that."""
        deadline = CLOCK.now() + seconds
        while CLOCK.now() < deadline:
            bound = {item["metadata"]["name"] for item in list(self.pods.values()) if item["spec"].get("nodeName")}
            if bound.issuperset(names):
                return True
            self.over.wait(0.05)
        return False

    def useless(self) -> list[str]:
        """What was evicted on nodes where pods of higher priority did not take all of it. Each node was full before."""
        freed, taken = Counter[str](), Counter[str]()
        lowest = max((each.priority for each in self.evicted.values()), default=0)
        for each in self.evicted.values():
            freed[each.node] += each.cpu
        for item in self.pods.values():
            cpu, priority = _cpu_and_priority(item)
            if priority > lowest and item["spec"].get("nodeName"):
                taken[item["spec"]["nodeName"]] += cpu
        return [f"{node}: {freed[node]}m freed, {taken[node]}m taken" for node in freed if freed[node] != taken[node]]


def _cpu_and_priority(item: Mapping[str, Any]) -> tuple[int, int]:
    return asked_by(item).get("cpu", 0), item["spec"].get("priority") or 0
