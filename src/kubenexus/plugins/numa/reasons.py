"""Why NUMATopology refuses nodes."""

from typing import Final

from kubenexus.framework.verdict import Reason

NO_ALIGNMENT: Final = Reason("node(s) didn't have NUMA nodes that the kubelet could align the pod on")
NO_ROOM: Final = Reason("node(s) didn't have the exclusive CPUs, memory or devices on their NUMA nodes")
NOT_KEPT: Final = Reason("node(s) couldn't keep the pod's NUMA policy")
KEPT: Final = Reason("node(s) would have put the pod on a NUMA node that pods keep for themselves")
REASONS: Final = (NO_ALIGNMENT, NO_ROOM, NOT_KEPT)  # in the order of `judging.Refusals`
