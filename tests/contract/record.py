"""What a real kube-apiserver says about its kinds, as the files that the embedded one reads.

    python -m tests.contract.record

starts the control plane of `make controlplane` and writes `src/kubenexus/sim/apiserver/data` anew: kinds with their
names, verbs and table columns, the schemas with their first sentences, and the numbers of fields in protobuf.
`tests/e2e/test_contract_programs.py` fails when the files and the real server disagree.
"""

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubenexus.testing.controlplane import ControlPlane
from tests.contract.record_messages import messages
from tests.e2e.controlplane import build

DATA = Path(__file__).parents[2] / "src" / "kubenexus" / "sim" / "apiserver" / "data"
# What schedulers, controllers and kubectl use. A kind whose promise we would not keep (quotas, webhooks) is not here.
WANTED = {
    "v1": "pods nodes namespaces events services endpoints configmaps secrets serviceaccounts persistentvolumes "
    "persistentvolumeclaims replicationcontrollers bindings",
    "apps/v1": "deployments replicasets statefulsets daemonsets controllerrevisions",
    "batch/v1": "jobs cronjobs",
    "policy/v1": "poddisruptionbudgets",
    "coordination.k8s.io/v1": "leases",
    "events.k8s.io/v1": "events",
    "scheduling.k8s.io/v1": "priorityclasses",
    "storage.k8s.io/v1": "storageclasses csinodes csidrivers csistoragecapacities volumeattachments "
    "volumeattributesclasses",
    "resource.k8s.io/v1": "resourceclaims resourceclaimtemplates resourceslices deviceclasses devicetaintrules",
    "discovery.k8s.io/v1": "endpointslices",
    "rbac.authorization.k8s.io/v1": "roles rolebindings clusterroles clusterrolebindings",
    "authentication.k8s.io/v1": "tokenreviews selfsubjectreviews",
    "authorization.k8s.io/v1": "subjectaccessreviews selfsubjectaccessreviews localsubjectaccessreviews "
    "selfsubjectrulesreviews",
    "apiextensions.k8s.io/v1": "customresourcedefinitions",
}
# These need programs on nodes, or secrets; we refuse them.
REFUSED = {"attach", "exec", "log", "portforward", "proxy", "token", "ephemeralcontainers"}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

Ask = Callable[[str, str], Any]


def kinds(ask: Ask) -> list[dict[str, Any]]:
    """All wanted kinds, in the real server's order."""
    found = []
    for root in ("/api", "/apis"):
        for group in ask(root, AGGREGATED)["items"]:
            for version in group["versions"]:
                name = group["metadata"].get("name", "")
                where = f"{name}/{version['version']}" if name else version["version"]
                wanted = WANTED.get(where, "").split()
                found += [_kind(ask, where, each) for each in version["resources"] if each["resource"] in wanted]
    return found


def schemas(ask: Ask) -> dict[str, Any]:
    """The definitions of all wanted groups, one line of description each."""
    found: dict[str, Any] = {}
    for where in WANTED:
        path = f"/openapi/v3/{'api' if where == 'v1' else 'apis'}/{where}"
        found |= ask(path, "application/json")["components"]["schemas"]
    needed = _reached(found, [name for name, schema in found.items() if _wanted(schema)])
    return {name: _trimmed(found[name]) for name in sorted(needed)}


def _kind(ask: Ask, where: str, told: dict[str, Any]) -> dict[str, Any]:
    plural = told["resource"]
    keep = ("singularResource", "scope", "shortNames", "categories", "verbs")
    kind = {"groupVersion": where, "resource": plural, "kind": told["responseKind"]["kind"]}
    kind |= {key: told[key] for key in keep if key in told}
    subs = {each["subresource"]: each for each in told.get("subresources", ()) if each["subresource"] not in REFUSED}
    kind["subresources"] = {name: _sub(each) for name, each in sorted(subs.items())}
    if "list" in told["verbs"]:
        root = "api" if where == "v1" else "apis"
        kind["columns"] = [_column(each) for each in ask(f"/{root}/{where}/{plural}", TABLE)["columnDefinitions"]]
    return kind


def _sub(told: dict[str, Any]) -> dict[str, Any]:
    kind = told["responseKind"]
    return {"group": kind["group"], "version": kind["version"], "kind": kind["kind"], "verbs": told["verbs"]}


def _column(told: dict[str, Any]) -> dict[str, Any]:
    return {**told, "description": _sentence(told["description"])}


def _wanted(schema: dict[str, Any]) -> bool:
    for each in schema.get("x-kubernetes-group-version-kind", ()):
        where = f"{each['group']}/{each['version']}" if each["group"] else each["version"]
        if where in WANTED and where != "apiextensions.k8s.io/v1":
            return not each["kind"].endswith("List") and each["kind"] not in {"DeleteOptions", "WatchEvent"}
    return False


def _reached(all_of_them: dict[str, Any], start: list[str]) -> set[str]:
    seen: set[str] = set()
    todo = list(start)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(all_of_them[name]))
    return seen


def _trimmed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_trimmed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _sentence(value) if _is_text(key, value) else _trimmed(value) for key, value in schema.items()}


def _is_text(key: str, value: Any) -> bool:
    return key == "description" and isinstance(value, str)


def _sentence(text: str) -> str:
    return re.split(r"(?<=[a-z)`\"])\. |\n", text.strip(), maxsplit=1)[0].removesuffix(".")[:200]


def write(ask: Ask) -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / "kinds.json").write_text(lines(kinds(ask)), encoding="utf-8")
    (DATA / "schemas.json").write_text(lines(schemas(ask)), encoding="utf-8")
    (DATA / "messages.json").write_text(lines(messages()), encoding="utf-8")


def lines(content: Any) -> str:
    """JSON with one entry a line, so that a new release shows what changed."""
    if isinstance(content, list):
        return "[\n" + ",\n".join(json.dumps(each) for each in content) + "\n]\n"
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()) + "\n}\n"


def main() -> None:
    from tests.contract.http import Http

    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(build.assets(), Path(folder), authorization="RBAC") as plane,
    ):
        server = Http.of_plane(plane)
        write(lambda path, accept: server.ask("GET", path, accept=accept).json)


if __name__ == "__main__":
    main()
