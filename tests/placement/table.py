"""Computes which kind of node wins each kind of pod with the shipped profile, and which plugin decided it."""

from typing import Final, NamedTuple

from kubenexus.explain.explanation import NodeRating
from kubenexus.plugins.devices.request import needs_of
from kubenexus.plugins.workload.workload_aware import PACK, placement_of
from tests.placement.decisions import decide_in_turn, dump_of
from tests.placement.mixed_cluster import NODE_KINDS, POD_KINDS, PodKind, cluster

KINDS: Final = {kind.name: kind.text for kind in NODE_KINDS}
NOTABLE: Final = 3  # a plugin is named if it gives at least a third of the largest difference


class Row(NamedTuple):
    """A kind of pod: the total points by text of the node's kind, None where it is refused; the winner, and why."""

    pod: str
    points: dict[str, int | None]
    winner: str
    why: str


def rows() -> list[Row]:
    """Returns the row of each kind of pod."""
    return [_row(kind) for kind in POD_KINDS]


def _row(kind: PodKind) -> Row:
    (placed,) = decide_in_turn([*cluster(), kind.pod]).values()
    totals = {rating.node: rating.total for rating in placed.ratings}
    points = {text: totals.get(name) for name, text in KINDS.items()}
    return Row(kind.text, points, KINDS[placed.node], _why(kind, placed.ratings))


def _why(kind: PodKind, ratings: tuple[NodeRating, ...]) -> str:
    """Returns what the plugins that decided prefer about the winner, with the difference to the next kind of node."""
    if len(ratings) == 1:
        return "no other node fits"
    best, second = ratings[:2]
    lost = {score.plugin: score.weight * score.normalized for score in second.scores}
    gains = {score.plugin: score.weight * score.normalized - lost[score.plugin] for score in best.scores}
    largest = max(gains.values())
    decided = sorted((name for name in gains if NOTABLE * gains[name] >= largest), key=lambda name: -gains[name])
    parts = [f"{_preference(name, kind)} ({name} +{gains[name]})" for name in decided]
    return f"beats *{KINDS[second.node]}*: {'; '.join(parts)}"


def _preference(plugin: str, kind: PodKind) -> str:
    """Returns what a plugin that gave the winner more points prefers."""
    (pod,) = dump_of([kind.pod]).pods.values()
    packs, device_pod = placement_of(pod) == PACK, needs_of(pod) is not None
    strategy = "it is packed, and here is more in use" if packs else "it is spread, and here is less in use"
    return {
        "WorkloadAwareScoring": strategy,
        "BackfillScoring": "it fills gaps, by the same strategy",
        "NodeResourcesFit": "more is free",
        "TenantHardwareAffinityScore": "GPUs of the tenant's tier" if device_pod else "it needs no GPUs",
        "ResourceFragmentationScore": "no whole island is broken" if device_pod else "it needs no GPUs",
        "VRAMScheduler": "the memory fits the card",
        "GPUTopology": "the GPUs are joined",
        "NetworkFabricScore": "the better fabric",
    }[plugin]
