"""What a profile says about gangs (`pluginConfig`, `Coscheduling`), as the planner and the assembly want it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.api.gangs.levels import DEFAULT_LEVELS, TopologyLevel
from kubenexus.config.catalogue import DEFAULT_SCHEDULER
from kubenexus.framework.aging import HIGHEST, Aging

EVERYWHERE = "*"
NODES = DEFAULT_LEVELS[0]


class GangSettings(msgspec.Struct, frozen=True):
    """`deadline` in seconds; `levels` from the inside out, nodes first; `defaults` by namespace; `aging`: how waiting
    makes jobs more urgent, if it does; `reservation_seconds`: for how many seconds the first gang in line keeps room
    that does not grow, 0 for none."""

    deadline: float = 300.0
    levels: tuple[TopologyLevel, ...] = DEFAULT_LEVELS
    defaults: Mapping[str, TopologyRequest] = {}
    aging: Aging | None = Aging()
    reservation_seconds: float = 300.0

    def default_topology(self, namespace: str) -> TopologyRequest:
        """How close the members of a gang in this namespace shall be, if nobody says so."""
        return self.defaults.get(namespace) or self.defaults.get(EVERYWHERE, NO_TOPOLOGY_REQUEST)


def gang_settings(args: Mapping[str, Any], profile: str = "") -> GangSettings:
    """From the arguments as a configuration has them once it was read; nothing was said without any. A profile with
    kube-scheduler's name keeps to its order unless it says otherwise."""
    levels = [TopologyLevel(each["name"], tuple(each["keys"])) for each in args.get("topologyLevels", ())]
    defaults = {
        namespace: TopologyRequest(each.get("required", ""), each.get("preferred", ""))
        for each in args.get("topologyDefaults", ())
        for namespace in each["namespaces"]
    }
    if levels and levels[0].keys != NODES.keys:
        levels.insert(0, NODES)  # the innermost, whoever names others
    deadline = float(args.get("gangDeadlineSeconds", 300))
    aging = _aging(args.get("starvation"), profile)
    return GangSettings(deadline, tuple(levels) or DEFAULT_LEVELS, defaults, aging, _reservation(args, profile))


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
