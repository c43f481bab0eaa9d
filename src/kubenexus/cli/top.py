"""`kubenexus top`: what uses a cluster, now."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kubenexus.cli.cluster_source import ClusterSource, cluster_options
from kubenexus.cli.eta import expected_starts
from kubenexus.cli.printing import echo_data, output_option
from kubenexus.cli.scheduler_api import SchedulerApi, listed, scheduler_options

if TYPE_CHECKING:
    from collections.abc import Callable

_output = output_option("table")


@click.group()
def top() -> None:
    """What uses the cluster most."""


@top.command()
@cluster_options
@_output
def queues(source: ClusterSource, output: str) -> None:
    """Show what each queue uses, what it is guaranteed and has borrowed, and how many pods wait.

    SHARE is what a queue uses beyond its guarantee, by its dominant resource and divided by its weight: of siblings the
    least goes next. A queue that is below its guarantee shows the part of that which it uses, and goes before them.

    Reads the live cluster with your kubeconfig, or (--cluster) a file that kubectl printed:

    kubectl get nodes,pods,namespaces,queues.scheduling.kubenexus.io -A -o json > DUMP.json
    """
    from kubenexus.explain.queue_report import queue_reports, render_table, report_data

    dump = source.open()
    reports = queue_reports(dump.ledger, dump.pods)
    for queue, problem in dump.ledger.queues.take_warnings().items():
        click.echo(f"warning: {queue}: {problem}", err=True)
    if output in ("json", "yaml"):
        echo_data(report_data(reports), output)
    else:
        click.echo(render_table(reports), nl=False)


@top.command()
@cluster_options
@_output
def tenants(source: ClusterSource, output: str) -> None:
    """Show the GPUs of each tenant: now, by hardware tier, in hours since its pods started, and what they cost.

    PREMIUM BY LOW TIER are the hours on premium nodes of tenants that are silver or bronze. COST/H is the tenant's part
    of the nodes that have the label hardware.kubenexus.io/cost-hour.

    Reads the live cluster with your kubeconfig, or (--cluster) a file that kubectl printed. Leave out the kinds that
    your cluster does not serve:

    kubectl get nodes,pods,namespaces,resourceslices -A -o json > DUMP.json  (with Kueue also localqueues,clusterqueues)
    """
    from kubenexus.explain.tenant_report import render_table, report_data, tenant_reports

    dump = source.open()
    reports = tenant_reports(dump.ledger, dump.pods, source.now())
    unknown = sorted({pod.metadata.namespace for pod in dump.pods.values()})
    unknown = [name for name in unknown if not dump.ledger.nodes.tenants.knows(name)]
    if reports and unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        click.echo(
            f"warning: {source.title} does not have the namespace {unknown[0]}{more}: tiers may be wrong", err=True
        )
    if output in ("json", "yaml"):
        echo_data(report_data(reports), output)
    else:
        click.echo(render_table(reports), nl=False)


@top.command()
@scheduler_options
@cluster_options
@_output
def nodes(source: ClusterSource, scheduler: SchedulerApi, output: str) -> None:
    """Show what is used of each node, and whether it takes pods.

    Asks the scheduler (--scheduler), or reads the live cluster with your kubeconfig, or (--cluster) a file.
    """
    from kubenexus.app.http.api import documents, paths
    from kubenexus.explain import cluster_tables

    found = listed(scheduler, source, paths.NODES, documents.NodePage)
    _print(cluster_tables.nodes_of(source.open()) if found is None else found, cluster_tables.render_nodes, output)


@top.command()
@click.option("-n", "--namespace", default="", help="Only the jobs of this one.")
@scheduler_options
@cluster_options
@_output
def jobs(source: ClusterSource, scheduler: SchedulerApi, namespace: str, output: str) -> None:
    """Show the jobs that wait, and why.

    Asks the scheduler (--scheduler), which knows their state, their attempts and their last refusal. Without it, reads
    the live cluster with your kubeconfig, or (--cluster) a file, and shows which jobs wait. With -o wide the scheduler
    also says when they are expected to start (`kubenexus eta`).
    """
    from kubenexus.app.http.api import documents, paths
    from kubenexus.explain import cluster_tables

    found = listed(scheduler, source, paths.JOBS, documents.JobPage, namespace=namespace)
    known = cluster_tables.jobs_of(source.open(), namespace) if found is None else found
    wide = output == "wide"
    starts = expected_starts(scheduler, source, namespace) if found and wide else {}
    _print(known, partial(cluster_tables.render_jobs, wide=wide, starts=starts), output)


@top.command()
@click.option("-n", "--namespace", default="", help="Only this one.")
@scheduler_options
@cluster_options
@_output
def namespaces(source: ClusterSource, scheduler: SchedulerApi, namespace: str, output: str) -> None:
    """Show how many jobs of each namespace wait, by their state in the scheduling queue.

    Asks the scheduler (--scheduler), or reads the live cluster with your kubeconfig, or (--cluster) a file; then all
    jobs that may be tried count as active.
    """
    from kubenexus.app.http.api import documents, paths
    from kubenexus.explain import cluster_tables

    found = listed(scheduler, source, paths.QUEUES, documents.QueuePage, namespace=namespace)
    known = cluster_tables.queues_of(source.open(), namespace) if found is None else found
    _print(known, cluster_tables.render_queues, output)


def _print(items: "list[Any]", table: "Callable[[list[Any]], str]", output: str) -> None:
    if output in ("json", "yaml"):
        echo_data(items, output)
    else:
        click.echo(table(items), nl=False)
