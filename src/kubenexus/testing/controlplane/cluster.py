"""A client of a test cluster: plain, blocking HTTP that shares no code with the client under test.

    cluster.apply(yaml_text)
    cluster.until("/api/v1/namespaces/e2e/pods", lambda pods: bound(pods["web"]), "web is bound")

Waits use watches: a condition is checked after each change of an object, not periodically.
"""

import http.client
import json
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import yaml

from kubenexus.base.clock import WallClock
from kubenexus.base.errors import KubeNexusError
from kubenexus.testing.controlplane.discovery import ResourceDiscovery

Object = dict[str, Any]
Objects = dict[str, Object]

MANAGER = "e2e"
CLOCK = WallClock()
NOT_READY = "storage is (re)initializing"  # with code 429, while a changed CustomResourceDefinition is taken over
NEW_KIND_SECONDS = 30.0
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class RequestRefused(KubeNexusError):
    """The server answered with an error; `status` is its Status object."""

    def __init__(self, what: str, code: int, status: Object) -> None:
        self.code = code
        self.status = status
        super().__init__(f"{what}: {code} {status.get('reason', '')}: {status.get('message', '')}")


class WaitTimeout(AssertionError):
    """The awaited condition did not become true; the message contains the objects at that time."""


class ClusterClient:
    """A client with the token of one user. It opens a connection for each request, so that restarts of the server do
    not affect it."""

    def __init__(self, server: str, token: str, trust: ssl.SSLContext) -> None:
        self._host = urllib.parse.urlsplit(server).netloc
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._trust = trust
        self._kinds = ResourceDiscovery(self.get)

    # ---- verbs -------------------------------------------------------------------------------------------------------

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None, patch: str = "") -> Any:
        """Sends one request, again while the server says that the kind is not ready. Raises RequestRefused, or OSError
        while there is no server."""
        deadline = CLOCK.now() + NEW_KIND_SECONDS
        while True:
            try:
                return self._send(method, path, body, patch)
            except RequestRefused as refused:
                if refused.status.get("message") != NOT_READY or CLOCK.now() > deadline:
                    raise
            threading.Event().wait(0.1)

    def get(self, path: str) -> Any:
        return self.send("GET", path)

    def objects(self, path: str) -> Objects:
        """Returns the objects of a collection by name, or by namespace/name if the path names no namespace."""
        return {_name(path, item): item for item in self.get(path)["items"]}

    def create(self, item: Mapping[str, Any], namespace: str = "") -> Object:
        """Creates an object of any kind."""
        return dict(self.send("POST", self._kinds.collection(item, namespace), item))

    def apply(self, text: str, namespace: str = "") -> list[Object]:
        """Applies all documents of a YAML text on the server side; `namespace` is for those without one."""
        return [self._apply(item, namespace) for item in yaml.safe_load_all(text) if item]

    def patch(self, path: str, change: Mapping[str, Any], kind: str = "merge") -> Object:
        return dict(self.send("PATCH", path, change, kind))

    def delete(self, path: str, grace: int | None = None) -> None:
        """Deletes one object, or all of a collection, at once if `grace` is 0. A missing object is not an error."""
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        try:
            self.send("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})
        except RequestRefused as refused:
            if refused.code != http.HTTPStatus.NOT_FOUND:
                raise

    def bind(self, namespace: str, pod: str, node: str) -> None:
        """Binds a pod as a scheduler would."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        self.send("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", body)

    # ---- waiting -----------------------------------------------------------------------------------------------------

    def until(
        self, path: str, condition: Callable[[Objects], bool], what: str, *, seconds: float = 20.0, selector: str = ""
    ) -> Objects:
        """Returns the objects of a collection as soon as the condition holds for them. Raises WaitTimeout.

        `selector` is part of a query: `labelSelector=app%3Dweb`, `fieldSelector=metadata.name%3Dweb`.
        """
        seen: Objects = {}
        for seen in self.states(path, seconds=seconds, selector=selector):
            if _holds(condition, seen):
                return seen
        raise WaitTimeout(f"after {seconds:g} s not true: {what}\n{_shown(path, seen)}")

    def states(self, path: str, *, seconds: float, selector: str = "") -> Iterator[Objects]:
        """Yields the objects of a collection now and after each change, for `seconds`. Lists again when a watch
        ends."""
        deadline = CLOCK.now() + seconds
        while CLOCK.now() < deadline:
            listed = self.get(f"{path}?{selector}")
            objects = {_name(path, item): item for item in listed["items"]}
            yield objects
            version = listed["metadata"]["resourceVersion"]
            for event in self._watch(f"{path}?watch=1&resourceVersion={version}&{selector}", deadline):
                if event["type"] == "ERROR":
                    break
                _change(objects, _name(path, event["object"]), event)
                yield objects

    def changes(self, path: str, *, seconds: float, known: Iterable[str] = ()) -> Iterator[tuple[str, Object | None]]:
        """Yields the objects of a collection, then each change: a name with its object, or with None if it is gone, as
        those of `known` may be at once. For collections of thousands, where `states` would look at all of them after
        each change."""
        deadline, known = CLOCK.now() + seconds, set(known)
        while CLOCK.now() < deadline:
            listed = self.get(path)
            objects = {_name(path, item): item for item in listed["items"]}
            for name in known - objects.keys():
                yield name, None
            yield from objects.items()
            known = set(objects)
            version = listed["metadata"]["resourceVersion"]
            for event in self._watch(f"{path}?watch=1&resourceVersion={version}", deadline):
                if event["type"] == "ERROR":
                    break
                name = _name(path, event["object"])
                gone = event["type"] == "DELETED"
                (known.discard if gone else known.add)(name)
                yield name, None if gone else event["object"]

    def _watch(self, path: str, deadline: float) -> Iterator[Object]:
        connection = self._connect(1.0)
        try:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            if answer.status != http.HTTPStatus.OK:
                return
            while (left := deadline - CLOCK.now()) > 0:
                connection.sock.settimeout(left)
                line = answer.readline()
                if not line:
                    return
                yield json.loads(line)
        except (TimeoutError, OSError, http.client.HTTPException, ValueError):
            return  # timed out, or cut off in the middle of a line: the caller checks the deadline
        finally:
            connection.close()

    # ---- internals ---------------------------------------------------------------------------------------------------

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, patch: str) -> Any:
        headers = {**self._headers, "Content-Type": PATCHES.get(patch, "application/json")}
        connection = self._connect(65.0)  # an API server ends a request after 60
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return _read(f"{method} {path}", answer.status, answer.read())
        finally:
            connection.close()

    def _connect(self, seconds: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, timeout=seconds, context=self._trust)

    def _apply(self, item: Object, namespace: str) -> Object:
        where = f"{self._kinds.collection(item, namespace)}/{item['metadata']['name']}"
        return dict(self.send("PATCH", f"{where}?fieldManager={MANAGER}&force=true", item, "apply"))


def _read(what: str, code: int, body: bytes) -> Any:
    if code < http.HTTPStatus.BAD_REQUEST:
        return json.loads(body)
    try:
        status = json.loads(body)
    except ValueError:
        status = {"message": body.decode(errors="replace")}
    raise RequestRefused(what, code, status if isinstance(status, dict) else {})


def _name(path: str, item: Mapping[str, Any]) -> str:
    meta = item["metadata"]
    return meta["name"] if "/namespaces/" in path or "namespace" not in meta else f"{meta['namespace']}/{meta['name']}"


def _change(objects: Objects, name: str, event: Object) -> None:
    if event["type"] == "DELETED":
        objects.pop(name, None)
    else:
        objects[name] = event["object"]


def _holds(condition: Callable[[Objects], bool], objects: Objects) -> bool:
    """Evaluates the condition. Missing objects or fields count as false."""
    try:
        return condition(objects)
    except (KeyError, IndexError):
        return False


def _shown(path: str, objects: Objects) -> str:
    """Returns name, spec and status of up to five objects, reduced to what matters for scheduling."""
    few = {name: _essence(item) for name, item in list(objects.items())[:5]}
    text = yaml.safe_dump(few, sort_keys=False) if few else "nothing\n"
    return f"{path} had {len(objects)} objects:\n{text}"


def _essence(item: Object) -> Object:
    spec = {key: value for key, value in item.get("spec", {}).items() if key in {"nodeName", "schedulerName", "taints"}}
    return {"spec": spec, "status": item.get("status", {})}
