"""`kubenexus explain`: why a pod goes to a node, or waits; offline, from a dump of the cluster."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubenexus.cli.dump_file import open_dump

if TYPE_CHECKING:
    from kubenexus.api.core import Pod
    from kubenexus.config import Configuration
    from kubenexus.config.gang_settings import GangSettings
    from kubenexus.config.tenant_settings import TenantSettings
    from kubenexus.plan.decide import Planner


@click.command()
@click.option("--cluster", "dump_file", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--pod",
    "pod_key",
    required=True,
    metavar="NAMESPACE/NAME",
    help="The pod to explain; in the namespace default without one.",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The scheduler's configuration; the profile is that of the pod's schedulerName. Defaults without.",
)
@click.option("--nodes", default=5, show_default=True, help="How many of the best nodes to show.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def explain(dump_file: Path, pod_key: str, config_file: Path | None, nodes: int, output: str) -> None:
    """Say why a pod would go where it goes, or what keeps it waiting.

    The cluster is a file that kubectl printed, for instance:

    kubectl get nodes,pods,namespaces,services,replicasets,statefulsets,resourceslices -A -o json > DUMP.json

    For pods with GPUs have resourceslices and noderesourcetopologies in it, too, if the cluster serves them, and with
    Kueue localqueues and clusterqueues. With resourcereservations in it, reserved capacity counts.

    A member of a gang is planned with its gang. If that is a PodGroup or a Workload, have those in the file, too
    (podgroups.scheduling.k8s.io). For a pod that waits it also says if the free capacity is reserved for a gang before
    it.

    Exit code 0: it would be placed; 2: it would not; 1: something is wrong with the input.
    """
    # Imported here to keep NumPy out of `kubenexus --version`.
    import msgspec

    from kubenexus.base.errors import KubeNexusError
    from kubenexus.config.tenant_settings import own_tier_profiles
    from kubenexus.explain.explanation import explain as explain_pod
    from kubenexus.explain.explanation import render_text

    try:
        configuration = _configuration(config_file)
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    dump = open_dump(dump_file, own_tier_profiles({} if configuration is None else configuration.args))
    namespace, _, name = pod_key.rpartition("/")
    pod = dump.pods.get(f"{namespace or 'default'}/{name}")
    if pod is None:
        raise click.ClickException(_missing(namespace or "default", name, dump.pods, dump_file))
    try:
        planner, gangs, tenants = _profile(pod, configuration)
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    explanation = explain_pod(
        pod,
        dump.pods,
        dump.ledger,
        planner,
        0.0,
        nodes=nodes,
        gangs=gangs,
        settings=tenants,
        node_objects=dump.nodes,
    )
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(explanation)).decode())
    else:
        click.echo(render_text(explanation), nl=False)
    raise SystemExit(0 if explanation.placement is not None else 2)


def _missing(namespace: str, name: str, pods: "Mapping[str, Pod]", file: Path) -> str:
    """Returns the message for a pod that is not in the file: whether its namespace is, and pods of that name."""
    message = f"pod {name} does not exist in namespace {namespace}"
    if any(key.startswith(f"{namespace}/") for key in pods):
        message += f" of {file}"
    else:
        message += f": {file} has no pod of that namespace"
    near = ", ".join(sorted(key for key in pods if key.endswith(f"/{name}"))[:3])
    return message + (f"; did you mean {near}?" if near else "")


def _configuration(file: Path | None) -> "Configuration | None":
    """Returns the configuration of the file, if there is one. Raises KubeNexusError."""
    from kubenexus.config import load
    from kubenexus.framework.registry import load_plugins
    from kubenexus.plugins import BUILT_IN

    return None if file is None else load(file, load_plugins(BUILT_IN))


def _profile(pod: "Pod", loaded: "Configuration | None") -> "tuple[Planner, GangSettings, TenantSettings]":
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
