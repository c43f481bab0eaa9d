"""The plugins of kube-scheduler's default profile, and which of them we have built."""

from typing import Final

from kubenexus.framework.profile import EnabledPlugin, Profile, ProfilePlugins
from kubenexus.plugins import BUILT_IN, default_profile

# In upstream's order: the first that refuses a node is reported.
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
    """Upstream's plugins as we have them, in our order and with our weights (which are compared, too), default
    arguments.

    The table of built-in plugins determines which exist, by extension point: a plugin may filter and not score yet.
    """

    def __init__(self) -> None:
        ours = [EnabledPlugin(p.name, p.weight) for p in default_profile().plugins if p.name in {*FILTERS, *SCORES}]
        self.profile_plugins = ProfilePlugins(Profile("default-scheduler", tuple(ours)), BUILT_IN)
        self.filters = frozenset(plugin.name for plugin in self.profile_plugins.filters)
        self.scores = frozenset(plugin.name for plugin in self.profile_plugins.scores)
