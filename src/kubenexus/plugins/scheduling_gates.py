"""SchedulingGates: a pod with scheduling gates does not enter the queue until they are removed."""

from collections.abc import Mapping
from typing import Any

from kubenexus.api.core import Pod
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.verdict import Code, Verdict


class SchedulingGates:
    name = "SchedulingGates"
    reads = ()
    events_to_register = (
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def pre_enqueue(self, pod: Pod) -> Verdict | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        listed = " ".join(gate.name for gate in gates)
        return Verdict(Code.UNRESOLVABLE, (f"waiting for scheduling gates: [{listed}]",), self.name)
