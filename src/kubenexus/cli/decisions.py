"""`kubenexus decisions`: what the scheduler decides, as it happens."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kubenexus.cli.connection import connection_options, default_namespace
from kubenexus.cli.printing import echo_data, output_option
from kubenexus.cli.scheduler_api import HELP, SchedulerApi, scheduler_options

if TYPE_CHECKING:
    from kubenexus.app.http.api.documents import DecisionDocument

MAX_PAGES = 100


@click.command()
@click.option("-n", "--namespace", default="", help="Default: that of the kubeconfig's context.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Of all namespaces.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is decided from now on.")
@output_option("text")
@scheduler_options
@connection_options
def decisions(scheduler: SchedulerApi, namespace: str, everywhere: bool, follow: bool, output: str, **_: str) -> None:
    """Show the last decisions of the scheduler, or follow them.

    Asks the scheduler itself (--scheduler); you see decisions about namespaces whose pods you may list.
    """
    import msgspec

    from kubenexus.app.http.api import paths
    from kubenexus.app.http.api.documents import DecisionDocument

    if not scheduler.url:
        raise click.ClickException(HELP)
    where = "" if everywhere else namespace or default_namespace(scheduler.kubeconfig, scheduler.context)
    if not follow:
        for each in _pages(scheduler, where):
            _show(each, output)
        return
    while True:  # the server ends a stream after some minutes
        scheduler.follow(
            paths.DECISIONS,
            lambda data: _show(msgspec.json.decode(data, type=DecisionDocument), output),
            namespace=where,
            follow="1",
        )


def _pages(scheduler: SchedulerApi, namespace: str) -> "Iterator[DecisionDocument]":
    import msgspec

    from kubenexus.app.http.api import paths
    from kubenexus.app.http.api.documents import DecisionPage

    after = ""
    for _ in range(MAX_PAGES):
        raw = scheduler.get(paths.DECISIONS, namespace=namespace, limit="500", continue_=after)
        page = msgspec.json.decode(raw, type=DecisionPage)
        yield from page.items
        after = page.next
        if not after:
            return


def _show(decision: "DecisionDocument", output: str) -> None:
    import msgspec

    if output == "json":
        click.echo(msgspec.json.encode(decision).decode())
        return
    if output == "yaml":
        click.echo("---")
        echo_data(decision, output)
        return
    said, shown = decision.message, len(decision.nodes) if output == "wide" else 5
    if decision.outcome == "placed":
        said = ", ".join(f"{pod.partition('/')[2]} to {node}" for pod, node in list(decision.nodes.items())[:shown])
        said += f" and {len(decision.nodes) - shown} more" if len(decision.nodes) > shown else ""
    if decision.evicts or decision.evicts_others:
        said += f"; {len(decision.evicts) + decision.evicts_others} pods have to go"
    printable = "".join(each if each.isprintable() else "?" for each in said)
    click.echo(f"{decision.time}  {decision.outcome:<6}  {decision.job}  {printable}")
