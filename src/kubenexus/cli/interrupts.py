"""Ctrl-C: once to end in order, twice to end at once. No traceback either way."""

import asyncio
import contextlib
import os
import signal

import click

AT_ONCE = 130  # what shells say of a program that was interrupted


def interrupt_event(restore: str = "") -> asyncio.Event:
    """Set when somebody wants us to end. The second time we end at once: `restore` gives the terminal back, and
    whoever watches our pipes cleans up."""
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


def loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    """uvloop where it is installed."""
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.Loop
    return None
