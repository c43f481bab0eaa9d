"""`python -m bench.soak`: 200,000 pods on 500 nodes; prints as it goes, and writes the figures and a picture."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec

from bench.soak import report
from bench.soak.programs import SERVERS
from bench.soak.report import Plan, Soak
from bench.soak.run import soak


@click.command()
@click.option("--nodes", default=500, show_default=True)
@click.option("--pods", default=200_000, show_default=True, help="In two halves.")
@click.option("--alive", default=2_000, show_default=True, help="So many at a time.")
@click.option("--job", default=50, show_default=True, help="Pods that are alike. The first half has to fill caches.")
@click.option("--server", type=click.Choice(list(SERVERS)), default="embedded", show_default=True)
@click.option("--every", default=5.0, show_default=True, help="Seconds between two samples.")
@click.option("--rest", default=10.0, show_default=True, help="Seconds after each half, for the last events.")
@click.option("--json", "file", type=click.Path(path_type=Path), default=Path("build/soak.json"), show_default=True)
@click.option("--picture", type=click.Path(path_type=Path), default=Path("build/soak.svg"), show_default=True)
def main(file: Path, picture: Path, **plan: Any) -> None:
    """Whether a scheduler is as small after many pods as after half of them."""
    with tempfile.TemporaryDirectory(prefix="kubenexus-soak-") as folder:
        tell(asyncio.run(soak(Path(folder), Plan(**plan), click.echo)), file, picture)


def tell(done: Soak, file: Path, picture: Path) -> None:
    for path, text in ((file, msgspec.json.encode(done)), (picture, report.picture(done).encode())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    click.echo(report.markdown(done))
    click.echo(report.verdict(done))


if __name__ == "__main__":
    main()
