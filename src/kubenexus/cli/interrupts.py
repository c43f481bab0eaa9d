"""The event loop of commands and its end by Ctrl-C: the first in order, the second at once. No traceback either way."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator

import click

AT_ONCE = 130  # the exit code that shells use for an interrupted program


def interrupt_event(restore: str = "") -> asyncio.Event:
    """Returns an event that the first SIGINT or SIGTERM sets. The second ends the process at once.

    `restore` is printed before that exit, to reset the terminal. Child processes notice the closed pipes and clean up.
    """
    ended = asyncio.Event()

    def end() -> None:
        if ended.is_set():
            click.echo(restore, nl=False)
            click.echo("interrupted twice: ended at once", err=True)
            os._exit(AT_ONCE)
        ended.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, end)
    return ended


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Delivers a SIGINT of the block at its end. In a finalizer or a weak reference's callback it would be lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    """Returns uvloop's event loop if uvloop is installed: about twice the task switches a second. Otherwise None."""
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.Loop
    return None
