"""`kubenexus reserve`: make, list and delete ResourceReservations (docs/reservations.md)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from kubenexus.cli.connection import ask, connection_options

if TYPE_CHECKING:
    from kubenexus.client.transport import ApiClient

NAMESPACE = "kubenexus-system"


@click.group()
def reserve() -> None:
    """Keep capacity for a gang, a namespace or a team, for a time."""


@reserve.command()
@click.argument("name")
@click.option("-n", "--namespace", default=NAMESPACE, show_default=True, help="Where the object is.")
@click.option("--count", type=click.IntRange(1, 128), default=1, show_default=True, help="So many equal entries.")
@click.option(
    "--resource", multiple=True, required=True, metavar="NAME=AMOUNT", help="Of each entry: nvidia.com/gpu=8."
)
@click.option("--from", "starts_at", default="", help="18:00 (local time, the next one) or a timestamp. Default: now.")
@click.option("--duration", default="10m", show_default=True, help="How long, from then on: 10m, 1h30m.")
@click.option("--for-gang", default="", help="Only for the gang of this name.")
@click.option("--for-namespace", multiple=True, help="For the pods of this namespace. Default: the object's.")
@click.option("--for-namespace-label", multiple=True, metavar="KEY=VALUE", help="For namespaces with these labels.")
@click.option("--for-pod-label", multiple=True, metavar="KEY=VALUE", help="Only for pods with these labels.")
@click.option("--for-tier", default="", help="Only for tenants of this tier: gold, silver or bronze.")
@click.option("--node-label", multiple=True, metavar="KEY=VALUE", help="Only on nodes with these labels.")
@click.option("--toleration", multiple=True, metavar="KEY=VALUE:EFFECT", help="Also on nodes with this taint.")
@click.option("--priority", type=int, help="Pods of a higher priority may take the capacity if they fit nowhere else.")
@click.option("--dry-run", is_flag=True, help="Print the object, and make nothing.")
@connection_options
def create(kubeconfig: str, context: str, *, dry_run: bool, **given: Any) -> None:
    """Make the reservation NAME.

    Four nodes with 8 GPUs each for team A, from 18:00 for ten minutes:

    kubenexus reserve create training --count 4 --resource nvidia.com/gpu=8 --for-namespace team-a --from 18:00
    """
    import yaml

    from kubenexus.api.reservations.manifest import manifest
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.client.kinds import RESOURCE_RESERVATIONS
    from kubenexus.client.verbs import create as create_call

    try:
        body = manifest(_options(given))
    except KubeNexusError as error:
        raise click.UsageError(str(error)) from None
    if dry_run:
        click.echo(yaml.safe_dump(body, sort_keys=False), nl=False)
        return
    call = create_call(RESOURCE_RESERVATIONS, body, given["namespace"])
    ask(kubeconfig, context, lambda client: client.send(call))
    click.echo(f"resourcereservation.{RESOURCE_RESERVATIONS.group}/{given['name']} created")


def _options(given: dict[str, Any]) -> Any:
    from datetime import datetime

    from kubenexus.api.reservations.manifest import ManifestOptions, start_time
    from kubenexus.base.clock import WallClock

    now = WallClock().now()
    zone = datetime.fromtimestamp(now).astimezone().tzinfo  # the zone of this machine's clock
    return ManifestOptions(
        name=given["name"],
        namespace=given["namespace"],
        count=given["count"],
        resources=_pairs("--resource", given["resource"]),
        starts_at=start_time(given["starts_at"], now, zone),
        duration=given["duration"],
        group=given["for_gang"],
        namespaces=given["for_namespace"],
        namespace_labels=_pairs("--for-namespace-label", given["for_namespace_label"]),
        pod_labels=_pairs("--for-pod-label", given["for_pod_label"]),
        tier=given["for_tier"],
        node_labels=_pairs("--node-label", given["node_label"]),
        tolerations=given["toleration"],
        priority=given["priority"],
    )


@reserve.command(name="list")
@click.option("-n", "--namespace", default="", help="Of one namespace. Default: of all.")
@connection_options
def list_(kubeconfig: str, context: str, namespace: str) -> None:
    """Show all reservations: for whom, since when and until when, on how many nodes, and why they wait."""
    from kubenexus.api.codec import decode_list
    from kubenexus.api.reservations.resource_reservation import ResourceReservation
    from kubenexus.client.kinds import RESOURCE_RESERVATIONS
    from kubenexus.client.verbs import list_call
    from kubenexus.explain.reservation_report import render_reservations

    async def pages(client: "ApiClient") -> list[ResourceReservation]:
        found, more = list[ResourceReservation](), None
        while more != "":
            call = list_call(RESOURCE_RESERVATIONS, namespace=namespace, limit=500, more=more or "")
            page = decode_list(await client.send(call), ResourceReservation)
            found += page.items
            more = page.more
        return found

    click.echo(render_reservations(ask(kubeconfig, context, pages)), nl=False)


@reserve.command()
@click.argument("name")
@click.option("-n", "--namespace", default=NAMESPACE, show_default=True)
@connection_options
def delete(kubeconfig: str, context: str, name: str, namespace: str) -> None:
    """Delete the reservation NAME. Its capacity is free at once; pods that use it stay."""
    from kubenexus.client.kinds import RESOURCE_RESERVATIONS
    from kubenexus.client.verbs import delete as delete_call

    call = delete_call(RESOURCE_RESERVATIONS, namespace, name, "")
    ask(kubeconfig, context, lambda client: client.send(call))
    click.echo(f"resourcereservation.{RESOURCE_RESERVATIONS.group}/{name} deleted")


def _pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Parses options of the form `key=value`."""
    for text in texts:
        if text.find("=") < 1:
            raise click.UsageError(f"{option} must be KEY=VALUE, not {text!r}")
    return dict(text.split("=", 1) for text in texts)
