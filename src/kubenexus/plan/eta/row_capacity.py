"""How many pods of each kind every row takes, kept up to date row by row while pods start and end."""

from typing import Any, Final

import numpy as np

from kubenexus.plan.eta.queue_model import QueueModel

UNLIMITED: Final = 1 << 31


class RowCapacity:
    """`capacity[k, n]` and its sum `total[k]`. `take` and `give` change a row; one costs about 20 µs for all kinds."""

    def __init__(self, model: QueueModel) -> None:
        self._model = model
        self._amount = np.maximum(model.demand, 1)
        self._unused = np.where(model.demand > 0, 0, UNLIMITED)
        self._share = np.maximum(model.card_share, 1)[:, None]
        self._number = np.maximum(model.card_number, 1)
        self._without_cards = model.card_number == 0
        self._any_cards = bool((model.card_number > 0).any()) and bool(model.cards.size)
        self.free, self.cards = model.free.copy(), model.cards.copy()
        self.capacity = np.stack([self.of_kind(kind) for kind in range(len(model.demand))])
        self.total = self.capacity.sum(axis=1)

    def copy(self) -> "RowCapacity":
        """Returns one that may be changed by itself."""
        found = object.__new__(RowCapacity)
        found.__dict__.update(self.__dict__)
        for name in ("free", "cards", "capacity", "total"):
            setattr(found, name, getattr(self, name).copy())
        return found

    def of_kind(self, kind: int, free: Any = None, cards: Any = None, rows: Any = slice(None)) -> Any:
        """Returns how many pods of a kind rows take, with these amounts free."""
        free = self.free if free is None else free
        found = (free // self._amount[kind] + self._unused[kind]).min(axis=1, initial=UNLIMITED)
        if self._any_cards and not self._without_cards[kind]:
            cards = self.cards if cards is None else cards
            np.minimum(found, (cards // self._share[kind]).sum(axis=1) // self._number[kind], out=found)
        return np.where(self._model.open[kind, rows], np.maximum(found, 0), 0)

    def take(self, row: int, kind: int, count: int) -> list[tuple[int, int]]:
        """Counts pods of a kind on a row. Returns what they hold of its cards."""
        self.free[row] -= self._model.demand[kind] * count
        held = self._take_cards(row, kind, count) if self._any_cards and not self._without_cards[kind] else []
        self._update(row)
        return held

    def give(self, row: int, amounts: Any, cards: tuple[tuple[int, int], ...] | list[tuple[int, int]]) -> None:
        """Counts what a pod frees on a row."""
        self.free[row] += amounts
        for slot, share in cards:
            self.cards[row, slot] += share
        self._update(row)

    def _take_cards(self, row: int, kind: int, count: int) -> list[tuple[int, int]]:
        """Takes the fullest cards that hold the share."""
        held, share, left = list[tuple[int, int]](), int(self._share[kind, 0]), self.cards[row]
        for _ in range(count * int(self._number[kind])):
            slot = int(np.where(left >= share, left, UNLIMITED).argmin())
            left[slot] -= share
            held.append((slot, share))
        return held

    def _update(self, row: int) -> None:
        found = (self.free[row] // self._amount + self._unused).min(axis=1, initial=UNLIMITED)
        if self._any_cards:
            by_card = (self.cards[row] // self._share).sum(axis=1) // self._number
            found = np.where(self._without_cards, found, np.minimum(found, by_card))
        found = np.where(self._model.open[:, row], np.maximum(found, 0), 0)
        self.total += found - self.capacity[:, row]
        self.capacity[:, row] = found
