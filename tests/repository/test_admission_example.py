"""The admission policy in examples/ is one policy and its binding, and the page on reliability names it. That a server
enforces it is tested in `tests/e2e/test_admission_example.py`."""

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
POLICY = "examples/admission/anti-affinity-within-namespace.yaml"


def test_the_policy_is_bound_and_denies() -> None:
    policy, binding = yaml.safe_load_all((ROOT / POLICY).read_text(encoding="utf-8"))
    assert (policy["kind"], binding["kind"]) == ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert binding["spec"]["validationActions"] == ["Deny"]
    assert all(
        each["message"] and "variables.terms.all" in each["expression"] for each in policy["spec"]["validations"]
    )


def test_the_page_on_reliability_names_it() -> None:
    assert f"../{POLICY}" in (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
