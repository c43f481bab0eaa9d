"""`kubenexus doctor`: is the installation healthy?"""

import click

from kubenexus.cli.connection import ask, connection_options
from kubenexus.cli.printing import echo_data, echo_lines, output_option


@click.command()
@click.option(
    "--account",
    default="kubenexus-system/kubenexus-scheduler",
    show_default=True,
    metavar="NAMESPACE/NAME",
    help="The scheduler's service account; its lease has the same name.",
)
@connection_options
@output_option("text")
def doctor(account: str, kubeconfig: str, context: str, output: str) -> None:
    """Check the installation: version, permissions, lease, clock, definitions, objects and labels of nodes.

    Exit code 0: nothing fails; 2: something does; 1: the cluster does not answer.
    """
    from kubenexus.base.clock import WallClock
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.explain import doctor as checks
    from kubenexus.explain.live_cluster import read_cluster

    try:
        named = checks.parse_account(account)
    except KubeNexusError as error:
        raise click.UsageError(f"--account: {error}") from None
    found = ask(kubeconfig, context, lambda client: checks.check_server(client, named, WallClock().now()))
    found += checks.check_cluster(ask(kubeconfig, context, read_cluster))
    if output in ("text", "wide"):
        echo_lines(checks.render_checks(found))
    else:
        echo_data(found, output)
    raise SystemExit(2 if any(each.state == checks.FAIL for each in found) else 0)
