"""Which evictions violate a PodDisruptionBudget, as kube-scheduler counts them."""

from collections.abc import Mapping

import pytest

from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement, Selector
from kubenexus.api.workloads import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kubenexus.state.disruption_budgets import DisruptionBudgets
from kubenexus.state.footprint import footprint_of
from kubenexus.state.pods import PodRecord, PodStage, pod_record
from kubenexus.testing.builders import a_pod

WEB = LabelSelector(match_labels={"app": "web"})
NOT_DB = LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="NotIn", values=["db"])])
MALFORMED = LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="Near", values=["db"])])


def a_budget(
    name: str, selector: LabelSelector | None, allowed: int = 0, *, namespace: str = "default", disrupted: str = ""
) -> PodDisruptionBudget:
    status = PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods={disrupted: ""} if disrupted else {})
    meta = ObjectMeta(name=name, namespace=namespace)
    return PodDisruptionBudget(metadata=meta, spec=PodDisruptionBudgetSpec(selector=selector), status=status)


def a_record(name: str, labels: Mapping[str, str], namespace: str = "default") -> PodRecord:
    pod = a_pod(name, labels=labels, namespace=namespace)
    return pod_record(pod, "n1", PodStage.BOUND, footprint_of(pod))


A, B, PLAIN = a_record("a", {"app": "web"}), a_record("b", {"app": "web"}), a_record("plain", {})
FOREIGN = a_record("foreign", {"app": "web"}, "other")


@pytest.mark.parametrize(
    ("budgets", "violating"),
    [
        pytest.param([], [], id="no budget"),
        pytest.param([a_budget("x", WEB)], ["a", "b"], id="nothing is allowed"),
        pytest.param([a_budget("x", WEB, 1)], ["b"], id="the first is allowed"),
        pytest.param([a_budget("x", WEB, 2)], [], id="both are allowed"),
        pytest.param([a_budget("x", WEB, disrupted="a")], ["b"], id="one is counted already"),
        pytest.param([a_budget("x", None)], [], id="a missing selector selects nothing"),
        pytest.param([a_budget("x", LabelSelector())], [], id="an empty selector selects nothing"),
        pytest.param([a_budget("x", MALFORMED)], [], id="a malformed selector selects nothing"),
        pytest.param([a_budget("x", NOT_DB)], ["a", "b"], id="a pod without labels violates none"),
        pytest.param([a_budget("x", WEB, namespace="third")], [], id="of another namespace"),
        pytest.param([a_budget("x", WEB), a_budget("y", WEB, 1)], ["a", "b"], id="one of two is violated"),
        pytest.param([a_budget("x", WEB, -1)], ["a", "b"], id="less than nothing is allowed"),
    ],
)
def test_which_pods_violate_a_budget(budgets: list[PodDisruptionBudget], violating: list[str]) -> None:
    known = DisruptionBudgets()
    for budget in budgets:
        known.set(budget)
    found, others = known.split([A, B, PLAIN, FOREIGN])
    assert [pod.name for pod in found] == violating
    assert {pod.name for pod in others} == {"a", "b", "plain", "foreign"} - set(violating)


def test_a_budget_that_was_violated_takes_nothing_from_the_next() -> None:
    known = DisruptionBudgets()
    known.set(a_budget("x", WEB, 0))
    known.set(a_budget("y", NOT_DB, 1))
    last = a_record("last", {"app": "other"})
    assert [pod.name for pod in known.split([A, last])[0]] == ["a"]  # `y` still allows `last` to go


def test_a_budget_changes_and_goes() -> None:
    known = DisruptionBudgets()
    known.set(a_budget("x", WEB))
    known.set(a_budget("x", WEB, 1))
    assert [pod.name for pod in known.split([A, B])[0]] == ["b"]
    known.set(a_budget("x", LabelSelector()))
    assert known.split([A, B])[0] == []
    known.set(a_budget("x", WEB))
    for _ in range(2):
        known.remove("default/x")
    assert known.split([A, B])[0] == []


def test_violations_are_found_among_ten_thousand_budgets_by_the_labels_of_a_pod() -> None:
    known = DisruptionBudgets()
    for i in range(10_000):
        known.set(a_budget(f"b{i}", LabelSelector(match_labels={"app": f"app-{i}"})))
    pods = [a_record(f"p{i}", {"app": f"app-{i * 7}"}) for i in range(100)]
    compared = 0

    def counted(self: Selector, labels: Mapping[str, str]) -> bool:
        nonlocal compared
        compared += 1
        return all(each.accepts(labels.get(each.key)) for each in self.requirements)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Selector, "matches", counted)
        assert known.split(pods) == (pods, [])
    assert compared == len(pods)
