"""The gang settings of a profile (`pluginConfig`, `Coscheduling`), as the planner and the assembly use them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.api.gangs.levels import DEFAULT_LEVELS, TopologyLevel
from kubenexus.config.args import RESERVATION_SECONDS
from kubenexus.framework.aging import HIGHEST, Aging
from kubenexus.framework.profile import DEFAULT_SCHEDULER

EVERYWHERE = "*"
NODES = DEFAULT_LEVELS[0]


class BackfillSettings(msgspec.Struct, frozen=True):
    """In seconds. `ahead`: ends that are further away are not waited for; 0 turns backfill by time off. `late`: how
    long a job keeps its nodes after its expected start. `longest`: jobs that are expected to run longer do not go ahead
    of it. `report`: how often expected starts are computed for the conditions of pods, 0 for never."""

    ahead: float = 86_400.0
    late: float = 3600.0
    longest: float = 86_400.0
    report: float = 60.0


class GangSettings(msgspec.Struct, frozen=True):
    """`deadline` in seconds; `levels` from the inside out, nodes first; `defaults` by namespace; `aging`: how waiting
    raises the priority of jobs, None if it does not. `reservation_seconds`: how long the first waiting gang keeps
    reserved capacity that does not grow, 0 for no reservation. `provisioning_class`: that of ProvisioningRequests for
    gangs that do not fit, "" for none."""

    deadline: float = 300.0
    levels: tuple[TopologyLevel, ...] = DEFAULT_LEVELS
    defaults: Mapping[str, TopologyRequest] = {}
    aging: Aging | None = Aging()
    reservation_seconds: float = float(RESERVATION_SECONDS)
    backfill: BackfillSettings = BackfillSettings()
    provisioning_class: str = ""

    def default_topology(self, namespace: str) -> TopologyRequest:
        """Returns the topology request of a gang in this namespace that has none of its own."""
        return self.defaults.get(namespace) or self.defaults.get(EVERYWHERE, NO_TOPOLOGY_REQUEST)


def gang_settings(args: Mapping[str, Any], profile: str = "") -> GangSettings:
    """Makes the settings from the arguments of a loaded configuration; defaults if there are none. A profile with
    kube-scheduler's name keeps kube-scheduler's order unless the arguments change it."""
    levels = [TopologyLevel(each["name"], tuple(each["keys"])) for each in args.get("topologyLevels", ())]
    defaults = {
        namespace: TopologyRequest(each.get("required", ""), each.get("preferred", ""))
        for each in args.get("topologyDefaults", ())
        for namespace in each["namespaces"]
    }
    if levels and levels[0].keys != NODES.keys:
        levels.insert(0, NODES)  # always the innermost, whichever levels are configured
    deadline = float(args.get("gangDeadlineSeconds", 300))
    aging = _aging(args.get("starvation"), profile)
    seconds = _reservation(args, profile)
    provisioning_class = args.get("provisioningClassName", "")
    levels_used = tuple(levels) or DEFAULT_LEVELS
    return GangSettings(deadline, levels_used, defaults, aging, seconds, _backfill(args), provisioning_class)


def _aging(settings: Mapping[str, Any] | None, profile: str) -> Aging | None:
    if settings is None:
        return None if profile == DEFAULT_SCHEDULER else Aging()
    threshold = float(settings.get("thresholdSeconds", 60))
    return Aging(threshold, settings.get("boost", 100), settings.get("ceiling", HIGHEST)) if threshold else None


def _backfill(args: Mapping[str, Any]) -> BackfillSettings:
    given = args.get("backfill") or {}
    usual = BackfillSettings()
    return BackfillSettings(
        float(given.get("aheadSeconds", usual.ahead)),
        float(given.get("lateSeconds", usual.late)),
        float(given.get("longestSeconds", usual.longest)),
        float(given.get("reportSeconds", usual.report)),
    )


def _reservation(args: Mapping[str, Any], profile: str) -> float:
    seconds = args.get("reservationSeconds")
    if seconds is None:
        return 0.0 if profile == DEFAULT_SCHEDULER else float(RESERVATION_SECONDS)
    return float(seconds)
