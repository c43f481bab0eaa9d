"""A node where a pod would fit without some pods, and the choice among such nodes."""

from collections.abc import Callable, Sequence

import msgspec

from kubenexus.state.pods import PodRecord

# Added to each priority, so that no summand is negative: fewer victims of negative priority are better than more.
_PRIORITY_OFFSET = 1 << 31


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A node with its victims, the most important first, and how many of them violate a PodDisruptionBudget."""

    node: str
    victims: tuple[PodRecord, ...]
    pdb_violations: int = 0


def best_candidates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Returns the candidates that are equally good by all criteria. Each criterion only separates what the ones before
    left equal. kube-scheduler takes any one of those that remain."""
    best = list(candidates)
    for cost in _COSTS:
        if len(best) < 2:
            break
        costs = [cost(each) for each in best]
        least = min(costs)
        best = [each for each, its in zip(best, costs, strict=True) if its == least]
    return best


def importance(pod: PodRecord) -> tuple[int, float]:
    """Returns a key that sorts the most important pod first: by priority, then the one that runs for longer."""
    return -pod.priority, pod.started_at


def _violations(each: Candidate) -> float:
    return each.pdb_violations


def _highest_priority(each: Candidate) -> float:
    return each.victims[0].priority


def _sum_of_priorities(each: Candidate) -> float:
    return sum(pod.priority + _PRIORITY_OFFSET for pod in each.victims)


def _number_of_victims(each: Candidate) -> float:
    return len(each.victims)


def _work_lost(each: Candidate) -> float:
    """The earlier the first of the victims of the highest priority started, the more work is lost."""
    highest = max(pod.priority for pod in each.victims)
    return -min(pod.started_at for pod in each.victims if pod.priority == highest)


_COSTS: Sequence[Callable[[Candidate], float]] = (
    _violations,
    _highest_priority,
    _sum_of_priorities,
    _number_of_victims,
    _work_lost,
)
