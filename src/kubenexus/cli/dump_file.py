"""The dump of a cluster that several commands read."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kubenexus.explain.cluster_dump import ClusterDump


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
    for problem in () if quiet else dump.problems:
        click.echo(f"warning: {problem}", err=True)
    return dump
