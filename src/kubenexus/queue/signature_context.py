"""What signatures and refusals depend on besides the pods: compared with the last look, since no event reports it."""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from kubenexus.queue.queue_profile import QueueProfile


class ContextChange(NamedTuple):
    """`signatures`: jobs have to be signed again. `refusals`: each refused job may be let in now."""

    signatures: bool
    refusals: bool


class SignatureContext:
    """The contexts and selectors of all profiles, as they were at the last look."""

    def __init__(self, profiles: Iterable[QueueProfile]) -> None:
        self._contexts = [profile.context for profile in profiles if profile.context is not None]
        self._selectors = [profile.selectors for profile in profiles if profile.selectors is not None]
        self._context: list[Hashable] = [context() for context in self._contexts]
        self._selected: list[Hashable] = [selectors() for selectors in self._selectors]

    def take_change(self) -> ContextChange:
        """Returns what has changed since the last call."""
        context: list[Hashable] = [context() for context in self._contexts]
        selected: list[Hashable] = [selectors() for selectors in self._selectors]
        change = ContextChange(context != self._context, selected != self._selected)
        self._context, self._selected = context, selected
        return change
