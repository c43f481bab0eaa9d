"""`kubenexus gangs`: gangs, how many of their members have a node, and where."""

from typing import TYPE_CHECKING

import click

from kubenexus.cli.cluster_source import ClusterSource, cluster_options
from kubenexus.cli.printing import echo_data, output_option
from kubenexus.cli.scheduler_api import SchedulerApi, listed, scheduler_options

if TYPE_CHECKING:
    from kubenexus.explain.gang_report import GangDocument


@click.command()
@click.argument("name", required=False, default="")
@click.option("-n", "--namespace", default="", help="Default: that of the kubeconfig's context.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Of all namespaces.")
@scheduler_options
@cluster_options
@output_option("table")
def gangs(
    source: ClusterSource, scheduler: SchedulerApi, name: str, namespace: str, everywhere: bool, output: str
) -> None:
    """Show gangs: their members, how many must start together, how many have a node, and the topology they ask for.

    STATE is Forming (members are missing), Pending (none has a node), Degraded (fewer have one than must start
    together), Partial (enough have one, others wait) or Running.

    Asks the scheduler (--scheduler), which also knows why a gang waits (-o wide). Without it, reads the live cluster
    with your kubeconfig, or (--cluster) a file that kubectl printed.

    Exit code 0, or 1 if something is wrong with the input or there is no gang NAME.
    """
    from kubenexus.app.http.api import paths
    from kubenexus.explain.gang_report import GangPage, render_gangs, report_data

    where = "" if everywhere else namespace or source.namespace
    found = listed(scheduler, source, paths.GANGS, GangPage, namespace=where, name=name)
    known = _read(source, where) if found is None else found
    known = [each for each in known if name in ("", each.name)]
    if name and not known:
        raise click.ClickException(f"no gang {name} in {f'namespace {where} of ' if where else ''}{source.title}")
    if output in ("json", "yaml"):
        echo_data(report_data(known), output)
    else:
        click.echo(render_gangs(known, source.now(), namespaces=everywhere, wide=output == "wide"), nl=False)


def _read(source: ClusterSource, namespace: str) -> "list[GangDocument]":
    from kubenexus.api.gangs.levels import DEFAULT_LEVELS
    from kubenexus.explain.gang_report import declared_pods, gang_documents

    dump = source.open()
    return gang_documents(declared_pods(dump.pods.values()), dump.ledger, DEFAULT_LEVELS, namespace, {})
