"""The cluster that several commands read: a dump, or the live cluster of a kubeconfig."""

import functools
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kubenexus.cli.connection import ask, connection_options, default_namespace

if TYPE_CHECKING:
    from kubenexus.explain.cluster_dump import ClusterDump


class ClusterSource(NamedTuple):
    """Where the cluster is read from: `file` if there is one, else the API server."""

    file: Path | None
    kubeconfig: str = ""
    context: str = ""

    @property
    def title(self) -> str:
        """The source in a message."""
        return "the cluster" if self.file is None else str(self.file)

    @property
    def namespace(self) -> str:
        """The namespace of objects that are named without one."""
        return "default" if self.file is not None else default_namespace(self.kubeconfig, self.context)

    def now(self) -> float:
        """Returns the time that the cluster is as of."""
        from kubenexus.base.clock import WallClock

        return WallClock().now() if self.file is None else self.file.stat().st_mtime

    def open(self, own_tier: Collection[str] = ()) -> "ClusterDump":
        """Reads the cluster. Prints a warning for each object and kind that cannot be used. `own_tier` are the profiles
        whose pods may choose their tier."""
        if self.file is not None:
            return open_dump(self.file, own_tier)
        from kubenexus.explain.live_cluster import read_cluster

        dump = ask(self.kubeconfig, self.context, lambda client: read_cluster(client, own_tier))
        _warn(dump.problems)
        return dump


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options by which the cluster is found, and passes them on as `source`."""

    @functools.wraps(command)
    def with_source(dump_file: Path | None, kubeconfig: str, context: str, **said: Any) -> None:
        command(source=ClusterSource(dump_file, kubeconfig, context), **said)

    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    told = "A file that kubectl printed. Without it, the live cluster of the kubeconfig is read."
    return click.option("--cluster", "dump_file", type=file, help=told)(connection_options(with_source))


def open_dump(file: Path, own_tier: Collection[str] = (), *, quiet: bool = False) -> "ClusterDump":
    """Returns the cluster of the file. Prints a warning for each object that cannot be used, unless `quiet`. `own_tier`
    are the profiles whose pods may choose their tier."""
    # Imported here to keep NumPy out of `kubenexus --version`.
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.explain.cluster_dump import read_dump

    try:
        dump = read_dump(file.read_bytes(), str(file), own_tier)
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    _warn(() if quiet else dump.problems)
    return dump


def _warn(problems: Collection[str]) -> None:
    for problem in problems:
        click.echo(f"warning: {problem}", err=True)
