"""What the manifests refer to exists: in themselves, in the image, in the configuration that the scheduler reads."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubenexus import __version__
from kubenexus.config import defaults, load
from kubenexus.plugins import BUILT_IN

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
OBJECTS = list(yaml.safe_load_all((ROOT / "deploy" / "kubenexus-scheduler.yaml").read_text(encoding="utf-8")))
NAMESPACE = "kubenexus-system"
# Made by every API server with RBAC.
BUILT_IN_ROLES = {"Role extension-apiserver-authentication-reader"}


def named(kind: str, name: str = "kubenexus-scheduler") -> dict[str, Any]:
    (found,) = [each for each in OBJECTS if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return dict(found)


def pod() -> dict[str, Any]:
    return dict(named("Deployment")["spec"]["template"]["spec"])


def container() -> dict[str, Any]:
    (only,) = pod()["containers"]
    return dict(only)


@pytest.fixture
def config() -> str:
    """The configuration, from where the scheduler is told to look for it."""
    (path,) = [flag.removeprefix("--config=") for flag in container()["args"] if flag.startswith("--config=")]
    (mount,) = [each for each in container()["volumeMounts"] if path.startswith(each["mountPath"] + "/")]
    (volume,) = [each for each in pod()["volumes"] if each["name"] == mount["name"]]
    data = named("ConfigMap", volume["configMap"]["name"])["data"]
    return str(data[path.removeprefix(mount["mountPath"] + "/")])


def test_the_configuration_loads_and_needs_no_more_remarks_than_the_default_one(config: str) -> None:
    loaded = load(config, BUILT_IN)
    assert [profile.name for profile in loaded.profiles] == ["kubenexus-scheduler"]
    assert loaded.notes == defaults(BUILT_IN).notes


def test_its_lease_is_the_one_that_the_role_allows(config: str) -> None:
    election = load(config, BUILT_IN).document.leader_election
    (rule,) = [rule for rule in named("Role")["rules"] if "resourceNames" in rule]
    assert election.leader_elect
    assert (election.resource_namespace, [election.resource_name]) == (NAMESPACE, rule["resourceNames"])


def test_roles_are_bound_to_the_account_that_the_pods_have() -> None:
    account = {"kind": "ServiceAccount", "name": pod()["serviceAccountName"], "namespace": NAMESPACE}
    assert named("ServiceAccount", account["name"])["metadata"]["namespace"] == NAMESPACE
    bindings = [each for each in OBJECTS if each["kind"].endswith("Binding")]
    assert [each["subjects"] for each in bindings] == [[account]] * 3
    ours = {f"{each['kind']} {each['metadata']['name']}" for each in OBJECTS if each["kind"].endswith("Role")}
    asked = {f"{each['roleRef']['kind']} {each['roleRef']['name']}" for each in bindings}
    assert asked == ours | BUILT_IN_ROLES


def test_no_rule_is_wider_than_its_words() -> None:
    rules = [rule for each in OBJECTS if each["kind"].endswith("Role") for rule in each["rules"]]
    assert not [rule for rule in rules if "*" in rule["verbs"] + rule["resources"] + rule["apiGroups"]]


def test_all_is_in_the_namespace_or_in_none() -> None:
    elsewhere = [each["metadata"]["name"] for each in OBJECTS if each["metadata"].get("namespace") == "kube-system"]
    inside = {each["metadata"].get("namespace", NAMESPACE) for each in OBJECTS} - {"kube-system"}
    assert (elsewhere, inside) == (["kubenexus-scheduler-authentication-reader"], {NAMESPACE})
    assert named("Namespace", NAMESPACE)


def test_the_deployment_selects_its_own_pods() -> None:
    deployment = named("Deployment")["spec"]
    assert deployment["replicas"] == 2
    assert deployment["selector"]["matchLabels"] == deployment["template"]["metadata"]["labels"]


def test_the_pods_have_no_more_rights_than_they_need() -> None:
    context = container()["securityContext"]
    assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert (pod()["securityContext"]["runAsNonRoot"], pod()["securityContext"]["seccompProfile"]) == (
        True,
        {"type": "RuntimeDefault"},
    )
    assert "cpu" not in container()["resources"]["limits"]


@pytest.mark.parametrize(("probe", "path"), [("livenessProbe", "/livez"), ("readinessProbe", "/readyz")])
def test_probes_ask_a_port_that_is_served(probe: str, path: str) -> None:
    asked = container()[probe]["httpGet"]
    (port,) = [each["containerPort"] for each in container()["ports"] if each["name"] == asked["port"]]
    assert (asked["path"], f"--health-bind-address=0.0.0.0:{port}" in container()["args"]) == (path, True)


def test_the_image_is_this_version_and_runs_as_the_same_user() -> None:
    assert container()["image"] == f"kubenexus:{__version__}"
    assert f"-t {container()['image']} ." in DOCKERFILE
    context = pod()["securityContext"]
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == [f"{context['runAsUser']}:{context['runAsGroup']}"]
    assert re.findall(r'^ENTRYPOINT \["(.*)"\]$', DOCKERFILE, re.MULTILINE) == ["kubenexus"]


def test_the_dockerfile_copies_what_there_is() -> None:
    copied = [name for line in re.findall(r"^COPY ([^-].*) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert [name for name in copied if f"!{name}" not in allowed] == []
