"""What a pod asks for and what a node has: the checker's own arithmetic, which shares nothing with the scheduler's.

Everything is counted in thousandths, rounded up, as Kubernetes does.
"""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

Amounts = dict[str, int]

SUFFIXES: Final = {
    **{name: Fraction(1024) ** power for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
    **{name: Fraction(10) ** power for name, power in (("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9))},
    **{name: Fraction(10) ** power for name, power in (("T", 12), ("P", 15), ("E", 18))},
}
ONE: Final = 1000


@lru_cache(maxsize=4096)
def number(text: str) -> int:
    """A quantity as Kubernetes writes them: 1, 250m, 16Gi, 2e3."""
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if text.endswith(suffix):
            return math.ceil(Fraction(text.removesuffix(suffix)) * SUFFIXES[suffix] * ONE)
    return math.ceil(Fraction(text) * ONE)


def amounts(said: Mapping[str, Any] | None) -> Amounts:
    return {name: number(str(text)) for name, text in (said or {}).items()}


def plus(*many: Amounts) -> Amounts:
    total: Amounts = {}
    for each in many:
        for name, amount in each.items():
            total[name] = total.get(name, 0) + amount
    return total


def most(many: Iterable[Amounts]) -> Amounts:
    """The largest of each."""
    found: Amounts = {}
    for each in many:
        for name, amount in each.items():
            found[name] = max(found.get(name, 0), amount)
    return found


def asked_by(pod: Mapping[str, Any]) -> Amounts:
    """Containers and sidecars together, or the largest step on the way there; the overhead; and one pod."""
    spec, running, steps = pod["spec"], Amounts(), list[Amounts]()
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            running = plus(running, _requests(container))
            steps.append(running)
        else:
            steps.append(plus(running, _requests(container)))
    steady = plus(running, *(_requests(each) for each in spec["containers"]))
    return plus(most([*steps, steady]), amounts(spec.get("overhead")), {"pods": ONE})


def left(has: Amounts, asked: Iterable[Amounts]) -> Amounts:
    """What remains; below zero where too much is asked."""
    taken = plus(*asked)
    return {name: has.get(name, 0) - taken.get(name, 0) for name in {*has, *taken}}


def times(asked: Amounts, has: Amounts) -> int:
    """How many pods that ask for this fit into what there is."""
    return max(0, min((has.get(name, 0) // amount for name, amount in asked.items() if amount), default=0))


def over(asked: Iterable[Amounts], has: Amounts) -> list[str]:
    """The resources of which more is asked than there is."""
    return sorted(name for name, amount in left(has, asked).items() if amount < 0)


def _requests(container: Mapping[str, Any]) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests"))
