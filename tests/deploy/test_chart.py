"""The chart's files agree with the code: roles, metrics, versions, and the plain manifest beside it."""

import ast
import json
import re
from pathlib import Path

import pytest
import yaml

from kubenexus import __version__
from kubenexus.app.permissions import (
    KUEUE_PERMISSIONS,
    OPTIONAL_PERMISSIONS,
    PROVISIONING_PERMISSIONS,
    SERVING_PERMISSIONS,
)
from kubenexus.discovery.permissions import PERMISSIONS
from kubenexus.observe.metric_table import TABLE
from tests.deploy import role_rules

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "kubenexus"
SOURCES = ROOT / "src" / "kubenexus"
ALERTS = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
DASHBOARD = json.loads((CHART / "files" / "dashboard.json").read_text(encoding="utf-8"))
GRANTED = (*OPTIONAL_PERMISSIONS, *KUEUE_PERMISSIONS, *PROVISIONING_PERMISSIONS, *SERVING_PERMISSIONS)
QUERIES = [each["expr"] for each in ALERTS] + [
    target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]
]


@pytest.mark.parametrize(("name", "made"), role_rules.files().items(), ids=lambda text: text[:25])
def test_the_roles_are_what_the_code_asks_for(name: str, made: str) -> None:
    written = (CHART / "files" / name).read_text(encoding="utf-8")
    assert written == made, "run `make manifests`"


def test_the_chart_has_the_crds_of_the_plain_manifests() -> None:
    for file in (CHART / "files" / "crds").glob("*.yaml"):
        assert file.read_bytes() == (ROOT / "deploy" / file.name).read_bytes(), "run `make manifests`"


def writes_of(folder: Path) -> set[tuple[str, str]]:
    """Returns (verb, constant of client.kinds) for each call of client.verbs that names its kind."""
    found = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            verb = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            kind = node.args[0]
            name = kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", "")
            if verb in ("get", "create", "update", "patch", "delete") and re.fullmatch(r"[A-Z][A-Z_]+", name):
                found.add((verb, name))
    return found


def test_every_call_in_the_code_is_in_the_role() -> None:
    from kubenexus.client import kinds

    granted = {(each.verb, each.resource.plural) for each in GRANTED}
    # In Roles of their own, or allowed to every user.
    granted |= {("get", "leases"), ("create", "leases"), ("update", "leases"), ("get", "configmaps")}
    granted |= {("create", "selfsubjectaccessreviews"), ("create", "pods")}  # its binding
    called = set()
    for folder in ("app", "bind", "client", "observe"):
        called |= writes_of(SOURCES / folder)
    named = {(verb, getattr(kinds, name).plural) for verb, name in called if hasattr(kinds, name)}
    assert named - granted == set()
    assert ("get", "pods") in named, "the search found no calls at all"


def test_discovery_calls_just_what_its_role_allows() -> None:
    from kubenexus.client import kinds

    named = [(verb, name) for verb, name in writes_of(SOURCES / "discovery") if hasattr(kinds, name)]
    called = {(verb, getattr(kinds, name).plural) for verb, name in named}
    assert called == {(each.verb, each.resource.plural) for each in PERMISSIONS}


@pytest.mark.parametrize(
    ("part", "key", "allowed"),
    [
        ("labels", "gpu.kubenexus.io/model", True),
        ("labels", "nvidia.com/gpu.clique", True),
        ("labels", "gpu.kubenexus.io/shared", False),
        ("labels", "tenant.kubenexus.io/reserved-tier", False),
        ("labels", "nvidia.com/gpuxclique", False),
        ("labels", "node-role.kubernetes.io/control-plane", False),
        ("labels", "x.gpu.kubenexus.io/model", False),
        ("annotations", "numa.kubenexus.io/node-12-distance-3", True),
        ("annotations", "numa.kubenexus.io/node-x-cpus", False),
        ("annotations", "discovery.kubenexus.io/written", True),
        ("annotations", "scheduling.kubenexus.io/devices", False),
    ],
)
def test_the_policy_lets_discovery_write_its_keys_and_no_others(part: str, key: str, allowed: bool) -> None:
    expressions = yaml.safe_load((CHART / "files" / "discovery-keys.yaml").read_text(encoding="utf-8"))
    assert bool(re.search(expressions[part], key)) == allowed


@pytest.mark.parametrize("query", QUERIES)
def test_alerts_and_dashboard_ask_for_metrics_that_exist(query: str) -> None:
    asked = set(re.findall(r"\b(?:kubenexus|scheduler|leader)_[a-z_]+", query))
    names = {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked}
    assert names
    assert names <= set(TABLE)


def test_every_alert_has_a_section_that_says_what_to_do() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
    sections = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    assert {each["alert"] for each in ALERTS} <= sections
    for each in ALERTS:
        assert each["annotations"]["runbook"] == f"docs/alerts.md#{each['alert'].lower()}"


def test_chart_and_product_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_the_schema_knows_each_value_and_no_other() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert unknown(values, schema) == []
    assert set(schema["properties"]) - {"global"} == set(values)


def unknown(values: object, schema: dict[str, object], path: str = "") -> list[str]:
    """Returns the values that the schema does not name, where it forbids others."""
    properties = schema.get("properties")
    if not isinstance(values, dict) or not isinstance(properties, dict):
        return []
    found = []
    for key, value in values.items():
        if key in properties:
            found += unknown(value, properties[key], f"{path}.{key}")
        elif schema.get("additionalProperties") is False:
            found.append(f"{path}.{key}")
    return found
