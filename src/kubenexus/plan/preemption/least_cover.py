"""The fewest victims that free enough: a small exact search, and a greedy one where that would take too long."""

from typing import Final, NamedTuple

MAX_STEPS: Final = 400  # of the exact search


class Element(NamedTuple):
    """Pods that go together, or one that goes by itself: what they free on the nodes in question, and what they cost
    (lower first), which decides among equal ones. `pods` are indices of the pool."""

    frees: tuple[float, ...]
    cost: tuple[float, ...]
    pods: tuple[int, ...]


def least_cover(lacking: tuple[float, ...], elements: list[Element]) -> list[Element] | None:
    """Returns the fewest elements that free what is lacking, or None if all together free too little.

    Elements that free the same are exchangeable, and the cheapest of them are taken first, so that the search is over
    how many of each kind are taken.
    """
    needed = [i for i, amount in enumerate(lacking) if amount > 0]
    if any(sum(each.frees[i] for each in elements) < lacking[i] for i in needed):
        return None
    kinds: dict[tuple[float, ...], list[Element]] = {}
    for element in sorted(elements, key=lambda each: each.cost):
        freed = tuple([element.frees[i] for i in needed])
        if any(freed):
            kinds.setdefault(freed, []).append(element)
    if not needed:
        return []
    search = _Search([lacking[i] for i in needed], kinds)
    search.run()
    return search.best or _greedy([lacking[i] for i in needed], kinds)


class _Search:
    def __init__(self, lacking: list[float], kinds: dict[tuple[float, ...], list[Element]]) -> None:
        # Those that free most of what is lacking come first, so that good results are found early.
        self._kinds = sorted(kinds.items(), key=lambda item: -_share(item[0], lacking, lacking))
        self._lacking = lacking
        self._steps = MAX_STEPS
        self.best: list[Element] | None = None
        self._least: tuple[float, ...] = ()

    def run(self) -> None:
        self._from(0, self._lacking, [])

    def _from(self, i: int, lacking: list[float], taken: list[Element]) -> None:
        self._steps -= 1
        if all(amount <= 0 for amount in lacking):
            cost = (len(taken), *(sum(parts) for parts in zip(*(each.cost for each in taken), strict=True)))
            if self.best is None or cost < self._least:
                self.best, self._least = list(taken), cost
            return
        if i == len(self._kinds) or self._steps < 0:
            return
        freed, elements = self._kinds[i]
        least = self._least[0] if self.best is not None else len(taken) + self._number(len(self._kinds))
        most = min(len(elements), int(least) - len(taken), _enough(lacking, freed))
        for number in range(most, -1, -1):
            left = [amount - number * each for amount, each in zip(lacking, freed, strict=True)]
            self._from(i + 1, left, taken + elements[:number])

    def _number(self, until: int) -> int:
        return sum(len(elements) for _, elements in self._kinds[:until])


def _enough(lacking: list[float], freed: tuple[float, ...]) -> int:
    """Returns how many elements of a kind free all that they can help with."""
    return max(
        (int(-(-amount // each)) for amount, each in zip(lacking, freed, strict=True) if amount > 0 < each), default=0
    )


def _share(freed: tuple[float, ...], left: list[float], lacking: list[float]) -> float:
    """Returns how much of what is left to free an element frees, as a sum of shares."""
    shares = [min(a, f) / whole for f, a, whole in zip(freed, left, lacking, strict=True) if a > 0]
    return sum(shares)


def _greedy(lacking: list[float], kinds: dict[tuple[float, ...], list[Element]]) -> list[Element]:
    """Takes the element that frees most of what is still lacking, and in the end leaves out what is not needed."""
    left, taken = list(lacking), list[tuple[tuple[float, ...], Element]]()
    waiting = {freed: list(elements) for freed, elements in kinds.items()}
    while any(amount > 0 for amount in left) and waiting:
        freed = max(waiting, key=lambda each: _share(each, left, lacking))
        taken.append((freed, waiting[freed].pop(0)))
        if not waiting[freed]:
            del waiting[freed]
        left = [amount - each for amount, each in zip(left, freed, strict=True)]
    for freed, element in sorted(taken, key=lambda pair: pair[1].cost, reverse=True):
        without = [amount + each for amount, each in zip(left, freed, strict=True)]
        if all(amount <= 0 for amount in without):
            left = without
            taken.remove((freed, element))
    return [element for _, element in taken]
