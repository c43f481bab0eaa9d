"""Structured logging as in Kubernetes' components: a constant message, then keys and values.

    log = get("scheduling_loop")
    log.info("Bound pod", pod=pod, node="n1")                        # always
    log.v(2, "Unable to schedule pod; no fit; waiting", pod=pod)     # with -v 2 or more
    log.error("Failed to renew lease", error, lock="ns/name")

Messages begin with a capital letter, have no full stop and contain no values. Keys are lowerCamelCase, and an object is
logged under its kind. An expected refusal is not an error. All lines written within `cycle(...)` carry its id.

A line below the verbosity costs one comparison. On hot paths call `log.enabled(4)` before computing values for it.
`observe.log_formatters` has the two output formats.
"""

import contextlib
import logging
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import IO, Any, Final, Literal

from kubenexus.observe.log_formatters import JsonFormatter, KlogFormatter

NAME: Final = "kubenexus"
LOUDEST: Final = 10

# V(0) is INFO, and each further level is one less: the standard library's own comparison does the filtering.
_INFO: Final = logging.INFO

_cycle: ContextVar[str] = ContextVar("cycle", default="")


class Log:
    """A logger with a name and with keys that each of its lines carries."""

    __slots__ = ("_keys", "_logger")

    def __init__(self, logger: logging.Logger, keys: dict[str, Any] | None = None) -> None:
        self._logger = logger
        self._keys = keys or {}

    def enabled(self, level: int) -> bool:
        """Whether a line at this verbosity is written."""
        return self._logger.isEnabledFor(_INFO - level)

    def info(self, message: str, /, **keys: Any) -> None:
        if self._logger.isEnabledFor(_INFO):
            self._write(_INFO, message, keys)

    def v(self, level: int, message: str, /, **keys: Any) -> None:
        """Writes a line at a verbosity from 1 (rare news) to 5 (everything)."""
        if self._logger.isEnabledFor(_INFO - level):
            self._write(_INFO - level, message, keys)

    def warning(self, message: str, /, **keys: Any) -> None:
        if self._logger.isEnabledFor(logging.WARNING):
            self._write(logging.WARNING, message, keys)

    def error(self, message: str, error: BaseException | str | None = None, /, **keys: Any) -> None:
        """Reports something that should not happen. The error's text goes under `err`; its traceback needs -v 5."""
        if self._logger.isEnabledFor(logging.ERROR):
            trace = error if isinstance(error, BaseException) and self.enabled(5) else None
            fields = {} if error is None else {"err": str(error) or type(error).__name__}
            self._write(logging.ERROR, message, fields | keys, trace)

    def bind(self, **keys: Any) -> "Log":
        """Returns the same log with more keys in each line."""
        return Log(self._logger, self._keys | keys)

    def _write(self, level: int, message: str, keys: dict[str, Any], trace: BaseException | None = None) -> None:
        within = _cycle.get()
        fields = keys | self._keys | ({"cycle": within} if within else {})
        self._logger.log(level, message, extra={"keys": fields}, exc_info=trace, stacklevel=3)


def get(name: str = "") -> Log:
    """Returns the log of a part of the program. Without `configure` only warnings and errors are written."""
    return Log(logging.getLogger(f"{NAME}.{name}" if name else NAME))


@contextlib.contextmanager
def cycle(number: str) -> Iterator[None]:
    """Adds this id to everything logged in the block, and in tasks started in the block."""
    token = _cycle.set(number)
    try:
        yield
    finally:
        _cycle.reset(token)


def configure(
    verbosity: int = 0, form: Literal["text", "json"] = "text", stream: IO[str] | None = None
) -> logging.Handler:
    """Applies `-v` and `--logging-format`; the command calls it once. Returns the handler, so that the caller can
    remove it.

    Lines of other packages take the same format, from warnings upwards.
    """
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormatter() if form == "json" else KlogFormatter())
    logging.getLogger().addHandler(handler)
    logging.getLogger(NAME).setLevel(_INFO - min(verbosity, LOUDEST))
    return handler
