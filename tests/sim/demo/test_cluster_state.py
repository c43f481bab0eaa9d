"""What the steps read from the cluster state."""

from kubenexus.base.clock import VirtualClock
from kubenexus.sim.demo.cluster_state import ClusterState
from kubenexus.testing.builders import a_pod


def test_nodes_that_an_app_uses_one_after_the_other_are_not_used_at_once() -> None:
    state = ClusterState(VirtualClock(10.0))
    for name, node, began, end in [("a", "n0", 1, 3), ("b", "n1", 2, 4), ("c", "n2", 3, 5), ("d", "n1", 3, None)]:
        state.pods[f"default/{name}"] = a_pod(name, uid=name, labels={"app": "batch"}, node=node)
        state.placed[name] = began
        if end is not None:
            state.ended[name] = end
    state.pods["default/late"] = a_pod("late", uid="late", labels={"app": "batch"})
    assert state.nodes_at_once("batch") == 2
    assert state.nodes_at_once("shop") == 0
