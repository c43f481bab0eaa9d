"""The chart's webhook agrees with the code: which objects it is called for, what it may do, and its flags."""

import asyncio
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from kubenexus.api.keys import gang, tenant
from kubenexus.base.clock import WallClock
from kubenexus.cli.webhook import webhook
from kubenexus.webhook.certificates import CertificateTerms, ManagedCertificate
from kubenexus.webhook.mutation import DEFAULT_CLASSES
from kubenexus.webhook.namespaces import NamespaceLabels
from kubenexus.webhook.pod_sets import KINDS
from kubenexus.webhook.server import WebhookServer, WebhookSettings
from kubenexus.webhook.validation import OTHER_KINDS, RESERVATION
from tests.webhook.fake_api import SECRET, FakeApi

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "kubenexus"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["webhook"]
VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


def template(name: str) -> str:
    return (CHART / "templates" / name).read_text(encoding="utf-8")


def rules(file: str) -> set[tuple[str, str]]:
    """Group and resource of each rule."""
    found = yaml.safe_load((CHART / "files" / file).read_text(encoding="utf-8"))
    return {(group, plural) for rule in found for group in rule["apiGroups"] for plural in rule["resources"]}


def plurals(kinds: Any) -> set[tuple[str, str]]:
    return {(group, f"{kind.lower()}s") for group, kind in kinds}


def test_the_validating_webhook_is_called_for_what_it_validates() -> None:
    # Nodes are a value of the chart.
    assert rules("webhook-rules.yaml") == plurals({*KINDS, *OTHER_KINDS, RESERVATION} - {("", "Node")})


def test_the_gang_webhook_is_called_for_the_jobs_that_can_ask_for_it() -> None:
    assert rules("webhook-gang-rules.yaml") == plurals(each for each in KINDS if each[1] in gang.INJECT.on)


def test_the_selectors_name_the_keys_that_the_code_reads() -> None:
    text = template("webhook-configurations.yaml")
    assert f'"label" "{tenant.SCHEDULER_NAME.key}"' in text
    assert f'"label" "{tenant.TIER.key}"' in text
    assert f'"{gang.INJECT.key}" in object.metadata.annotations' in text


def test_every_path_that_the_api_server_calls_is_served() -> None:
    called = set(re.findall(r'"path" "([^"]+)"', template("webhook-configurations.yaml")))
    api = FakeApi()
    served = WebhookServer(WebhookSettings(), NamespaceLabels(api, WallClock()), {}).paths
    assert called == {path for path in served if not path.endswith("z")}
    probed = set(re.findall(r"path: (/\w+z)$", template("webhook-deployment.yaml"), re.MULTILINE))
    assert probed < served


def test_the_roles_are_the_calls_that_the_webhook_makes() -> None:
    async def calls() -> list[tuple[str, str]]:
        api = FakeApi()
        await ManagedCertificate(api, WallClock(), CertificateTerms("home", "papers", ("h",), "hook")).refresh()
        api.objects[SECRET]["data"] = {}
        await ManagedCertificate(api, WallClock(), CertificateTerms("home", "papers", ("h",), "hook")).refresh()
        await NamespaceLabels(api, WallClock()).find("ml")
        return api.calls

    called = set()
    for method, path in asyncio.run(calls()):
        steps = path.removeprefix("/api/v1/").removeprefix("/apis/admissionregistration.k8s.io/v1/").split("/")
        called.add((VERBS[method], steps[2] if len(steps) > 2 else steps[0]))
    assert called == granted(template("webhook-rbac.yaml"))


def granted(text: str) -> set[tuple[str, str]]:
    found = re.findall(r"resources: \[(.+)\]\n(?:  resourceNames: .+\n)?  verbs: \[(.+)\]", text)
    return {(verb, each) for plural, verbs in found for each in plural.split(", ") for verb in verbs.split(", ")}


def test_secrets_are_read_and_changed_by_name_only() -> None:
    text = template("webhook-rbac.yaml")
    assert "resources: [secrets]\n  verbs: [create]\n" in text
    assert re.search(r"resources: \[secrets\]\n  resourceNames: .+\n  verbs: \[get, patch\]\n", text)


def test_every_flag_in_the_deployment_is_one_of_the_command() -> None:
    flags = set(re.findall(r"^ +- (--[a-z-]+)", template("webhook-deployment.yaml"), re.MULTILINE))
    known = {name for each in webhook.params if isinstance(each, click.Option) for name in each.opts}
    assert flags
    assert flags <= known


def test_its_values_are_off_and_gentle() -> None:
    assert (VALUES["enabled"], VALUES["failurePolicy"]) == (False, "Ignore")
    assert (VALUES["mutating"]["gpuClass"], VALUES["mutating"]["requireGpuClass"]) == (False, False)
    assert {tier: tuple(classes) for tier, classes in VALUES["mutating"]["gpuClasses"].items()} == DEFAULT_CLASSES


@pytest.mark.parametrize("name", ["webhook-configurations.yaml", "webhook-deployment.yaml", "webhook-rbac.yaml"])
def test_nothing_is_made_unless_it_is_enabled(name: str) -> None:
    assert template(name).startswith("{{- if .Values.webhook.enabled }}")
    assert template(name).endswith("{{- end }}\n")
