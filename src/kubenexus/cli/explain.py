"""`kubenexus explain`: why a pod goes where it goes, or waits; offline, from a dump of the cluster."""

from pathlib import Path

import click


@click.command()
@click.option("--cluster", "dump_file", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--pod", "pod_key", required=True, metavar="NAMESPACE/NAME", help="The pod to explain.")
@click.option("--nodes", default=5, show_default=True, help="How many of the best nodes to show.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def explain(dump_file: Path, pod_key: str, nodes: int, output: str) -> None:
    """Say why a pod would go where it goes, or what keeps it waiting.

    The cluster is a file that kubectl printed, for instance:

    kubectl get nodes,pods,namespaces,services,replicasets,statefulsets -A -o json > DUMP.json

    A member of a gang is planned with its gang. If that is a PodGroup or a Workload, have those in the file, too
    (podgroups.scheduling.k8s.io).

    Exit code 0: it would be placed; 2: it would not; 1: something is wrong with the input.
    """
    # Imported here: `kubenexus --version` has no need of NumPy.
    import msgspec

    from kubenexus.base.errors import KubeNexusError
    from kubenexus.observe.dump import read_dump
    from kubenexus.observe.explain import explain as explain_pod
    from kubenexus.observe.explain import told
    from kubenexus.plan.decide import Planner
    from kubenexus.plugins import lineup

    try:
        dump = read_dump(dump_file.read_bytes(), str(dump_file))
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    for problem in dump.problems:
        click.echo(f"warning: {problem}", err=True)
    pod = dump.pods.get(pod_key)
    if pod is None:
        near = ", ".join(sorted(key for key in dump.pods if key.endswith("/" + pod_key.rpartition("/")[2]))[:3])
        raise click.ClickException(f"no pod {pod_key} in {dump_file}" + (f"; did you mean {near}?" if near else ""))
    explanation = explain_pod(pod, dump.pods, dump.ledger, Planner(lineup()), 0.0, nodes)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(explanation)).decode())
    else:
        click.echo(told(explanation), nl=False)
    raise SystemExit(0 if explanation.placement is not None else 2)
