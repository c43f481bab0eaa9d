"""The live API of a scheduler, for commands that can use it: its options, and one question at a time."""

import functools
import os
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import click

from kubenexus.cli.connection import ask

if TYPE_CHECKING:
    from kubenexus.cli.cluster_source import ClusterSource
    from kubenexus.client.client_config import ClientConfig
    from kubenexus.client.transport import ApiClient

LOOPBACK = ("127.0.0.1", "::1", "localhost")
SECONDS = 30.0  # for an answer
MAX_PAGES = 1_000
HELP = (
    "no scheduler: forward its port with `kubectl -n kubenexus-system port-forward deployment/kubenexus-scheduler "
    "10259` and give --scheduler https://127.0.0.1:10259"
)


class SchedulerApi(NamedTuple):
    """Where the scheduler answers, "" for nowhere. The user of the kubeconfig asks."""

    url: str
    authority: str = ""
    kubeconfig: str = ""
    context: str = ""

    def get(self, path: str, **parameters: str) -> bytes:
        """Returns an answer. Raises KubeNexusError."""
        from kubenexus.client.calls import Call

        wanted = Call("GET", _with_query(path, parameters))
        return ask(self.kubeconfig, self.context, lambda client: client.send(wanted, timeout=SECONDS), self.config)

    def post(self, path: str, body: bytes, **parameters: str) -> bytes:
        """Returns the answer to a question with a body. Raises KubeNexusError."""
        from kubenexus.client.calls import Call

        wanted = Call("POST", _with_query(path, parameters), body)
        return ask(self.kubeconfig, self.context, lambda client: client.send(wanted, timeout=SECONDS), self.config)

    def follow(self, path: str, each: Callable[[bytes], None], **parameters: str) -> None:
        """Calls `each` with the data of server-sent events until the server ends the stream. Raises KubeNexusError."""

        async def read(client: "ApiClient") -> None:
            async for data in _events(client, _with_query(path, parameters)):
                each(data)

        ask(self.kubeconfig, self.context, read, self.config)

    def config(self, found: "ClientConfig") -> "ClientConfig":
        """Returns how the scheduler is reached, with the credentials of the kubeconfig. Its certificate is verified,
        but not that of a forwarded port on this machine: no certificate is issued for that address."""
        import msgspec

        from kubenexus.base.errors import KubeNexusError
        from kubenexus.client.server_urls import parse_server_url
        from kubenexus.client.tls import PemSource

        address = parse_server_url(self.url, "--scheduler")
        local = address.host in LOOPBACK
        if not address.tls and not local:
            raise KubeNexusError("--scheduler: expected https://; your credentials would be sent in the clear")
        authority = PemSource("--scheduler-ca", path=self.authority) if self.authority else None
        trust = found.trust.for_server(authority, insecure=local and authority is None)
        return msgspec.structs.replace(found, address=address, trust=trust, source="--scheduler")


async def _events(client: "ApiClient", path: str) -> AsyncIterator[bytes]:
    """Yields the data of each event."""
    stream = await client.stream(path)
    try:
        while lines := await stream.batch():
            for line in lines:
                if line.startswith(b"data: "):
                    yield line.removeprefix(b"data: ")
    finally:
        stream.close()


def _with_query(path: str, parameters: dict[str, str]) -> str:
    said = {name.rstrip("_"): value for name, value in parameters.items() if value}
    return f"{path}?{urlencode(said)}" if said else path


def scheduler_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options by which the scheduler is found, and passes them on as `scheduler`."""

    @functools.wraps(command)
    def with_scheduler(scheduler_url: str, scheduler_ca: str, **said: Any) -> None:
        source = said.get("source")
        kubeconfig, context = (said.get(name) or getattr(source, name, "") for name in ("kubeconfig", "context"))
        command(scheduler=SchedulerApi(scheduler_url, scheduler_ca, kubeconfig or "", context or ""), **said)

    url = "The scheduler's secured port, such as a forwarded one. [$KUBENEXUS_SCHEDULER]"
    authority = click.option("--scheduler-ca", default="", metavar="FILE", help="The authority of its certificate.")
    default = os.environ.get("KUBENEXUS_SCHEDULER", "")
    return click.option("--scheduler", "scheduler_url", default=default, metavar="URL", help=url)(
        authority(with_scheduler)
    )


def listed(
    scheduler: SchedulerApi, source: "ClusterSource", path: str, page: Any, **parameters: str
) -> "list[Any] | None":
    """Returns the items of all pages, or None if there is no scheduler to ask, or it does not answer."""
    import msgspec

    if not scheduler.url or source.file is not None:
        return None
    items: list[Any] = []
    after = ""
    try:
        for _ in range(MAX_PAGES):
            found = msgspec.json.decode(scheduler.get(path, limit="500", continue_=after, **parameters), type=page)
            items += found.items
            after = found.next
            if not after:
                break
    except (click.ClickException, msgspec.DecodeError) as error:
        click.echo(f"warning: the scheduler did not answer ({error}); reading the cluster instead", err=True)
        return None
    return items
