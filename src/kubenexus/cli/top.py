"""`kubenexus top`: what uses a cluster, now."""

import click

from kubenexus.cli.cluster_source import ClusterSource, cluster_options


@click.group()
def top() -> None:
    """What uses the cluster most."""


@top.command()
@cluster_options
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def tenants(source: ClusterSource, output: str) -> None:
    """Show the GPUs of each tenant: now, by hardware tier, in hours since its pods started, and what they cost.

    PREMIUM BY LOW TIER are the hours on premium nodes of tenants that are silver or bronze. COST/H is the tenant's part
    of the nodes that have the label hardware.kubenexus.io/cost-hour.

    Reads the live cluster with your kubeconfig, or (--cluster) a file that kubectl printed. Leave out the kinds that
    your cluster does not serve:

    kubectl get nodes,pods,namespaces,resourceslices -A -o json > DUMP.json  (with Kueue also localqueues,clusterqueues)
    """
    import msgspec

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
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(report_data(reports))).decode())
    else:
        click.echo(render_table(reports), nl=False)
