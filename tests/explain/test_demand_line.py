"""`explain` says what a placement keeps for pods that are expected, where that decided."""

import pytest

from kubenexus.api.core import Pod
from kubenexus.explain.explanation import explain, render_text
from kubenexus.framework.profile import EnabledPlugin, Profile
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.state.demand import Demand, DemandShape, SlotDemand
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod

MIX = ((DemandShape(2000, 1, 1000), 0.9), (DemandShape(8000, 8, 1000), 0.1))
SLOT_KEPT = "KEEPS    keeps n0's 8-GPU slot: 12 such jobs are expected, 9 slots left"


def demand(price: int, expected: int = 12, left: int = 9) -> Demand:
    return Demand(1, MIX, (SlotDemand(8, 8000, expected, left, price),), on_gpu_nodes=True)


def told(pod: Pod, wanted: Demand | None, profile: Profile | None = None) -> str:
    """The line about what is kept, "" if there is none. n0 is empty, n1 has a GPU in use."""
    ledger = Ledger()
    for name in ("n0", "n1"):
        ledger.upsert_node(a_node(name, cpu=64, memory="256Gi", gpu=8))
    ledger.upsert_pod(a_pod("running", gpu=1, cpu=2, node="n1"))
    if wanted is not None:
        ledger.set_demand(wanted)
    planner = Planner(profile_plugins(profile or shipped_profile()))
    text = render_text(explain(pod, {pod.key: pod}, ledger, planner, 0.0))
    return next((line for line in text.splitlines() if line.startswith("KEEPS")), "")


def test_a_small_pod_keeps_the_slot_of_a_large_one() -> None:
    assert told(a_pod("small", gpu=1, cpu=2), demand(8000)) == SLOT_KEPT


def test_one_job_and_one_slot_are_singular() -> None:
    assert told(a_pod("small", gpu=1, cpu=2), demand(8000, 1, 1)).endswith("1 such job is expected, 1 slot left")


def test_without_a_price_the_line_states_the_idle_gpus() -> None:
    line = told(a_pod("small", gpu=1, cpu=2), demand(0))
    assert line.startswith("KEEPS    leaves 0.")
    assert line.endswith("GPUs fewer idle than n0 would, by the pods that are expected")


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        pytest.param(a_pod("small", gpu=1, cpu=2), None, id="nothing is expected: the rules of islands decide"),
        pytest.param(a_pod("large", gpu=8, cpu=8), demand(8000), id="one node fits, there is no next"),
    ],
)
def test_no_line_where_demand_did_not_decide(pod: Pod, wanted: Demand | None) -> None:
    assert told(pod, wanted) == ""


def test_no_line_where_demand_is_turned_off() -> None:
    plugins = [
        EnabledPlugin(each.name, each.weight, {"byDemand": False})
        if each.name == "ResourceFragmentationScore"
        else each
        for each in shipped_profile().plugins
    ]
    assert told(a_pod("small", gpu=1, cpu=2), demand(8000), Profile("off", tuple(plugins))) == ""
