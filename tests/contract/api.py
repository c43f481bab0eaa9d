"""What a case is written with: a namespace of its own, short names for collections, and answers that can be asserted.

api.post("pods", a_pod("a")).ok(201)
api.post("pods", a_pod("a")).refused(409, "AlreadyExists", 'pods "a" already exists')
"""

import urllib.parse
from collections.abc import Callable
from typing import Any, Self

from tests.contract.http import Answer, Http, Watch

GROUPS = {
    "leases": "apis/coordination.k8s.io/v1",
    "poddisruptionbudgets": "apis/policy/v1",
    "deployments": "apis/apps/v1",
    "replicasets": "apis/apps/v1",
    "statefulsets": "apis/apps/v1",
    "jobs": "apis/batch/v1",
    "priorityclasses": "apis/scheduling.k8s.io/v1",
    "newevents": "apis/events.k8s.io/v1",
    "widgets": "apis/contract.kubenexus.io/v1",
    "customresourcedefinitions": "apis/apiextensions.k8s.io/v1",
}
CLUSTER = {"nodes", "namespaces", "priorityclasses", "customresourcedefinitions", "persistentvolumes"}


class Said:
    """An answer, with what a case may say about it."""

    def __init__(self, what: str, answer: Answer) -> None:
        self._what, self.answer = what, answer

    @property
    def json(self) -> Any:
        return self.answer.json

    def ok(self, code: int = 200) -> Any:
        """The object of an answer that must be this."""
        assert self.answer.code == code, f"{self._what}: {self.answer.code}, not {code}: {self.answer.json}"
        return self.answer.json

    def refused(self, code: int, reason: str = "", message: str | None = None, field: str | None = None) -> Self:
        """Refused just so; `field` is one that the causes name."""
        seen = (self.answer.code, self.answer.reason)
        assert seen == (code, reason), f"{self._what}: {seen}, not {(code, reason)}: {self.answer.json}"
        if message is not None:
            assert self.answer.message == message, f"{self._what}: {self.answer.message}"
        if field is not None:
            causes = (self.answer.json.get("details") or {}).get("causes") or []
            assert field in [each.get("field") for each in causes], f"{self._what}: {causes}"
        return self


class Api:
    """One server, seen from one namespace. Objects outside namespaces get names that begin with it."""

    def __init__(self, http: Http, namespace: str) -> None:
        self.http, self.namespace = http, namespace

    def path(self, where: str, query: str = "") -> str:
        """`pods/a/binding` as a path; what begins with a slash is one."""
        if where.startswith("/"):
            return where
        plural, slash, rest = where.partition("/")
        root = GROUPS.get(plural, "api/v1")
        middle = "" if plural in CLUSTER else f"/namespaces/{self.namespace}"
        plural = "events" if plural == "newevents" else plural
        return f"/{root}{middle}/{plural}{slash}{rest}" + (f"?{query}" if query else "")

    def own(self, name: str) -> str:
        """A name outside namespaces that no other case has."""
        return f"{self.namespace}-{name}"

    def get(self, where: str, query: str = "", **options: Any) -> Said:
        return self._ask("GET", where, None, query, **options)

    def post(self, where: str, body: Any, query: str = "") -> Said:
        return self._ask("POST", where, body, query)

    def put(self, where: str, body: Any, query: str = "") -> Said:
        return self._ask("PUT", where, body, query)

    def patch(self, where: str, body: Any, kind: str = "merge", query: str = "") -> Said:
        return self._ask("PATCH", where, body, query, patch=kind)

    def delete(self, where: str, query: str = "", **options: Any) -> Said:
        return self._ask("DELETE", where, options or None, query)

    def names(self, where: str, **query: str) -> list[str]:
        """What a list shows, in its order."""
        items = self.get(where, urllib.parse.urlencode(query)).ok()["items"]
        return [item["metadata"]["name"] for item in items]

    def version(self, where: str) -> str:
        """From where to watch what comes now."""
        return str(self.get(where).ok()["metadata"]["resourceVersion"])

    def watch(self, where: str, **query: str) -> Watch:
        return self.http.watch(self.path(where, urllib.parse.urlencode({"watch": "1", **query})))

    def seen(self, where: str, act: Callable[[], None], last: str, **query: str) -> list[tuple[str, str]]:
        """Types and names of the events of what `act` does, up to the ADDED of the object `last`."""
        version = self.version(where)
        act()
        with self.watch(where, resourceVersion=version, timeoutSeconds="10", **query) as watch:
            events = watch.until(lambda event: event["object"]["metadata"].get("name") == last)
        told = [each for each in events if each["type"] != "BOOKMARK"][:-1]
        return [(each["type"], each["object"]["metadata"]["name"]) for each in told]

    def _ask(self, method: str, where: str, body: Any, query: str = "", **options: Any) -> Said:
        path = self.path(where, query)
        return Said(f"{method} {path}", self.http.ask(method, path, body, **options))


# ---- objects ---------------------------------------------------------------------------------------------------------


def a_pod(name: str, *, meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    whole = {"containers": [{"name": "c", "image": "i"}], **spec}
    head = {"name": name, "labels": {"app": name}, **(meta or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": whole}


def a_binding(pod: str, node: str, **meta: Any) -> dict[str, Any]:
    target = {"kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, **meta}, "target": target}


def an_eviction(pod: str) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}


def a_budget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def a_lease(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


def a_widget(name: str, /, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "contract.kubenexus.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


WIDGET_SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 10},
        "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "parts": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
}
WIDGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.contract.kubenexus.io"},
    "spec": {
        "group": "contract.kubenexus.io",
        "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wi"]},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": WIDGET_SPEC,
                            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}


def install_widgets(http: Http) -> None:
    """The custom kind of the contract, once it is served."""
    answer = http.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS)
    assert answer.code in {201, 409}, answer
    for _ in range(200):
        path = "/apis/contract.kubenexus.io/v1/namespaces/default/widgets?dryRun=All"
        made = http.ask("POST", path, a_widget("w", size=1))
        if made.code == 201:
            return
    raise AssertionError(f"widgets are not served: {made}")
