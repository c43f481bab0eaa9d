"""The plugins that are known by name: their extension points, the default set, and removed names.

kube-scheduler's table is that of 1.37 with default feature gates. A name is listed whether its plugin is built or not:
a configuration that names it is valid, and loading it notes which plugins are missing.
"""

import inspect
from collections.abc import Mapping
from typing import Final

from kubenexus.config.args import KINDS
from kubenexus.config.v1 import POINTS, Plugin
from kubenexus.framework.profile import DEFAULT_SCHEDULER, Factory

_FILTER: Final = "preFilter filter"
_SCORE: Final = "preScore score"

# In the order of kube-scheduler's default set, then those of its plugins that are off by default.
_UPSTREAM: Final = {
    "SchedulingGates": "preEnqueue",
    "PrioritySort": "queueSort",
    "NodeName": _FILTER,
    "NodeUnschedulable": _FILTER,
    "TaintToleration": f"{_FILTER} {_SCORE}",
    "NodeAffinity": f"{_FILTER} {_SCORE}",
    "NodePorts": _FILTER,
    "NodeResourcesFit": f"{_FILTER} {_SCORE} placementScore",
    "VolumeRestrictions": _FILTER,
    "NodeVolumeLimits": _FILTER,
    "VolumeBinding": f"{_FILTER} {_SCORE} reserve preBind",
    "VolumeZone": _FILTER,
    "PodTopologySpread": f"{_FILTER} {_SCORE}",
    "InterPodAffinity": f"{_FILTER} {_SCORE}",
    "DynamicResources": f"preEnqueue {_FILTER} postFilter score reserve preBind podGroupPostFilter",
    "DefaultPreemption": "preEnqueue postFilter podGroupPostFilter",
    "NodeResourcesBalancedAllocation": _SCORE,
    "ImageLocality": "score",
    "DefaultBinder": "bind",
    "NodeDeclaredFeatures": _FILTER,
    "DeferredPodScheduling": f"{_FILTER} permit",
    "GangScheduling": "preEnqueue permit",
    "TopologyPlacementGenerator": "placementGenerate",
    "PodGroupPodsCount": "placementScore",
}
_OFF: Final = {"DeferredPodScheduling", "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"}
_WEIGHTS: Final = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}

# The names of the founding documents, at the points their sample configurations use.
_OWN: Final = {
    "ProfileClassifier": "preFilter",
    "Coscheduling": "queueSort preFilter reserve permit",
    "ResourceReservation": f"{_FILTER} reserve postBind",
    "NUMATopology": f"{_FILTER} {_SCORE} reserve preBind",
    "DeviceFit": f"{_FILTER} reserve preBind",
    "VRAMScheduler": f"{_FILTER} {_SCORE}",
    "GPUTopology": f"{_FILTER} {_SCORE}",
    "NetworkFabricScore": f"{_FILTER} {_SCORE}",
    "ResourceFragmentationScore": f"{_FILTER} {_SCORE}",
    "TenantHardwareAffinityScore": f"{_FILTER} {_SCORE}",
    "WorkloadAwareScoring": _SCORE,
    "TopologyScoring": _SCORE,
    "BackfillScoring": _SCORE,
    "GangPreemption": "postFilter",
}

# Names without a plugin: the planner does this work, and the arguments under these names are its settings.
GANG_PREEMPTION: Final = "GangPreemption"
PLANNER: Final = ("Coscheduling", GANG_PREEMPTION, "ResourceReservation")
PREEMPTION: Final = "DefaultPreemption"  # nor this: the planner finds victims, and `app.preemption` evicts them
BINDER: Final = "DefaultBinder"  # no plugin either: the dispatcher binds

# Names that kube-scheduler once had and now refuses.
REMOVED: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})

# A profile with kube-scheduler's name has exactly its plugins; every other one also has the planner's.
UPSTREAM_SET: Final = tuple(Plugin(name=name, weight=_WEIGHTS.get(name)) for name in _UPSTREAM if name not in _OFF)
# Our own plugins that every other profile has, with their weights.
_SHIPPED: Final = {
    "ProfileClassifier": None,
    "WorkloadAwareScoring": 3,
    "BackfillScoring": 2,
    "TenantHardwareAffinityScore": 16,
    "DeviceFit": None,
    "VRAMScheduler": 5,
    "GPUTopology": 2,
    "ResourceFragmentationScore": 5,
    "NetworkFabricScore": 3,
    "TopologyScoring": 3,
    "NUMATopology": 4,
}
# What users and administrators ask for counts as much beside our own plugins as beside kube-scheduler's
# (`plugins.REQUESTED_FACTOR`).
_REQUESTED: Final = ("TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity")
_REQUESTED_FACTOR: Final = 4
SHIPPED_SET: Final = (
    *(
        Plugin(name=each.name, weight=each.weight * _REQUESTED_FACTOR)
        if each.name in _REQUESTED and each.weight is not None
        else each
        for each in UPSTREAM_SET
    ),
    *(Plugin(name=name, weight=weight) for name, weight in _SHIPPED.items()),
    *(Plugin(name=name) for name in PLANNER),
)

# The points in a configuration for the methods of our contract (`framework.extension_points`).
_METHODS: Final = {
    "pre_enqueue": "preEnqueue",
    "sort_key": "queueSort",
    "node_names": "preFilter",
    "pre_filter": "preFilter",
    "filter": _FILTER,
    "capacity": "filter",
    "score": _SCORE,
    "assign": "reserve preBind",
}


def default_set(profile: str) -> tuple[Plugin, ...]:
    """Returns the plugins that are on by default in a profile of this name."""
    return UPSTREAM_SET if profile == DEFAULT_SCHEDULER else SHIPPED_SET


class Catalogue:
    """All names that a configuration may use: those above, and those of the installed plugins."""

    def __init__(self, factories: Mapping[str, Factory]) -> None:
        self.factories = factories
        tables = {**_UPSTREAM, **_OWN}
        self.points = {name: frozenset(points.split()) for name, points in tables.items()}
        for name in factories.keys() - _UPSTREAM.keys():
            self.points[name] = self.points.get(name, frozenset()) | _points_of(factories[name])
        self._able = {point: frozenset(n for n, points in self.points.items() if point in points) for point in POINTS}

    def __contains__(self, name: str) -> bool:
        return name in self.points

    def extends(self, name: str, point: str) -> bool:
        return point in self.points.get(name, ())

    def able(self, point: str) -> frozenset[str]:
        """Returns all plugins that have a point."""
        return self._able[point]

    def takes_no_args(self, name: str) -> bool:
        return (name in _UPSTREAM or name in _SHIPPED) and name not in KINDS

    def is_built(self, name: str) -> bool:
        """Returns whether the plugin exists. In profiles of other names than kube-scheduler's, GangPreemption does what
        DefaultPreemption does."""
        return name in self.factories or name in PLANNER or name in (BINDER, PREEMPTION)


def _points_of(factory: Factory) -> frozenset[str]:
    """Returns the points of an installed plugin. A factory that is no class does not show them: then all are
    possible."""
    known = _METHODS.items()
    implemented = [p for method, p in known if not inspect.isclass(factory) or callable(getattr(factory, method, None))]
    return frozenset(" ".join(implemented).split())
