"""The API server that several commands ask: its options, and one question at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from kubenexus.client.client_config import ClientConfig
    from kubenexus.client.transport import ApiClient

Answer = TypeVar("Answer")


def connection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options by which the API server is found."""
    command = click.option("--context", default="", help="A context of the kubeconfig.")(command)
    return click.option("--kubeconfig", default="", help="As with kubectl.")(command)


def ask(
    kubeconfig: str,
    context: str,
    question: "Callable[[ApiClient], Awaitable[Answer]]",
    configure: "Callable[[ClientConfig], ClientConfig]" = lambda config: config,
) -> Answer:
    """Sends one question to the API server, or to the server that `configure` names. Its refusal is the command's
    error."""
    from kubenexus.base.clock import WallClock
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.client.calls import Unreachable
    from kubenexus.client.client_config import ClientOptions, load_client_config
    from kubenexus.client.transport import ApiClient

    async def asked() -> Answer:
        clock = WallClock()
        found = load_client_config(ClientOptions(kubeconfig=kubeconfig, context=context), clock)
        found = configure(found)
        client = ApiClient(found, clock)
        try:
            return await question(client)
        except Unreachable as error:
            raise KubeNexusError(f"cannot reach {error} ({found.source})") from None
        finally:
            await client.close()

    try:
        return asyncio.run(asked())
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None


def default_namespace(kubeconfig: str, context: str) -> str:
    """Returns the namespace of the kubeconfig's context, as kubectl uses it."""
    from kubenexus.base.clock import WallClock
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.client.client_config import ClientOptions, load_client_config

    try:
        found = load_client_config(ClientOptions(kubeconfig=kubeconfig, context=context), WallClock())
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    return found.namespace or "default"
