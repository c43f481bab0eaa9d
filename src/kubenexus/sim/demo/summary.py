"""The figures at the end of the demo."""

from collections.abc import Sequence

from kubenexus.sim.controllers.types import JOBS
from kubenexus.sim.demo.cluster_state import ClusterState


def summary(state: ClusterState, moved: int, now: float) -> list[str]:
    """Returns how many pods got a node and how soon, measured from the watch event of the pod to that of its node.

    Pods created before the scheduler placed its first one are not counted in the times.
    """
    if not state.placed:
        return ["", "no pod got a node"]
    first = min(state.placed.values())
    waits = sorted(when - state.born[uid] for uid, when in state.placed.items() if state.born[uid] >= first)
    done = sum(item.says("Complete") for key, item in state.workloads.items() if key.startswith(JOBS))
    return [
        "",
        f"{len(state.placed)} pods got a node; {_quickly(waits)}",
        f"{done} jobs done, {moved} pods moved, {len(state.waiting())} still waiting; "
        f"the first pod had its node after {first - state.began:.1f} s, the story took {now - state.began:.1f} s",
    ]


def _quickly(waits: Sequence[float]) -> str:
    if not waits:
        return "none came once the scheduler ran"
    half, most, last = (_ms(waits[int((len(waits) - 1) * share)]) for share in (0.5, 0.99, 1.0))
    quick = f"half within {half}, 99 % within {most}, all within {last}"
    return f"of the {len(waits)} that came once the scheduler ran {quick}"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
