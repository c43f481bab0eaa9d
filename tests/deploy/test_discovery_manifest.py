"""The DaemonSet of discovery: its flags exist, and it has no more rights than it needs."""

from pathlib import Path
from typing import Any

import yaml

from kubenexus.cli.discover import discover

FILE = Path(__file__).parents[2] / "deploy" / "kubenexus-discovery.yaml"
OBJECTS = {each["kind"]: each for each in yaml.safe_load_all(FILE.read_text(encoding="utf-8"))}
POD: dict[str, Any] = OBJECTS["DaemonSet"]["spec"]["template"]["spec"]
CONTAINER: dict[str, Any] = POD["containers"][0]


def test_the_flags_are_those_of_the_command() -> None:
    command, *flags = CONTAINER["args"]
    assert command == "discover"
    assert discover.make_context("discover", list(flags)).params["interval"] == "5m"
    (name,) = [each for each in CONTAINER["env"] if each["name"] == "NODE_NAME"]
    assert name["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


def test_account_role_and_policy_belong_together() -> None:
    account = {"kind": "ServiceAccount", "name": POD["serviceAccountName"], "namespace": "kubenexus-system"}
    assert OBJECTS["ServiceAccount"]["metadata"]["name"] == account["name"]
    assert OBJECTS["ClusterRoleBinding"]["subjects"] == [account]
    policy = OBJECTS["ValidatingAdmissionPolicy"]
    assert OBJECTS["ValidatingAdmissionPolicyBinding"]["spec"] == {
        "policyName": policy["metadata"]["name"],
        "validationActions": ["Deny"],
    }
    (condition,) = policy["spec"]["matchConditions"]
    assert f"'system:serviceaccount:kubenexus-system:{account['name']}'" in condition["expression"]


def test_the_policy_covers_all_that_the_role_lets_the_account_write() -> None:
    rules = OBJECTS["ClusterRole"]["rules"]
    covered = OBJECTS["ValidatingAdmissionPolicy"]["spec"]["matchConstraints"]["resourceRules"]
    assert [(each["apiGroups"], each["resources"]) for each in rules] == [
        (each["apiGroups"], each["resources"]) for each in covered
    ]
    assert {tuple(each["operations"]) for each in covered} == {("CREATE", "UPDATE", "DELETE")}


def test_the_pod_reads_the_machine_and_changes_nothing_on_it() -> None:
    assert [each["hostPath"]["path"] for each in POD["volumes"]] == ["/sys"]
    assert all(each["readOnly"] for each in CONTAINER["volumeMounts"])
    context = CONTAINER["securityContext"]
    assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert not {"hostPID", "hostNetwork", "hostIPC"} & set(POD)
