"""Who waits because he was refused, and by whom: what metrics tell of it, read off the lines and the gates."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kubenexus.queue.entry import Entry
from kubenexus.queue.line import Line
from kubenexus.queue.rules import NOBODY


class Refusal(NamedTuple):
    """So many pods were refused by these plugins. `short`: for how many members of gangs there is no room."""

    plugins: tuple[str, ...]
    profile: str
    pods: int
    short: int = 0


def refusals(lines: Iterable[Line], gated: Iterable[Entry]) -> Iterator[Refusal]:
    """Looks at every line, and at every job at a gate."""
    for line in lines:
        if line.refusals and line.decision is not None:
            certificate = line.decision.certificate
            short = 0 if certificate is None else certificate.missing * len(line.members)
            plugins = tuple(each for each in line.blamed if each != NOBODY)
            yield Refusal(plugins, line.kind.specimens[0].spec.scheduler_name, line.pods, short)
    for entry in gated:
        if entry.gate is not None:
            yield Refusal((entry.gate.plugin,), entry.job.pods[0].spec.scheduler_name, entry.pods)
