"""`kubenexus run`: the scheduler."""

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubenexus.cli.interrupts import loop_factory

if TYPE_CHECKING:
    from kubenexus.app.flags import Flags
    from kubenexus.app.http.api.live_api import LiveApi
    from kubenexus.app.process import Process
    from kubenexus.app.recording.recorder import FlightRecorder
    from kubenexus.config import Configuration
    from kubenexus.framework.profile import Factory
    from kubenexus.web.page_routes import PageRoutes

ELECTION = {
    "leader_elect": "leader_elect",
    "leader_elect_lease_duration": "lease_duration",
    "leader_elect_renew_deadline": "renew_deadline",
    "leader_elect_retry_period": "retry_period",
    "leader_elect_resource_name": "resource_name",
    "leader_elect_resource_namespace": "resource_namespace",
}


class Verbosity(click.IntRange):
    """Accepts `-v=2` as well as `-v 2`, as Go's flags do."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        stripped: Any = value.removeprefix("=") if isinstance(value, str) else value
        return super().convert(stripped, param, ctx)


class OneLineErrors(click.Command):
    """Reports a wrong flag like any other error: in one line, with exit code 1."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise click.ClickException(error.format_message()) from None


@click.command(cls=OneLineErrors)
@click.option("--config", "config_file", type=click.Path(dir_okay=False), help="A KubeSchedulerConfiguration.")
@click.option("--kubeconfig", default="", help="As with kubectl; without it, the pod's own service account.")
@click.option("--context", default="", help="A context of the kubeconfig.")
@click.option("--master", default="", help="The address of the API server, instead of the kubeconfig's.")
@click.option("--scheduler-name", default="", help="The name of the single profile: pods ask for it.")
@click.option("--leader-elect", is_flag=False, flag_value="true", type=bool, help="Of several, one schedules. [true]")
@click.option("--leader-elect-lease-duration", metavar="DURATION", help="[15s]")
@click.option("--leader-elect-renew-deadline", metavar="DURATION", help="[10s]")
@click.option("--leader-elect-retry-period", metavar="DURATION", help="[2s]")
@click.option("--leader-elect-resource-name", help="[kubenexus-scheduler]")
@click.option("--leader-elect-resource-namespace", help="[kubenexus-system]")
@click.option("--bind-address", default="0.0.0.0", show_default=True, help="Of --secure-port.")
@click.option("--secure-port", type=click.IntRange(0, 65535), default=10259, show_default=True, help="HTTPS; 0: none.")
@click.option("--health-bind-address", default="", metavar="HOST:PORT", help="Health alone, in plain HTTP.")
@click.option("--tls-cert-file", default="", help="For --secure-port; without it one is made for this start.")
@click.option("--tls-private-key-file", default="", help="Its key.")
@click.option("--live-api/--no-live-api", default=True, show_default=True, help="Questions on --secure-port.")
@click.option("--web", is_flag=True, help="Serve the web page on --secure-port, too; it uses the live API.")
@click.option("--record", "record_dir", type=click.Path(file_okay=False), help="Record decisions into this folder.")
@click.option("--record-anonymise", is_flag=True, help="With hashes in place of names.")
@click.option("--record-max", default="1Gi", show_default=True, help="Its size; the oldest goes first.")
@click.option("-v", "--v", "verbosity", type=Verbosity(0, 10), default=0, help="0 (quiet) to 10.")
@click.option("--logging-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def run(config_file: str | None, verbosity: int, logging_format: Any, **options: Any) -> None:
    """Schedule the pods of a cluster until interrupted."""
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.config import InvalidConfiguration
    from kubenexus.observe import logs

    logs.configure(verbosity, logging_format)
    try:
        _run(config_file, options)
    except InvalidConfiguration as error:
        where = f"{error.file}: " if error.file else ""
        raise click.ClickException(where + "; ".join(map(str, error.problems))) from None
    except KubeNexusError as error:
        raise click.ClickException(" ".join(str(error).split())) from None


def _run(config_file: str | None, options: Mapping[str, Any]) -> None:
    import random
    import secrets
    import socket

    from kubenexus.app.flags import apply_flags
    from kubenexus.app.process import Process
    from kubenexus.base.clock import WallClock
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.base.gc_tuning import freeze_after_import
    from kubenexus.client.client_config import ClientOptions, load_client_config
    from kubenexus.framework.registry import load_plugins
    from kubenexus.observe import logs
    from kubenexus.plugins import BUILT_IN

    if options["web"] and not (options["live_api"] and options["secure_port"]):
        raise KubeNexusError("--web: the page needs --secure-port and the live API")
    freeze_after_import()
    plugins, flags, clock = load_plugins(BUILT_IN), _flags(options), WallClock()
    configuration = apply_flags(_configuration(config_file, plugins), flags)
    for note in configuration.notes:
        logs.get("config").info("Configuration", note=str(note))
    named = options["kubeconfig"] or configuration.document.client_connection.kubeconfig
    client_options = ClientOptions(kubeconfig=named, context=options["context"], master=options["master"])
    # Twice: each user keeps its own tokens, login programs and certificates, and the lease has a thread of its own.
    access, for_lease = load_client_config(client_options, clock), load_client_config(client_options, clock)
    names = [profile.name for profile in configuration.profiles] if options["record_anonymise"] else None
    recorder = _recorder(options["record_dir"], options["record_max"], config_file, flags.scheduler_name, names)
    identity = f"{socket.gethostname()}_{secrets.token_hex(8)}"

    async def life() -> None:
        process = Process(
            configuration,
            plugins,
            access,
            clock,
            random.Random(),
            lease_access=for_lease,
            flags=flags,
            identity=identity,
            recorder=recorder,
            live=_live_api(options["web"]) if options["live_api"] and flags.secure_port else None,
        )
        await _until_signalled(process)

    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(life())
    finally:
        if recorder is not None:
            recorder.close()


def _live_api(with_page: bool) -> "LiveApi":
    from kubenexus.app.http.api.live_api import LiveApi
    from kubenexus.explain.live_answers import LiveAnswers

    return LiveApi(LiveAnswers(), _page if with_page else None)


def _page() -> "PageRoutes":
    """Returns the web page. Called when the web server is imported already."""
    from kubenexus.web.page_routes import PageRoutes

    return PageRoutes()


def _recorder(
    folder: str | None, limit: str, config_file: str | None, scheduler_name: str, profiles: list[str] | None
) -> "FlightRecorder | None":
    """Returns the recorder for `--record`, None without it. With `profiles`, all names but theirs are hashed. Raises
    KubeNexusError."""
    import secrets

    from kubenexus import __version__
    from kubenexus.api.quantity import to_units
    from kubenexus.app.recording.anonymiser import Anonymiser
    from kubenexus.app.recording.entries import SCHEMA, Header
    from kubenexus.app.recording.recorder import FlightRecorder
    from kubenexus.app.recording.segments import SegmentWriter
    from kubenexus.base.errors import KubeNexusError, Malformed

    if folder is None:
        return None
    try:
        size = to_units(limit)
        writer = SegmentWriter(Path(folder), size)
    except Malformed as error:
        raise KubeNexusError(f"--record-max: {error}") from None
    except OSError as error:
        raise KubeNexusError(f"--record: {error}") from None
    text = "" if config_file is None else Path(config_file).read_text(encoding="utf-8")
    anonymiser = None if profiles is None else Anonymiser(secrets.token_bytes(32), profiles)
    header = Header(SCHEMA, __version__, text, scheduler_name, anonymised=anonymiser is not None)
    recorder = FlightRecorder(writer, header, anonymiser)
    if recorder.failed:
        raise KubeNexusError(f"--record: cannot write into {folder}")
    return recorder


async def _until_signalled(process: "Process") -> None:
    loop = asyncio.get_running_loop()
    for ending in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(ending, process.stop)
    loop.add_signal_handler(signal.SIGUSR2, process.log_digest)
    await process.run()


def _configuration(file: str | None, plugins: "Mapping[str, Factory]") -> "Configuration":
    from kubenexus.config import defaults, load

    return defaults(plugins) if file is None else load(Path(file), plugins)


def _flags(options: Mapping[str, Any]) -> "Flags":
    from kubenexus.app.flags import Flags
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.config.durations import Duration

    election: dict[str, Any] = {}
    for option, field in ELECTION.items():
        value = options[option]
        if value is None:
            continue
        try:
            timed = field in ("lease_duration", "renew_deadline", "retry_period")
            election[field] = Duration.of(value) if timed else value
        except ValueError as error:
            raise KubeNexusError(f"--{option.replace('_', '-')}: {error}") from None
    plain = ("scheduler_name", "bind_address", "secure_port", "health_bind_address")
    files = ("tls_cert_file", "tls_private_key_file")
    return Flags(leader_election=election, **{name: options[name] for name in (*plain, *files)})
