"""Parts of the scheduler that follow from the configuration alone."""

from collections.abc import Mapping

from kubenexus.app.preemption.policies import candidate_limits, preemption_policy
from kubenexus.app.recording.recorded_ledger import RecordedLedger, RecordedTenants
from kubenexus.app.recording.recorder import FlightRecorder
from kubenexus.config import Configuration
from kubenexus.config.durations import Duration
from kubenexus.config.gang_settings import GangSettings
from kubenexus.config.preemption_settings import gang_preemption_settings, preemption_settings
from kubenexus.config.queue_settings import configured_queues
from kubenexus.config.tenant_settings import own_tier_profiles
from kubenexus.framework.profile import DEFAULT_SCHEDULER, Factory, Profile, ProfilePlugins
from kubenexus.plan.decide import Planner
from kubenexus.plugins.numa.request import NAME as NUMA
from kubenexus.state.ledger import Ledger
from kubenexus.state.tenants import Tenants


def make_ledger(configuration: Configuration, recorder: FlightRecorder | None = None) -> Ledger:
    reads_numa = any(each.name == NUMA for profile in configuration.profiles for each in profile.plugins)
    own_tier = own_tier_profiles(configuration.args)
    settings = [gang_preemption_settings(configuration, profile.name) for profile in configuration.profiles]
    moves = any(each is not None and each.consolidation for each in settings)
    ledger: Ledger
    if recorder is not None:
        tenants = RecordedTenants(own_tier, recorder)
        ledger = RecordedLedger(tenants, recorder, reads_numa=reads_numa, keeps_movable=moves)
    else:
        ledger = Ledger(Tenants(own_tier), reads_numa=reads_numa, keeps_movable=moves)
    ledger.queues.fix(configured_queues(configuration.args))
    return ledger


def make_planners(
    configuration: Configuration, plugins: Mapping[str, Factory], gangs: Mapping[str, GangSettings]
) -> dict[str, Planner]:
    """Returns the planner of each profile, by its name."""
    return {each.name: make_planner(each, plugins, gangs[each.name], configuration) for each in configuration.profiles}


def make_planner(
    profile: Profile, plugins: Mapping[str, Factory], gangs: GangSettings, configuration: Configuration
) -> Planner:
    default = preemption_settings(configuration, profile.name)
    gang = gang_preemption_settings(configuration, profile.name)
    reads = () if default is None and gang is None else ("spec.preemptionPolicy",)
    return Planner(
        ProfilePlugins(profile, plugins, also_reads=reads),
        levels=gangs.levels,
        preemption=candidate_limits(default) if gang is None else None,
        gang_preemption=preemption_policy(gang),
        upstream_reasons=profile.name == DEFAULT_SCHEDULER,
    )


def volume_timeouts(configuration: Configuration) -> dict[str, float]:
    """Returns by profile for how many seconds a bind waits for volumes, where the configuration sets it."""
    named = {name: args.get("VolumeBinding", {}).get("bindTimeoutSeconds") for name, args in configuration.args.items()}
    return {name: float(seconds) for name, seconds in named.items() if seconds}


def claim_timeouts(configuration: Configuration) -> dict[str, float]:
    """Returns by profile for how many seconds a bind waits for devices, where the configuration sets it."""
    named = {name: args.get("DynamicResources", {}).get("bindingTimeout") for name, args in configuration.args.items()}
    return {name: Duration.of(duration).seconds for name, duration in named.items() if duration}
