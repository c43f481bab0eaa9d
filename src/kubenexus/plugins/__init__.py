"""The built-in plugins, one module each, and the table of them. No I/O, no hidden state.

Names, weights, reasons and numbers are kube-scheduler's wherever the concept is the same.
"""

from collections.abc import Iterable
from typing import Any

from kubenexus.framework.profile import EnabledPlugin, Factory, Profile, ProfilePlugins
from kubenexus.framework.registry import built_in_table, load_plugins
from kubenexus.plugins.devices.fit import DeviceFit
from kubenexus.plugins.devices.fragmentation import ResourceFragmentationScore
from kubenexus.plugins.devices.topology import GPUTopology
from kubenexus.plugins.devices.vram import VRAMScheduler
from kubenexus.plugins.dynamic_resources.plugin import DynamicResources
from kubenexus.plugins.image_locality import ImageLocality
from kubenexus.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kubenexus.plugins.network_fabric.plugin import NetworkFabricScore
from kubenexus.plugins.node_affinity import NodeAffinity
from kubenexus.plugins.node_declared_features import NodeDeclaredFeatures
from kubenexus.plugins.node_name import NodeName
from kubenexus.plugins.node_ports import NodePorts
from kubenexus.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from kubenexus.plugins.node_resources.fit import NodeResourcesFit
from kubenexus.plugins.node_unschedulable import NodeUnschedulable
from kubenexus.plugins.node_volume_limits import NodeVolumeLimits
from kubenexus.plugins.numa.plugin import NUMATopology
from kubenexus.plugins.pod_topology_spread.plugin import PodTopologySpread
from kubenexus.plugins.priority_sort import PrioritySort
from kubenexus.plugins.scheduling_gates import SchedulingGates
from kubenexus.plugins.taint_toleration import TaintToleration
from kubenexus.plugins.tenant.hardware_affinity import TenantHardwareAffinityScore
from kubenexus.plugins.topology_scoring.plugin import TopologyScoring
from kubenexus.plugins.volume_binding.plugin import VolumeBinding
from kubenexus.plugins.volume_restrictions import VolumeRestrictions
from kubenexus.plugins.volume_zone import VolumeZone
from kubenexus.plugins.workload.backfill import BackfillScoring
from kubenexus.plugins.workload.profile_classifier import ProfileClassifier
from kubenexus.plugins.workload.workload_aware import WorkloadAwareScoring

# In the order they are called, with their default weights. The order decides which reason a rejected node reports.
BUILT_IN_ORDER: tuple[tuple[Any, int], ...] = (
    (SchedulingGates, 1),
    (PrioritySort, 1),
    (NodeName, 1),
    (NodeUnschedulable, 1),
    (TaintToleration, 3),
    (NodeAffinity, 2),
    (NodePorts, 1),
    (NodeResourcesFit, 1),
    (VolumeRestrictions, 1),
    (NodeVolumeLimits, 1),
    (VolumeBinding, 1),
    (VolumeZone, 1),
    (PodTopologySpread, 2),
    (InterPodAffinity, 2),
    (DynamicResources, 2),
    (NodeResourcesBalancedAllocation, 1),
    (ImageLocality, 1),
    (NodeDeclaredFeatures, 1),
)
# Plugins that kube-scheduler does not have. They come after its own, so that its reasons stay the first.
OWN_ORDER: tuple[tuple[Any, int], ...] = (
    (ProfileClassifier, 1),
    (WorkloadAwareScoring, 3),
    (BackfillScoring, 2),
    (TenantHardwareAffinityScore, 16),
    (DeviceFit, 1),
    (VRAMScheduler, 5),
    (GPUTopology, 2),
    (ResourceFragmentationScore, 5),
    (NetworkFabricScore, 3),
    (TopologyScoring, 3),
    (NUMATopology, 4),
)
# In the shipped profile utilization counts four times as much as in kube-scheduler's (NodeResourcesFit and
# WorkloadAwareScoring), and so does what users and administrators ask for, in the same proportion.
REQUESTED_FACTOR = 4
REQUESTED = (TaintToleration, NodeAffinity, PodTopologySpread, InterPodAffinity)
BUILT_IN: dict[str, Factory] = built_in_table([plugin for plugin, _ in (*BUILT_IN_ORDER, *OWN_ORDER)])


def default_profile(name: str = "kubenexus-scheduler", also: Iterable[EnabledPlugin] = ()) -> Profile:
    """Returns a profile of kube-scheduler's plugins with its weights, and after them `also`."""
    enabled = [EnabledPlugin(plugin.name, weight) for plugin, weight in BUILT_IN_ORDER]
    return Profile(name, (*enabled, *also))


def shipped_profile(name: str = "kubenexus-scheduler") -> Profile:
    """Returns the profile that a configuration without profiles has: kube-scheduler's plugins and our own."""
    upstream = [
        EnabledPlugin(plugin.name, weight * (REQUESTED_FACTOR if plugin in REQUESTED else 1))
        for plugin, weight in BUILT_IN_ORDER
    ]
    return Profile(name, (*upstream, *(EnabledPlugin(plugin.name, weight) for plugin, weight in OWN_ORDER)))


def profile_plugins(profile: Profile | None = None) -> ProfilePlugins:
    """Returns a profile's plugins, those of other packages included."""
    return ProfilePlugins(profile or default_profile(), load_plugins(BUILT_IN))
