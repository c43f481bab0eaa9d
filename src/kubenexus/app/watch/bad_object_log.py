"""`BadObjectLog`: logs objects that cannot be used, once for each problem, and counts them by kind."""

from collections import Counter
from typing import Final

from kubenexus.observe import logs

REMEMBERED: Final = 1024  # objects whose problem was logged

log = logs.get("event_handlers")


class BadObjectLog:
    """`logged` are the problems so far by kind: `kubenexus_unusable_objects_total`."""

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}
        self.logged: Counter[str] = Counter()

    def log(self, subject: str, problem: str) -> None:
        """Logs an object, such as "Pod default/web", and again when its problem changes."""
        if self._problems.get(subject) == problem:
            return
        if len(self._problems) >= REMEMBERED:
            self._problems.clear()
        self._problems[subject] = problem
        self.logged[subject.partition(" ")[0]] += 1
        log.error("Cannot use an object", err=problem, object=subject)
