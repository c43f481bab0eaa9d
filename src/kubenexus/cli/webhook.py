"""`kubenexus webhook`: the admission webhooks, until interrupted."""

import asyncio
import signal
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from kubenexus.cli.interrupts import loop_factory
from kubenexus.cli.run import OneLineErrors, Verbosity

if TYPE_CHECKING:
    from kubenexus.webhook.process import ServingOptions
    from kubenexus.webhook.server import WebhookSettings


@click.command(cls=OneLineErrors)
@click.option("--kubeconfig", default="", help="As with kubectl; without it, the pod's own service account.")
@click.option("--context", default="", help="A context of the kubeconfig.")
@click.option("--bind-address", default="0.0.0.0", show_default=True)
@click.option("--secure-port", type=click.IntRange(0, 65535), default=8443, show_default=True, help="HTTPS.")
@click.option("--tls-cert-file", default="", help="A certificate, read again when it changes. Else one is made.")
@click.option("--tls-private-key-file", default="", help="Its key.")
@click.option("--service", default="kubenexus-webhook", show_default=True, help="The Service that it is made for.")
@click.option("--namespace", default="", help="Of the Service and the Secret; without it, the pod's own.")
@click.option("--secret", default="kubenexus-webhook-tls", show_default=True, help="The Secret that keeps it.")
@click.option("--configuration", default="kubenexus-webhook", show_default=True, help="Whose caBundle is kept.")
@click.option("--only-warn", is_flag=True, help="Refuse nothing.")
@click.option("--strict-gangs", is_flag=True, help="Refuse gangs that need more pods than their object makes.")
@click.option("--scheduler-name", default="", help="For jobs that ask for a gang and name no scheduler.")
@click.option("--gpu-class", multiple=True, metavar="TIER=CLASS,...", help="[gold=h100, silver=a100, bronze=l4]")
@click.option("--require-gpu-class", is_flag=True, help="Other GPUs are not for the tenant, even if they are free.")
@click.option("-v", "--v", "verbosity", type=Verbosity(0, 10), default=0, help="0 (quiet) to 10.")
@click.option("--logging-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def webhook(verbosity: int, logging_format: Any, **options: Any) -> None:
    """Review objects before the API server stores them, until interrupted.

    Wrong values of labels and annotations are refused with what was expected. Jobs that ask for it become gangs, and
    pods get the scheduler of their namespace and prefer the GPUs of their tenant's tier.
    """
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.observe import logs

    logs.configure(verbosity, logging_format)
    settings = _settings(options)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(settings, options))
    except KubeNexusError as error:
        raise click.ClickException(" ".join(str(error).split())) from None


async def _serve(settings: "WebhookSettings", options: dict[str, Any]) -> None:
    from kubenexus.base.clock import WallClock
    from kubenexus.client.client_config import ClientOptions, load_client_config
    from kubenexus.client.transport import ApiClient
    from kubenexus.webhook.process import WebhookProcess

    clock = WallClock()
    access = load_client_config(ClientOptions(kubeconfig=options["kubeconfig"], context=options["context"]), clock)
    serving = _serving(options, options["namespace"] or access.namespace or "default")
    client = ApiClient(access, clock, connections=16)
    process = WebhookProcess(client, clock, settings, serving)
    for ending in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(ending, process.stop)
    try:
        await process.run()
    finally:
        await client.close()


def _serving(options: dict[str, Any], namespace: str) -> "ServingOptions":
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.webhook.certificates import CertificateTerms
    from kubenexus.webhook.process import ServingOptions

    host, port = options["bind_address"], options["secure_port"]
    certificate, key = options["tls_cert_file"], options["tls_private_key_file"]
    if bool(certificate) != bool(key):
        raise KubeNexusError("--tls-cert-file and --tls-private-key-file belong together")
    if certificate:
        return ServingOptions(host, port, certificate, key)
    service = f"{options['service']}.{namespace}.svc"
    hosts = (service, f"{options['service']}.{namespace}", options["service"], f"{service}.cluster.local")
    terms = CertificateTerms(namespace, options["secret"], hosts, options["configuration"])
    return ServingOptions(host, port, terms=terms)


def _settings(options: dict[str, Any]) -> "WebhookSettings":
    from kubenexus.webhook.mutation import DEFAULT_CLASSES, GpuClassSettings
    from kubenexus.webhook.server import WebhookSettings
    from kubenexus.webhook.validation import ValidationSettings

    classes = _classes(options["gpu_class"]) or DEFAULT_CLASSES
    return WebhookSettings(
        ValidationSettings(options["only_warn"], options["strict_gangs"]),
        GpuClassSettings(classes, options["require_gpu_class"]),
        options["scheduler_name"],
    )


def _classes(given: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Parses `gold=h200,h100`."""
    from kubenexus.api.keys.tenant import TIERS

    found = {}
    for each in given:
        tier, _, names = each.partition("=")
        classes = tuple(name.strip() for name in names.split(",") if name.strip())
        if tier.strip().lower() not in TIERS or not classes:
            raise click.ClickException(f"--gpu-class must be TIER=CLASS,... with {', '.join(TIERS)}, not {each!r}")
        found[tier.strip().lower()] = classes
    return found
