"""Why a placement is better than another by what pods are expected to ask for, as a sentence."""

from typing import Final

from kubenexus.api.resource_names import CPU
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.devices.demand.expected_idle import slot_losses_of_row
from kubenexus.plugins.devices.demand.scoring import PER_GPU, wanted_of
from kubenexus.plugins.devices.demand.states_after import Wanted, states_of_row
from kubenexus.plugins.devices.request import requests_of
from kubenexus.state.demand import Demand, SlotDemand
from kubenexus.state.view import OneNode

_LEAST: Final = 0.01  # GPUs


def demand_reason(pod: PodClass, chosen: OneNode, other: OneNode, demand: Demand, points: int) -> str:
    """Returns what the chosen row keeps compared with the other one. `points` are those that it has more."""
    requests = requests_of(pod)
    wanted, name = wanted_of(pod, requests[0] if requests else None), other.columns.names[other.row]
    for slot in sorted(demand.slots, key=lambda each: -each.size):
        if _loss(slot, wanted, other) > max(_loss(slot, wanted, chosen), 0):
            jobs = "job is" if slot.expected == 1 else "jobs are"
            left = "slot" if slot.left == 1 else "slots"
            return f"keeps {name}'s {slot.size}-GPU slot: {slot.expected} such {jobs} expected, {slot.left} {left} left"
    less = max(points / PER_GPU, _LEAST)
    return f"leaves {less:.2f} GPUs fewer idle than {name} would, by the pods that are expected"


def _loss(slot: SlotDemand, wanted: Wanted, node: OneNode) -> int:
    """Returns the price of the slots of one size that a row loses."""
    where, (before, after) = node.columns.resources.index[CPU], states_of_row(wanted, node)
    cpu, only = node.allocs[where] - node.uses[where], Demand(0, (), slots=(slot,))
    return slot_losses_of_row(only, wanted, cpu, before.whole, after.whole)
