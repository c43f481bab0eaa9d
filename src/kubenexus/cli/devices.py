"""`kubenexus devices`: the GPUs and accelerators of a cluster, and the pods that hold them."""

import click

from kubenexus.cli.cluster_source import ClusterSource, cluster_options
from kubenexus.cli.printing import echo_data, output_option


@click.command()
@cluster_options
@click.option("--node", default="", metavar="NAME", help="Only the devices of this node.")
@output_option("table")
def devices(source: ClusterSource, node: str, output: str) -> None:
    """Show each GPU: its model, memory, NUMA node and island, the pods that hold it, and its node's hardware tier.

    In brackets is where a fact comes from: dra (ResourceSlices), nrt (NodeResourceTopology), gfd and nfd (labels of GPU
    and Node Feature Discovery), manual (labels and annotations by hand), cloud (labels of the cloud), allocatable (the
    kubelet), model (its name). A tier comes from the node's label or from the model of its best card.

    Reads the live cluster with your kubeconfig, or (--cluster) a file that kubectl printed. Leave out the kinds that
    your cluster does not serve:

    kubectl get nodes,pods,resourceslices,noderesourcetopologies -A -o json > DUMP.json
    """
    from kubenexus.explain.node_devices import device_reports, render_table, report_data

    dump = source.open()
    if node and node not in dump.ledger.nodes.row_of:
        raise click.ClickException(f"no node {node} in {source.title}")
    reports = device_reports(dump.ledger, node)
    if output in ("json", "yaml"):
        echo_data(report_data(reports), output)
    else:
        click.echo(render_table(reports), nl=False)
