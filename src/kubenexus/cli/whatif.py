"""`kubenexus whatif`: where pods would go that are not submitted, or if nodes were added, removed or cordoned."""

from pathlib import Path
from typing import IO, Any, NoReturn

import click

from kubenexus.cli.cluster_source import ClusterSource, cluster_options
from kubenexus.cli.printing import echo_data, echo_lines, output_option
from kubenexus.cli.profiles import load_configuration, profile_of
from kubenexus.cli.scheduler_api import SchedulerApi, scheduler_options


@click.command()
@click.option("-f", "--filename", "files", multiple=True, type=click.File("rb"), help="A manifest; - reads it.")
@click.option("-n", "--namespace", default="", help="Of objects without one. Default: as with kubectl.")
@click.option("--add-node", "added", multiple=True, metavar="NODE[=NUMBER]", help="Empty nodes like this one.")
@click.option("--remove-node", "removed", multiple=True, metavar="NODE", help="Its pods wait again.")
@click.option("--cordon", "cordoned", multiple=True, metavar="NODE")
@click.option("--uncordon", "uncordoned", multiple=True, metavar="NODE")
@scheduler_options
@cluster_options
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The scheduler's configuration. Defaults without.",
)
@output_option("text")
def whatif(
    source: ClusterSource,
    scheduler: SchedulerApi,
    files: tuple[IO[bytes], ...],
    namespace: str,
    config_file: Path | None,
    output: str,
    **said: Any,
) -> None:
    """Say where the pods of a manifest would go and which pods would be evicted, without submitting it.

    kubectl nexus whatif -f train.yaml --add-node gpu-1=2

    Knows Pods, Jobs, Deployments, ReplicaSets, StatefulSets, JobSets and the jobs of Kubeflow's training operator, and
    reads PodGroups and Workloads beside them. Without a manifest it decides for the pods that
    wait in the cluster, and for those of removed nodes.

    Asks the scheduler (--scheduler), or reads the live cluster with your kubeconfig, or (--cluster) a file that kubectl
    printed. Nothing is written.

    Exit code 0: all pods would start; 2: some would not; 1: something is wrong with the input.
    """
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.config.tenant_settings import own_tier_profiles
    from kubenexus.explain import what_if
    from kubenexus.explain.manifest_pods import read_manifest

    if scheduler.url and source.file is None:
        _ask_scheduler(scheduler, source, files, namespace, output, said)
    try:
        configuration = load_configuration(config_file)
        changes = what_if.NodeChanges(
            what_if.parse_added(said["added"]), said["removed"], said["cordoned"], said["uncordoned"]
        )
        dump = source.open(own_tier_profiles({} if configuration is None else configuration.args))
        pods = what_if.change_nodes(dump, changes)
        where = namespace or (source.namespace if files else "")
        for file in files:
            manifest = read_manifest(file.read(), file.name, where, dump.priorities)
            pods += what_if.add_manifest(dump, manifest)
        pods = pods if files else [*pods, *what_if.waiting_pods(dump)]
        profiles = what_if.planners(lambda pod: profile_of(pod, configuration)[:2])
        found = what_if.forecast(dump, pods, profiles, 0.0)
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    if output in ("text", "wide"):
        echo_lines(what_if.render_forecast(found))
    else:
        echo_data(found, output)
    raise SystemExit(0 if found.complete else 2)


def _ask_scheduler(
    scheduler: SchedulerApi,
    source: ClusterSource,
    files: tuple[IO[bytes], ...],
    namespace: str,
    output: str,
    said: dict[str, Any],
) -> NoReturn:
    """Prints the scheduler's answer and ends the command. Its refusal is the command's error: the manifest was read."""
    import msgspec

    from kubenexus.app.http.api import paths
    from kubenexus.app.http.api.documents import WhatIfRequest
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.explain import what_if
    from kubenexus.explain.live_answers import LiveForecast

    try:
        added = dict(what_if.parse_added(said["added"]))
        manifest = "\n---\n".join(file.read().decode("utf-8") for file in files)
    except (KubeNexusError, UnicodeDecodeError) as error:
        raise click.ClickException(str(error)) from None
    wanted = WhatIfRequest(manifest, added, said["removed"], said["cordoned"], said["uncordoned"])
    where = namespace or source.namespace
    raw = scheduler.post(paths.WHATIF, msgspec.json.encode(wanted), namespace=where)
    try:
        found = msgspec.json.decode(raw, type=LiveForecast)
    except msgspec.DecodeError as error:
        raise click.ClickException(f"the scheduler's answer cannot be read: {error}") from None
    if output in ("text", "wide"):
        echo_lines(what_if.render_forecast(what_if.Forecast(found.jobs)))
        if found.hidden_evictions:
            click.echo(f"EVICT    {found.hidden_evictions} pods of other namespaces")
    else:
        echo_data(found, output)
    raise SystemExit(0 if what_if.Forecast(found.jobs).complete else 2)
