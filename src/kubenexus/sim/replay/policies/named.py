"""Policies by name: profiles with the plugins they need."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.config import load
from kubenexus.framework.profile import EnabledPlugin, Factory, Profile, ProfilePlugins, TieBreak
from kubenexus.framework.registry import built_in_table, load_plugins
from kubenexus.plugins import BUILT_IN, default_profile, shipped_profile
from kubenexus.plugins.devices.fit import DeviceFit
from kubenexus.plugins.node_affinity import NodeAffinity
from kubenexus.plugins.node_name import NodeName
from kubenexus.plugins.node_resources.fit import NodeResourcesFit
from kubenexus.plugins.node_unschedulable import NodeUnschedulable
from kubenexus.plugins.priority_sort import PrioritySort
from kubenexus.plugins.taint_toleration import TaintToleration
from kubenexus.sim.replay.objects import size_of
from kubenexus.sim.replay.policies.clustering import Clustering
from kubenexus.sim.replay.policies.fgd import FGD, target_workload
from kubenexus.sim.replay.policies.random_node import RandomNode
from kubenexus.sim.replay.policies.simple import BestFit, DotProd, Packing
from kubenexus.sim.replay.traces.trace import Trace

_SEED_BITS: Final = 32
_FILTERS: Final = (
    PrioritySort,
    NodeName,
    NodeUnschedulable,
    TaintToleration,
    NodeAffinity,
    NodeResourcesFit,
    DeviceFit,
)
_OWN: Final[dict[str, Factory]] = built_in_table([FGD, RandomNode, BestFit, DotProd, Packing, Clustering])
Arguments = Callable[[Trace, int], dict[str, Any]]


class PaperPolicy(msgspec.Struct, frozen=True):
    """A policy of a paper: its Score plugin, the arguments of that, and whether it names the GPUs itself."""

    plugin: Any
    arguments: Arguments | None = None
    names_gpus: bool = False

    def profile(self, name: str, trace: Trace, seed: int) -> Profile:
        own = self.plugin.name
        args = self.arguments(trace, seed) if self.arguments is not None else {}
        naming = own if self.names_gpus else DeviceFit.name
        return Profile(
            name,
            (*(EnabledPlugin(plugin.name) for plugin in _FILTERS), EnabledPlugin(own, args=args)),
            tie_break=TieBreak.NAME,
            points={"score": (own,), "reserve": (naming,)},
        )


PAPER_POLICIES: Final[Mapping[str, PaperPolicy]] = {
    "fgd": PaperPolicy(FGD, lambda trace, _: {"shapes": target_workload(trace)}, names_gpus=True),
    "bestfit": PaperPolicy(BestFit),
    "dotprod": PaperPolicy(DotProd),
    "packing": PaperPolicy(Packing),
    "clustering": PaperPolicy(Clustering, lambda trace, _: {"sizes": _sizes(trace)}),
    "random": PaperPolicy(RandomNode, lambda _, seed: {"seed": seed}, names_gpus=True),
}
SHIPPED, KUBE_SCHEDULER = "shipped", "kube-scheduler"
NAMES: Final = (SHIPPED, KUBE_SCHEDULER, *PAPER_POLICIES)


def _sizes(trace: Trace) -> list[str]:
    return sorted({size_of(job.shape) for job in trace.jobs if job.shape.gpus})


def policy_plugins(name: str, trace: Trace, seed: int, config: Path | None = None) -> ProfilePlugins:
    """Returns the plugins of a policy: a built-in one, or a profile of the configuration file `config`.

    `kube-scheduler` has its plugins and weights, and DeviceFit, which counts parts of GPUs. `trace` is the one that
    the target workload of `fgd` is taken from. Raises KubeNexusError for an unknown name.
    """
    installed = load_plugins(BUILT_IN)
    profile = _profile(name, trace, seed, config, installed)
    return ProfilePlugins(msgspec.structs.replace(profile, seed=seed % (1 << _SEED_BITS)), {**installed, **_OWN})


def _profile(name: str, trace: Trace, seed: int, config: Path | None, installed: Mapping[str, Factory]) -> Profile:
    if config is not None:
        loaded = load(config, installed)
        found = loaded.profile(name)
        if found is not None:
            return found
        known = (*NAMES, *(each.name for each in loaded.profiles))
    else:
        known = NAMES
    if name == SHIPPED:
        return shipped_profile(name)
    if name == KUBE_SCHEDULER:
        return default_profile(name, also=(EnabledPlugin(DeviceFit.name),))
    if name in PAPER_POLICIES:
        return PAPER_POLICIES[name].profile(name, trace, seed)
    raise KubeNexusError(f"unknown policy {name!r}; known: {', '.join(known)}")
