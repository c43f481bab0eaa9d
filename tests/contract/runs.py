"""A sequence of operations on one server, and everything it had to say."""

import itertools
import json
from collections import Counter
from typing import Any, NamedTuple

from tests.contract.api import Api
from tests.contract.http import Answer, Http
from tests.contract.operations import KINDS, Operation, made
from tests.contract.projection import projected

_NUMBERS = itertools.count(1)
LAST = "zz-last"
Covered = Counter[tuple[str, str, int]]


class Outcome(NamedTuple):
    """What the server said to one operation."""

    operation: Operation
    code: int
    reason: str
    content: Any


class Told(NamedTuple):
    """All that a sequence brought about. Two servers must agree on it."""

    outcomes: list[Outcome]
    events: dict[str, list[tuple[str, str, Any]]]
    lists: dict[str, list[Any]]


class Run:
    """One sequence on one server, in a namespace of its own; nodes are told apart by a label."""

    def __init__(self, http: Http) -> None:
        self.api = Api(http, f"run-{next(_NUMBERS)}")
        self._http = http
        self._versions: dict[str, str] = {}
        self._first: dict[tuple[str, str], str] = {}
        self.raw: list[Answer] = []
        assert http.ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.api.namespace}}).code == 201

    def tell(self, sequence: list[Operation]) -> Told:
        before = {kind: self.api.version(kind) for kind in KINDS}
        outcomes = [self._do(operation) for operation in sequence]
        for kind in KINDS:
            self.api.post(kind, self._own(kind, made(kind, LAST, "red", 0))).ok(201)
        events = {kind: self._events(kind, before[kind], f"run={self.api.namespace}") for kind in KINDS}
        events["red pods"] = self._events("pods", before["pods"], "color=red")
        return Told(outcomes, events, {kind: self._listed(kind) for kind in KINDS})

    def close(self) -> None:
        """Leaves nothing behind."""
        for kind in KINDS:
            self.api.delete(kind, f"labelSelector=run%3D{self.api.namespace}", gracePeriodSeconds=0)
            for item in self._items(kind):
                path = f"{kind}/{item['metadata']['name']}"
                self.api.patch(path, {"metadata": {"finalizers": None}})
                self.api.delete(path, gracePeriodSeconds=0)
        name = self.api.namespace
        self.api.delete(f"namespaces/{name}")
        self.api.put(f"namespaces/{name}/finalize", {"metadata": {"name": name}, "spec": {"finalizers": []}})

    # ---- one operation -----------------------------------------------------------------------------------------------

    def _do(self, operation: Operation) -> Outcome:
        answer = getattr(self, f"_{operation.verb}")(operation)
        self.raw.append(answer)
        is_status = isinstance(answer.json, dict) and answer.json.get("kind") == "Status"
        # What is wrong is told in words that a server may choose; which fields are wrong is not.
        content = _fields(answer.json) if is_status else answer.json
        return Outcome(operation, answer.code, answer.reason, projected(content, self.api.namespace))

    def _path(self, operation: Operation) -> str:
        return f"{operation.kind}/{self._named(operation.kind, operation.name)}"

    def _named(self, kind: str, name: str) -> str:
        return self.api.own(name) if kind == "nodes" else name

    def _own(self, kind: str, body: Any) -> Any:
        """A body with the run's label, and with the run's name where the kind has no namespaces."""
        if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict) or "name" not in body["metadata"]:
            return body
        head = body["metadata"]
        labels = {**(head.get("labels") or {}), "run": self.api.namespace}
        return {**body, "metadata": {**head, "name": self._named(kind, head["name"]), "labels": labels}}

    def _create(self, operation: Operation) -> Answer:
        body = self._own(operation.kind, operation.body)
        return self.api.post(operation.kind, body, operation.how).answer

    def _get(self, operation: Operation) -> Answer:
        return self.api.get(self._path(operation)).answer

    def _list(self, operation: Operation) -> Answer:
        if operation.kind == "nodes" and operation.how not in {"labelSelector=a+b", "limit=x"}:
            # Others' nodes are none of our business, and with a selector nobody counts what is left.
            rest = operation.how.partition("labelSelector=")[2]
            more = f"%2C{rest}" if rest else ""
            query = operation.how if not rest else ""
            return self.api.get("nodes", f"labelSelector=run%3D{self.api.namespace}{more}&{query}").answer
        return self.api.get(operation.kind, operation.how).answer

    def _update(self, operation: Operation) -> Answer:
        body = self._own(operation.kind, json.loads(json.dumps(operation.body)))
        seen = self.api.get(self._path(operation)).json.get("metadata", {})
        if operation.how == "current" and "resourceVersion" in seen:
            body["metadata"]["resourceVersion"] = seen["resourceVersion"]
        elif operation.how == "stale":
            body["metadata"]["resourceVersion"] = "1"
        elif operation.how == "other":
            body["metadata"]["uid"] = "other"
        return self.api.put(self._path(operation), body).answer

    def _patch(self, operation: Operation) -> Answer:
        body = operation.body
        if isinstance(body, dict) and "labels" in (body.get("metadata") or {}):
            labels = {**(body["metadata"]["labels"] or {"color": None}), "run": self.api.namespace}
            body = {**body, "metadata": {"labels": labels}}
        return self.api.patch(self._path(operation), body, operation.how).answer

    def _status(self, operation: Operation) -> Answer:
        return self.api.patch(f"{self._path(operation)}/status", operation.body, operation.how).answer

    def _apply(self, operation: Operation) -> Answer:
        return self.api.patch(
            self._path(operation), self._own(operation.kind, operation.body), "apply", operation.how
        ).answer

    def _delete(self, operation: Operation) -> Answer:
        options = dict(operation.body or {})
        if operation.how == "current":
            seen = self.api.get(self._path(operation)).json.get("metadata", {})
            options["preconditions"] = {"resourceVersion": seen.get("resourceVersion", "1")}
        elif operation.how == "stale":
            options["preconditions"] = {"resourceVersion": "1"}
        return self.api.delete(self._path(operation), **options).answer

    def _deletecollection(self, operation: Operation) -> Answer:
        query = f"labelSelector=run%3D{self.api.namespace}%2C{operation.how}"
        return self.api.delete(operation.kind, query).answer

    def _bind(self, operation: Operation) -> Answer:
        return self.api.post(f"pods/{operation.name}/binding", operation.body).answer

    def _evict(self, operation: Operation) -> Answer:
        return self.api.post(f"pods/{operation.name}/eviction", operation.body, operation.how).answer

    # ---- afterwards --------------------------------------------------------------------------------------------------

    def _items(self, kind: str) -> list[Any]:
        listed = self.api.get(kind, f"labelSelector=run%3D{self.api.namespace}").ok()
        return list(listed["items"])

    def _listed(self, kind: str) -> list[Any]:
        return [projected(item, self.api.namespace) for item in self._items(kind)]

    def _events(self, kind: str, version: str, selector: str) -> list[tuple[str, str, Any]]:
        last = self._named(kind, LAST)
        query = {"resourceVersion": version, "labelSelector": selector, "timeoutSeconds": "10"}
        with self.api.watch(kind, **query) as watch:
            events = watch.until(lambda event: event["object"]["metadata"].get("name") == last)
        seen = [each for each in events if each["type"] != "BOOKMARK"]
        return [
            (each["type"], each["object"]["metadata"]["name"].replace(self.api.namespace, "NS"), self._of(each))
            for each in seen
        ]

    def _of(self, event: dict[str, Any]) -> Any:
        return projected(event["object"], self.api.namespace)


def _fields(status: dict[str, Any]) -> Any:
    details = status.get("details") or {}
    causes = [(each.get("reason", ""), each.get("field", "")) for each in details.get("causes") or ()]
    return {"status": status.get("status"), "name": details.get("name"), "kind": details.get("kind"), "causes": causes}


def covered(told: Told) -> Covered:
    """How often which kind and verb was answered how."""
    return Counter((each.operation.kind, each.operation.verb, each.code) for each in told.outcomes)


def table(counts: Covered) -> str:
    """For people: what was covered."""
    lines = [f"{kind:22} {verb:18} {code}  {count:6}" for (kind, verb, code), count in sorted(counts.items())]
    return "\n".join([f"{'kind':22} {'verb':18} code  count", *lines])
