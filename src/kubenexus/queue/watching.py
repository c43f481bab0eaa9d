"""Lines that wait for events, and the events that they have yet to be asked about.

An event is written down once for each plugin whose refusals it may overturn; the lines that the plugin refused are
asked about it later, a bounded number in each turn of the loop (`queue.allowance`). One tenant can have 10,000 lines,
and to ask and wake all of them takes 0.4 s.

    _lines    for each plugin of a profile, by share, the lines it refused: those asked the longest ago come first
    _events   for each plugin of a profile, what some of its lines have yet to be asked about, with its number
    _unheard  the shares with such lines, by priority

A share is a priority in a namespace. Those of the highest priority are asked first, so that no job takes the room that
an event gives to a job of more priority; shares of one priority take turns line by line, so that a namespace with
10,000 lines does not delay one with a single line.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from kubenexus.framework.events import Event
from kubenexus.queue.changes import EVERYTHING
from kubenexus.queue.line import Line, Share
from kubenexus.queue.rules import NOBODY, Rules

# Events that are kept for a plugin. A line that is further behind is woken without being asked: a useless attempt costs
# about as much as a hundred answers, and a job must never miss what helps it.
LIMIT: Final = 4096

_Key = tuple[Rules, str]
_NONE: Final[OrderedDict[Line, None]] = OrderedDict()


class Watching:
    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        # Ordered, since the first of thousands is taken again and again: a plain dictionary would skip all before it.
        self._lines: dict[_Key, dict[Share, OrderedDict[Line, None]]] = {}
        self._events: dict[_Key, list[tuple[int, Event]]] = {}
        self._unheard: dict[int, dict[Share, None]] = {}
        self._count = 0

    def __bool__(self) -> bool:
        """Whether any line waits for events."""
        return bool(self._lines)

    @property
    def any_unheard(self) -> bool:
        """Whether some line may have yet to be asked about something."""
        return bool(self._unheard)

    def of(self, rules: Rules, plugin: str) -> Iterator[Line]:
        """The lines that this plugin refused."""
        for lines in self._lines.get((rules, plugin), {}).values():
            yield from lines

    # --- lines come and go ------------------------------------------------------------------------------------------

    def put(self, line: Line) -> None:
        """The line waits for events from now on; one that already does stays where it is."""
        for plugin in line.blamed:
            shares = self._lines.setdefault((line.rules, plugin), {})
            lines = shares.setdefault(line.share, OrderedDict())
            if line not in lines:
                lines[line] = None
                line.heard = self._count

    def drop(self, line: Line) -> None:
        for plugin in line.blamed:
            shares = self._lines.get((line.rules, plugin), {})
            lines = shares.get(line.share, _NONE)
            if line in lines:
                del lines[line]
                if not lines:
                    del shares[line.share]
                if not shares:
                    del self._lines[line.rules, plugin]

    # --- events -----------------------------------------------------------------------------------------------------

    def happened(self, rules: Rules, event: Event) -> None:
        """Takes time by plugins and namespaces, not by lines."""
        self._count += 1
        concerned = rules.concerned(event)
        for key, shares in self._lines.items():
            if key[0] is rules and (event.for_all or key[1] in concerned or (concerned and key[1] == NOBODY)):
                self._note(key, event)
                for share in shares:
                    self._unheard.setdefault(share.priority, {})[share] = None

    def unheard(self, line: Line) -> Iterator[tuple[str, Event]]:
        """What happened since the line was last asked and may concern it, with the plugin whose refusal it may end."""
        for plugin in line.blamed:
            events = self._events.get((line.rules, plugin), ())
            for _, event in events[bisect_right(events, line.heard, key=_number) :]:
                if event.ceiling is None or line.priority <= event.ceiling:
                    yield plugin, event

    def heard(self, line: Line) -> None:
        """The line was asked about all that happened. If it still waits it comes last of its share."""
        line.heard = self._count
        for plugin in line.blamed:
            lines = self._lines.get((line.rules, plugin), {}).get(line.share, _NONE)
            if line in lines:
                lines.move_to_end(line)

    def next(self) -> Line | None:
        """The line to be asked next; None: each knows all that happened, which is then forgotten."""
        while self._unheard:
            priority = max(self._unheard)
            shares = self._unheard[priority]
            share = next(iter(shares))
            del shares[share]
            line = self._behind(share)
            if line is not None:
                shares[share] = None  # the others of this priority have a turn first
                return line
            if not shares:
                del self._unheard[priority]
        self._events.clear()
        return None

    def _behind(self, share: Share) -> Line | None:
        """A line of this share that has yet to be asked about something. Each plugin's lines are in the order in which
        they were last asked, so that the first of them tells."""
        for (rules, plugin), events in self._events.items():
            lines = self._lines.get((rules, plugin), {}).get(share)
            line = next(iter(lines)) if lines else None
            if line is not None and line.heard < events[-1][0]:
                return line
        return None

    def _note(self, key: _Key, event: Event) -> None:
        events = self._events.setdefault(key, [])
        events.append((self._count, event))
        if len(events) > self._limit:
            half = self._limit // 2
            events[:half] = [(events[half - 1][0], EVERYTHING)]


def _number(pair: tuple[int, Event]) -> int:
    return pair[0]
