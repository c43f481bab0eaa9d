"""The columns that preemption reads, against a ledger that is built from scratch, after any changes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.keys import gang
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement
from kubenexus.api.workloads import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kubenexus.state.disruption_budgets import NO_BUDGET, SEVERAL_BUDGETS, DisruptionBudgets
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger

CHECKPOINT = "scheduling.kubenexus.io/last-checkpoint"
NAMES = [f"p{i}" for i in range(4)]

pods = st.builds(
    lambda name, cpu, app, group, start: a_pod(
        name,
        node="n1",
        cpu=cpu,
        labels={"app": app} | ({gang.NAME.key: group, gang.MIN_AVAILABLE.key: "2"} if group else {}),
        status={"start_time": start},
    ),
    st.sampled_from(NAMES),
    st.integers(1, 2),
    st.sampled_from("ab"),
    st.sampled_from(["", "g", "h"]),
    st.sampled_from(["", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
)
steps = st.lists(st.one_of(pods, st.sampled_from(NAMES), st.sampled_from("ab"), st.just(0)), max_size=12)


def a_budget(app: str, name: str = "", selector: LabelSelector | None = None) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name or app, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=selector or LabelSelector(match_labels={"app": app})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=1),
    )


def content(ledger: Ledger) -> dict[str, Any]:
    """Returns what the columns have of each pod, by name, without codes."""
    ledger.select_budgets()
    victims, found = ledger.nodes.pods.victims, {}
    gangs = {code: key for key, code in victims.kinds.gangs.codes.items()}
    budgets = {budget.code: name for name, budget in ledger.disruption_budgets.of("default")}
    for record in ledger.pods.values():
        slot = record.slot
        kind = int(victims.kind[slot])
        found[record.name] = (
            victims.records[slot] is record and victims.slot_of[record.uid] == slot,
            int(victims.kinds.flags[kind]),
            gangs.get(int(victims.kinds.gang[kind]), ""),
            float(victims.kinds.amounts("cpu")[kind]),
            float(victims.since[slot]),
            budgets.get(int(victims.budget[slot]), int(victims.budget[slot])),
        )
    return found


@given(steps=steps)
def test_the_columns_equal_those_of_a_new_ledger(steps: list[Pod | str | int]) -> None:
    ledger, listed, budgets = a_ledger([a_node("n1", cpu=64)]), dict[str, Pod](), set[str]()
    for step in steps:
        if isinstance(step, Pod):
            ledger.upsert_pod(step)
            listed[step.metadata.name] = step
        elif step in NAMES:
            ledger.remove_pod(f"default/{step}")
            listed.pop(str(step), None)
        elif isinstance(step, str):
            if step in budgets:
                ledger.remove_disruption_budget(f"default/{step}")
            else:
                ledger.upsert_disruption_budget(a_budget(step))
            budgets ^= {step}
        else:
            _try_without(ledger)
    fresh = a_ledger([a_node("n1", cpu=64)], listed.values())
    for app in sorted(budgets):
        fresh.upsert_disruption_budget(a_budget(app))
    assert content(ledger) == content(fresh)
    assert all(values[0] for values in content(ledger).values())


def _try_without(ledger: Ledger) -> None:
    """Removes all pods in a transaction, puts one back, and rolls back."""
    with ledger.transaction() as transaction:
        records = list(ledger.pods.values())
        for record in records:
            transaction.remove_pod(0, record)
        for record in records[:1]:
            transaction.restore_pod(0, record)


def test_a_pod_of_several_budgets_is_marked() -> None:
    ledger = a_ledger([a_node("n1")], [a_pod("p", node="n1", labels={"app": "a"})])
    slot, budget = ledger.pods["default/p"].slot, ledger.nodes.pods.victims.budget
    assert budget[slot] == NO_BUDGET
    ledger.upsert_disruption_budget(a_budget("a"))
    ledger.upsert_disruption_budget(a_budget("a", "second"))
    ledger.select_budgets()
    assert ledger.nodes.pods.victims.budget[slot] == SEVERAL_BUDGETS


def others(**labels: str) -> LabelSelector:
    """Selects pods with these labels, and with another one, whatever its value."""
    return LabelSelector(
        match_labels=labels, match_expressions=[LabelSelectorRequirement(key="z", operator="Exists", values=[])]
    )


def within(*keys: str) -> LabelSelector:
    return LabelSelector(match_labels=dict.fromkeys(keys, "a"))


@pytest.mark.parametrize(
    ("selectors", "labels", "beside", "code"),
    [
        pytest.param([within(f"k{i}") for i in range(200)], {"app": "a"}, 0, NO_BUDGET, id="budgets of other pods"),
        pytest.param(
            [LabelSelector(match_labels={"app": f"x{i}"}) for i in range(5000)],
            {"app": "a"},
            0,
            NO_BUDGET,
            id="many budgets for one label",
        ),
        pytest.param([within("app")] * 128, {"app": "a"}, 0, SEVERAL_BUDGETS, id="several select it"),
        pytest.param(
            [others(app="a") for _ in range(65)],
            {"app": "a"},
            0,
            SEVERAL_BUDGETS,
            id="more candidates than it is compared with",
        ),
        pytest.param(
            [others(app="a") for _ in range(64)],
            {"app": "a"},
            0,
            NO_BUDGET,
            id="as many candidates as it is compared with",
        ),
        pytest.param([others() for _ in range(129)], {"app": "a"}, 0, SEVERAL_BUDGETS, id="nothing is required"),
        pytest.param(
            [within(f"k{i:03}") for i in range(300)],
            {f"z{i}": "a" for i in range(300)},
            0,
            SEVERAL_BUDGETS,
            id="many keys and many labels",
        ),
        pytest.param(
            [others(app="a") for _ in range(60)],
            {"app": "a"},
            2000,
            SEVERAL_BUDGETS,
            id="too many for all pods of the namespace",
        ),
    ],
)
def test_pods_are_compared_with_a_bounded_number_of_budgets(
    selectors: list[LabelSelector], labels: dict[str, str], beside: int, code: int
) -> None:
    pods = [a_pod(f"other-{i}", node="n1", labels={"app": "b"}, cpu="1m", memory="1") for i in range(beside)]
    ledger = a_ledger([a_node("n1", cpu="64", pods="5000")], [a_pod("p", node="n1", labels=labels), *pods])
    for i, selector in enumerate(selectors):
        ledger.upsert_disruption_budget(a_budget("", f"b{i}", selector))
    ledger.select_budgets()
    assert ledger.nodes.pods.victims.budget[ledger.pods["default/p"].slot] == code
    assert ledger.disruption_budgets.protects(ledger.pods["default/p"]) == (code != NO_BUDGET)


def test_many_changed_budgets_compare_their_pods_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, calls = a_ledger([a_node("n1")], [a_pod("p", node="n1", labels={"app": "a"})]), list[str]()

    def code_of(self: DisruptionBudgets, pod: PodRecord) -> int:
        calls.append(pod.name)
        return NO_BUDGET

    monkeypatch.setattr(DisruptionBudgets, "code_of", code_of)
    for i in range(50):
        ledger.upsert_disruption_budget(a_budget(f"other-{i}"))
    ledger.select_budgets()
    ledger.select_budgets()
    assert calls == ["p"]
