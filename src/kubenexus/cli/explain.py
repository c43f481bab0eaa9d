"""`kubenexus explain` and `kubenexus why`: why a pod goes to a node, or waits, and what would make it start."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubenexus.cli.cluster_source import ClusterSource, cluster_options
from kubenexus.cli.printing import echo_data, echo_lines, output_option
from kubenexus.cli.profiles import load_configuration, profile_of
from kubenexus.cli.scheduler_api import SchedulerApi, scheduler_options

if TYPE_CHECKING:
    from kubenexus.explain.explanation import Explanation

WIDE = 50  # nodes that `-o wide` shows
config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The scheduler's configuration; the profile is that of the pod's schedulerName. Defaults without.",
)


@click.command()
@cluster_options
@click.option(
    "--pod",
    "pod_key",
    required=True,
    metavar="[NAMESPACE/]NAME",
    help="The pod to explain. Without a namespace: that of the kubeconfig's context; of a file, default.",
)
@config_option
@click.option("--nodes", default=5, show_default=True, help="How many of the best nodes to show.")
@output_option("text")
def explain(source: ClusterSource, pod_key: str, config_file: Path | None, nodes: int, output: str) -> None:
    """Say why a pod would go where it goes, or what keeps it waiting and what would make it start.

    Reads the live cluster with your kubeconfig, or (--cluster) a file that kubectl printed, for instance:

    kubectl get nodes,pods,namespaces,services,replicasets,statefulsets,resourceslices -A -o json > DUMP.json

    For pods with GPUs have resourceslices and noderesourcetopologies in it, too, if the cluster serves them, and with
    Kueue localqueues and clusterqueues. With resourcereservations in it, reserved capacity counts.

    A member of a gang is planned with its gang. If that is a PodGroup or a Workload, have those in the file, too
    (podgroups.scheduling.k8s.io). For a pod that waits it also says if the free capacity is reserved for a gang before
    it.

    Exit code 0: it would be placed; 2: it would not; 1: something is wrong with the input.
    """
    _explain(source, pod_key, "", config_file, nodes, output, only_pods=True)


@click.command()
@click.argument("what", metavar="POD|JOB")
@click.option("-n", "--namespace", default="", help="Of the pod or job. Default: that of the kubeconfig's context.")
@scheduler_options
@cluster_options
@config_option
@output_option("text")
def why(
    source: ClusterSource,
    scheduler: SchedulerApi,
    what: str,
    namespace: str,
    config_file: Path | None,
    output: str,
) -> None:
    """Say why a pod or a job waits and what would make it start at once, or why it goes where it goes.

    POD|JOB is the name of a pod, of a gang, or of the object that made the pods: llama-0, pod/llama-0, job/train,
    pytorchjob/llama, ml/llama-0. Of a job, the first pod that waits is explained; a gang is planned as a whole.

    Asks the scheduler (--scheduler) about a pod that waits: only your right to read pods of the namespace is needed.
    Without it, reads the live cluster with your kubeconfig, or (--cluster) a file that kubectl printed. Nothing is
    written.

    Exit code 0: it would be placed; 2: it would not; 1: something is wrong with the input.
    """
    nodes = WIDE if output == "wide" else 5
    if scheduler.url and source.file is None:
        _ask_scheduler(scheduler, source, what, namespace, nodes, output)
    _explain(source, what, namespace, config_file, nodes, output)


def _ask_scheduler(
    scheduler: SchedulerApi, source: ClusterSource, what: str, namespace: str, nodes: int, output: str
) -> None:
    """Prints the scheduler's answer and ends the command. Returns if there is none, or the pod has a node: the
    scheduler keeps no annotations of such pods."""
    import msgspec

    from kubenexus.app.http.api import paths
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.explain.find_pod import parse_target
    from kubenexus.explain.live_answers import LiveExplanation, render_restricted

    try:
        target = parse_target(what)
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    where = target.namespace or namespace or source.namespace
    try:
        raw = scheduler.get(paths.EXPLAIN, namespace=where, name=target.name, kind=target.kind, nodes=str(nodes))
        found = msgspec.json.decode(raw, type=LiveExplanation)
    except (click.ClickException, msgspec.DecodeError) as error:
        click.echo(f"warning: the scheduler did not answer ({error}); reading the cluster instead", err=True)
        return
    if found.bound:
        return
    if output in ("json", "yaml"):
        echo_data(found, output)
    elif found.explanation is not None:
        _print(found.explanation, output)
    else:
        echo_lines(render_restricted(found))
    raise SystemExit(0 if found.placed else 2)


def _explain(
    source: ClusterSource,
    what: str,
    namespace: str,
    config_file: Path | None,
    nodes: int,
    output: str,
    *,
    only_pods: bool = False,
) -> None:
    # Imported here to keep NumPy out of `kubenexus --version`.
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.config.tenant_settings import own_tier_profiles
    from kubenexus.explain.explanation import explain as explain_pod
    from kubenexus.explain.find_pod import find_pod, parse_pod, parse_target

    try:
        configuration = load_configuration(config_file)
        target = parse_pod(what) if only_pods else parse_target(what)
        namespace = target.namespace or namespace or source.namespace
        dump = source.open(own_tier_profiles({} if configuration is None else configuration.args))
        pod = find_pod(target, namespace, dump.pods, source.title)
        planner, gangs, tenants = profile_of(pod, configuration)
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
    _print(explanation, output)
    raise SystemExit(0 if explanation.placement is not None else 2)


def _print(explanation: "Explanation", output: str) -> None:
    from kubenexus.explain.explanation import render_text

    if output in ("json", "yaml"):
        echo_data(explanation, output)
    else:
        echo_lines(render_text(explanation))
