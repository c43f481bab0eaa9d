"""The profile of a pod, from the scheduler's configuration or by default, for commands that decide."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubenexus.api.core import Pod
    from kubenexus.config import Configuration
    from kubenexus.config.gang_settings import GangSettings
    from kubenexus.config.tenant_settings import TenantSettings
    from kubenexus.plan.decide import Planner


def load_configuration(file: Path | None) -> "Configuration | None":
    """Returns the configuration of the file, if there is one. Raises KubeNexusError."""
    from kubenexus.config import load
    from kubenexus.framework.registry import load_plugins
    from kubenexus.plugins import BUILT_IN

    return None if file is None else load(file, load_plugins(BUILT_IN))


def profile_of(pod: "Pod", loaded: "Configuration | None") -> "tuple[Planner, GangSettings, TenantSettings]":
    """Returns the planner and the settings of the pod's profile. Raises KubeNexusError if the configuration has
    none."""
    from kubenexus.app.preemption.policies import preemption_policy
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.config.args import GANGS
    from kubenexus.config.gang_settings import gang_settings
    from kubenexus.config.preemption_settings import gang_preemption_settings
    from kubenexus.config.tenant_settings import tenant_settings
    from kubenexus.framework.profile import DEFAULT_SCHEDULER, ProfilePlugins
    from kubenexus.framework.registry import load_plugins
    from kubenexus.plan.decide import Planner
    from kubenexus.plan.preemption.policy import PreemptionPolicy
    from kubenexus.plugins import BUILT_IN, default_profile, profile_plugins, shipped_profile

    name = pod.spec.scheduler_name
    if loaded is None:
        profile = default_profile(name) if name == DEFAULT_SCHEDULER else shipped_profile(name)
        policy = None if name == DEFAULT_SCHEDULER else PreemptionPolicy()
        planner = Planner(profile_plugins(profile), gang_preemption=policy)
        return planner, gang_settings({}, name), tenant_settings({}, name)
    found = loaded.profile(name)
    if found is None:
        known = ", ".join(each.name for each in loaded.profiles)
        raise KubeNexusError(
            f"pod {pod.key}: spec.schedulerName is {name}, and the configuration has profiles for {known}"
        )
    gangs = gang_settings(loaded.args[name].get(GANGS, {}), name)
    planner = Planner(
        ProfilePlugins(found, load_plugins(BUILT_IN)),
        levels=gangs.levels,
        gang_preemption=preemption_policy(gang_preemption_settings(loaded, name)),
    )
    return planner, gangs, tenant_settings(loaded.args[name], name)
