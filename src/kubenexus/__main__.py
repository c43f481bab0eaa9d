"""The `kubenexus` command, as a console script and as `python -m kubenexus`. Handles signals from its first line on.

The imports of `run` take half a second to seconds. A signal in that time ends the process with one line. As process 1
of a container the process needs a handler to be ended at all: the kernel drops a TERM that process 1 does not handle.
"""

import os
import signal
import sys
from types import FrameType

RUN_UNTIL_INTERRUPTED = ("agents", "cluster", "run", "web", "webhook")  # commands that a TERM ends with exit code 0
_EXIT_CODES = {signal.SIGTERM: 0, signal.SIGINT: 130}


def main() -> None:
    """Runs the command in `sys.argv`. The handlers of `run` and its like replace those for the start once their event
    loop runs. Other commands keep Python's handlers: for them a TERM is a failure."""
    if sys.argv[1:2] and sys.argv[1] in RUN_UNTIL_INTERRUPTED:
        for number in _EXIT_CODES:
            signal.signal(number, _end)
    from kubenexus.cli import main as command

    command(prog_name="kubenexus")


def plugin() -> None:
    """The same commands as `kubectl nexus`: kubectl runs the console script `kubectl-nexus`."""
    from kubenexus.cli import main as command

    command(prog_name="kubectl nexus")


def complete_plugin() -> None:
    """The console script `kubectl_complete-nexus`, which kubectl runs to complete `kubectl nexus ...`."""
    from kubenexus.cli.completion import plugin_candidates

    sys.stdout.write(plugin_candidates(sys.argv[1:]))


def _end(number: int, _: FrameType | None) -> None:
    """Ends the process at once: an exception could be lost in an import, or be printed with a traceback."""
    ending = signal.Signals(number)
    try:
        os.write(2, f"kubenexus: {ending.name} while starting; ended\n".encode())
    finally:
        os._exit(_EXIT_CODES[ending])


if __name__ == "__main__":
    main()
