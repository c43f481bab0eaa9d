"""What kube-scheduler's default profile runs, and how much of it we have built."""

from typing import Final

from kubenexus.framework.profile import EnabledPlugin, Profile, ProfilePlugins, stands_in
from kubenexus.plugins import BUILT_IN, default_profile

# In upstream's order: the first that refuses a node is the one that is reported.
FILTERS: Final = (
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
)
# With their weights.
SCORES: Final = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


class BuiltProfile:
    """Our lineup of upstream's plugins, in our order and with our weights (they are on trial, too), default arguments.

    Which of them exist is read from the table of built-in plugins, by point: a plugin may filter and not score yet. One
    that stands in for what is not built refuses pods here as it does in a cluster, but has no answers to compare.
    """

    def __init__(self) -> None:
        ours = [EnabledPlugin(p.name, p.weight) for p in default_profile().plugins if p.name in {*FILTERS, *SCORES}]
        self.profile_plugins = ProfilePlugins(Profile("default-scheduler", tuple(ours)), BUILT_IN)
        self.filters = frozenset(plugin.name for plugin in self.profile_plugins.filters if not stands_in(plugin))
        self.scores = frozenset(plugin.name for plugin in self.profile_plugins.scores)
