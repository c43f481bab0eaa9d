"""A SIGINT ends a command even when it comes while objects are freed."""

import signal
import weakref

import pytest

from kubenexus.cli.interrupts import interrupts_held


class _Freed:
    """An object that another one waits for."""


def test_a_sigint_in_a_weak_references_callback_is_raised_at_the_end_of_the_block() -> None:
    thing, calls = _Freed(), list[str]()

    def freed(_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        calls.append("freed")

    waiting = weakref.ref(thing, freed)
    things = [thing]
    del thing

    def block() -> None:
        with interrupts_held():
            things.clear()
            calls.append("still in the block")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert calls == ["freed", "still in the block"]
    assert waiting() is None


def test_the_next_sigint_is_raised_at_once() -> None:
    with interrupts_held():
        pass
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
