"""What a profile says about gangs (`pluginConfig`, `Coscheduling`), as the planner and the assembly want it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubenexus.api.gangs.claim import UNSAID, Nearness
from kubenexus.api.gangs.levels import LEVELS, Level
from kubenexus.config.catalogue import DEFAULT_SCHEDULER
from kubenexus.framework.aging import HIGHEST, Aging

EVERYWHERE = "*"
NODES = LEVELS[0]


class GangSettings(msgspec.Struct, frozen=True):
    """`deadline` in seconds; `levels` from the inside out, nodes first; `defaults` by namespace; `aging`: how waiting
    makes jobs more urgent, if it does; `reservation`: for how many seconds the first gang in line keeps room that does
    not grow, 0 for none."""

    deadline: float = 300.0
    levels: tuple[Level, ...] = LEVELS
    defaults: Mapping[str, Nearness] = {}
    aging: Aging | None = Aging()
    reservation: float = 300.0

    def usual(self, namespace: str) -> Nearness:
        """How close the members of a gang in this namespace shall be, if nobody says so."""
        return self.defaults.get(namespace) or self.defaults.get(EVERYWHERE, UNSAID)


def gang_settings(args: Mapping[str, Any], profile: str = "") -> GangSettings:
    """From the arguments as a configuration has them once it was read; nothing was said without any. A profile with
    kube-scheduler's name keeps to its order unless it says otherwise."""
    levels = [Level(each["name"], tuple(each["keys"])) for each in args.get("topologyLevels", ())]
    defaults = {
        namespace: Nearness(each.get("required", ""), each.get("preferred", ""))
        for each in args.get("topologyDefaults", ())
        for namespace in each["namespaces"]
    }
    if levels and levels[0].keys != NODES.keys:
        levels.insert(0, NODES)  # the innermost, whoever names others
    deadline = float(args.get("gangDeadlineSeconds", 300))
    aging = _aging(args.get("starvation"), profile)
    return GangSettings(deadline, tuple(levels) or LEVELS, defaults, aging, _reservation(args, profile))


def _aging(said: Mapping[str, Any] | None, profile: str) -> Aging | None:
    if said is None:
        return None if profile == DEFAULT_SCHEDULER else Aging()
    threshold = float(said.get("thresholdSeconds", 60))
    return Aging(threshold, said.get("boost", 100), said.get("ceiling", HIGHEST)) if threshold else None


def _reservation(args: Mapping[str, Any], profile: str) -> float:
    said = args.get("reservationSeconds")
    if said is None:
        return 0.0 if profile == DEFAULT_SCHEDULER else 300.0
    return float(said)
