"""How much of the idle GPU a typical pod of the trace cannot use, as the FGD paper defines fragmentation."""

from kubenexus.sim.replay.policies.fgd import TargetWorkload, target_workload
from kubenexus.sim.replay.policies.node_state import free_cpu, gpus_left, models_of
from kubenexus.sim.replay.traces.trace import Trace
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes


class FragmentationMeter:
    """Measures a cluster against the most frequent shapes of a trace that ask for GPUs."""

    def __init__(self, trace: Trace) -> None:
        shapes = [shape for shape in target_workload(trace) if shape[1]]
        shares = sum(shape[4] for shape in shapes)
        self._workload = TargetWorkload([[*shape[:4], shape[4] / shares] for shape in shapes])
        self._measures = bool(shapes)

    def percent(self, columns: NodeColumns) -> float:
        """Returns the fragmented part of the idle GPU in percent; 0 if none is idle."""
        nodes = Nodes(columns)
        left = gpus_left(nodes)
        idle = int(left.sum())
        if not idle or not self._measures:
            return 0.0
        codes, models = models_of(nodes)
        return round(100 * float(self._workload.fragmentation(free_cpu(nodes), left, codes, models).sum()) / idle, 2)
