"""The judge: watches the API server itself, over connections of its own, and holds every change against the laws.

It uses nothing of the scheduler but the time of day: neither its client nor its arithmetic. A watch that ends is taken
up where it ended; only when the server has forgotten that far back (it was restarted) the checker lists, and `gaps`
counts it: what came and went meanwhile was not seen.
"""

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import msgspec

from kubenexus.base.clock import WallClock
from tests.chaos.amounts import Amounts
from tests.chaos.invariants import Breach, laws
from tests.chaos.observed_cluster import ObservedCluster, PodSeen, node_seen, pod_seen

PAUSE = 0.05
PODS, NODES = "/api/v1/pods", "/api/v1/nodes"


class Checker:
    """`lease` is the path of the one that the schedulers on trial compete for, `groups` that of PodGroups, both "" if
    there are none. `deadline`: seconds for which a gang may have fewer members on nodes than it needs. Without `trust`
    it is plain HTTP."""

    def __init__(
        self,
        host: str,
        token: str,
        trust: ssl.SSLContext | None,
        *,
        scheduler: str,
        lease: str = "",
        groups: str = "",
        deadline: float = 300.0,
    ) -> None:
        self.cluster, self.breaches, self.gaps = ObservedCluster(), list[Breach](), 0
        self._scheduler, self._laws, self._clock = scheduler, laws(deadline), WallClock()
        self._lock, self._over = threading.Lock(), threading.Event()
        leases, _, name = lease.rpartition("/")
        kinds = [(NODES, "", self._node), (PODS, "", self._pod)]
        if groups:
            kinds.append((groups, "", self._group))
        if lease:
            kinds.append((leases, f"fieldSelector=metadata.name%3D{name}", self._lease))
        self._watchers = [Watcher(host, token, trust, *kind, self._over) for kind in kinds]

    def __enter__(self) -> Self:
        """Returns when everything has been listed once: nothing is missed from here on."""
        for watcher in self._watchers:
            watcher.start()
        for watcher in self._watchers:
            if not watcher.listed.wait(20):
                raise TimeoutError(f"the checker could not list {watcher.path}")
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for watcher in self._watchers:
            watcher.hang_up()
        for watcher in self._watchers:
            watcher.join(10)
        self.gaps = sum(watcher.lists - 1 for watcher in self._watchers)

    # --- questions ------------------------------------------------------------------------------------------------

    @property
    def bound(self) -> int:
        with self._lock:
            return self.cluster.bound

    def unsettled(self) -> list[Breach]:
        """What would be wrong if nothing changed any more."""
        with self._lock:
            return [breach for law in self._laws for breach in law.ended(self.cluster, self._scheduler)]

    def pods(self) -> list[PodSeen]:
        with self._lock:
            return list(self.cluster.pods.values())

    def free(self) -> dict[str, Amounts]:
        """What is left on each node."""
        with self._lock:
            return self.cluster.free_amounts()

    # --- what the watchers say ------------------------------------------------------------------------------------

    def _pod(self, kind: str, item: Mapping[str, Any], version: int) -> None:
        with self._lock:
            cluster, uid = self.cluster, item["metadata"]["uid"]
            cluster.now = self._clock.now()
            old = cluster.pods.get(uid)
            new = None if kind == "DELETED" else pod_seen(item, old)
            cluster.put(uid, new)
            for law in self._laws:
                self.breaches.extend(law.changed(cluster, old, new, version))

    def _node(self, kind: str, item: Mapping[str, Any], version: int) -> None:
        with self._lock:
            node = node_seen(item)
            if kind == "DELETED":
                self.cluster.nodes.pop(node.name, None)
            else:
                self.cluster.nodes[node.name] = node

    def _group(self, kind: str, item: Mapping[str, Any], version: int) -> None:
        with self._lock:
            meta, policy = item["metadata"], item["spec"].get("schedulingPolicy") or {}
            needed = 0 if kind == "DELETED" else (policy.get("gang") or {}).get("minCount", 0)
            self.cluster.minimums[f"{meta['namespace']}/{meta['name']}"] = needed

    def _lease(self, kind: str, item: Mapping[str, Any], version: int) -> None:
        with self._lock:
            holder = "" if kind == "DELETED" else item["spec"].get("holderIdentity") or ""
            self.cluster.holders[version] = holder


class Watcher(threading.Thread):
    """One kind, as changes: `told(type, object, resourceVersion)`."""

    def __init__(
        self,
        host: str,
        token: str,
        trust: ssl.SSLContext | None,
        path: str,
        selector: str,
        told: Callable[[str, Mapping[str, Any], int], None],
        over: threading.Event,
    ) -> None:
        super().__init__(name=f"checker {path}", daemon=True)
        self.path, self.listed, self.lists = path, threading.Event(), 0
        self._host, self._trust, self._selector, self._told, self._over = host, trust, selector, told, over
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._known: dict[str, Mapping[str, Any]] = {}
        self._connection: http.client.HTTPConnection | None = None

    def run(self) -> None:
        version = ""
        while not self._over.is_set():
            try:
                version = self._follow(version) if version else self._list()
            except (OSError, http.client.HTTPException, ValueError, AttributeError):
                self._over.wait(PAUSE)  # away, or it hung up in the middle of a line

    def hang_up(self) -> None:
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)  # a close alone would not wake who reads

    def _list(self) -> str:
        """All there is. What was known and is not in it is gone."""
        found = msgspec.json.decode(b"".join(self._lines(f"{self.path}?{self._selector}")))
        version = found["metadata"]["resourceVersion"]
        there = {item["metadata"]["uid"]: item for item in found["items"]}
        for uid in self._known.keys() - there.keys():
            self._told("DELETED", self._known.pop(uid), int(version))
        for item in sorted(there.values(), key=lambda item: int(item["metadata"]["resourceVersion"])):
            self._change("ADDED", item)
        self.lists += 1
        self.listed.set()
        return str(version)

    def _follow(self, version: str) -> str:
        """A watch from there to its end; how far it came, or "" if only a list helps."""
        asked = f"{self.path}?watch=1&allowWatchBookmarks=true&resourceVersion={version}&{self._selector}"
        try:
            for line in self._lines(asked):
                event = msgspec.json.decode(line)
                if event["type"] == "ERROR":
                    return ""
                if event["type"] != "BOOKMARK":
                    self._change(event["type"], event["object"])
                version = event["object"]["metadata"]["resourceVersion"]
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            self._over.wait(PAUSE)
        return version

    def _change(self, kind: str, item: Mapping[str, Any]) -> None:
        meta = item["metadata"]
        if kind == "DELETED":
            self._known.pop(meta["uid"], None)
        else:
            self._known[meta["uid"]] = {"metadata": meta, **{k: item[k] for k in ("spec", "status") if k in item}}
        self._told(kind, item, int(meta["resourceVersion"]))

    def _call(self) -> http.client.HTTPConnection:
        if self._trust is None:
            return http.client.HTTPConnection(self._host, timeout=90)
        return http.client.HTTPSConnection(self._host, timeout=90, context=self._trust)

    def _lines(self, path: str) -> Iterator[bytes]:
        self._connection = connection = self._call()
        try:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            if answer.status == http.HTTPStatus.GONE:
                yield b'{"type": "ERROR"}'
                return
            if answer.status != http.HTTPStatus.OK:
                raise http.client.HTTPException(f"{path}: {answer.status}")
            while line := answer.readline():
                yield line
        finally:
            connection.close()
