"""Jobs at a gate: they may not even be tried until a plugin lets them in.

Most gates open when the pod itself is updated. Others wait for something else (a claim, the rest of a gang) and name
the events; and every five minutes a gate is asked again, whatever it named.
"""

from collections.abc import Iterable, Iterator

from kubenexus.framework.verdict import Verdict
from kubenexus.queue.entry import Entry
from kubenexus.queue.rules import Rules


class Gates:
    def __init__(self) -> None:
        self._shut: dict[Entry, tuple[Rules, str]] = {}  # the one that was asked longest ago first
        self._by_plugin: dict[tuple[Rules, str], dict[Entry, None]] = {}

    def __len__(self) -> int:
        return len(self._shut)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._shut)

    def shut(self, entry: Entry, rules: Rules, verdict: Verdict, now: float) -> None:
        self.open(entry)
        (plugin,) = rules.known((verdict.plugin,))
        entry.gate, entry.asked_at = verdict, now
        self._shut[entry] = (rules, plugin)
        self._by_plugin.setdefault((rules, plugin), {})[entry] = None

    def open(self, entry: Entry) -> None:
        entry.gate = None
        key = self._shut.pop(entry, None)
        if key is not None:
            bucket = self._by_plugin[key]
            del bucket[entry]
            if not bucket:
                del self._by_plugin[key]

    def behind(self, rules: Rules, plugins: Iterable[str]) -> list[tuple[Entry, str]]:
        """The jobs that these plugins keep out, with the plugin."""
        return [(entry, plugin) for plugin in plugins for entry in self._by_plugin.get((rules, plugin), ())]

    @property
    def first(self) -> Entry | None:
        """The one that was asked longest ago."""
        return next(iter(self._shut), None)
