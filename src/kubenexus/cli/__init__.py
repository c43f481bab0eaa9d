"""The `kubenexus` command. Each subcommand parses its options, calls one package and prints the result."""

import click

from kubenexus import __version__
from kubenexus.cli.agents import agents
from kubenexus.cli.cluster import cluster
from kubenexus.cli.completion import completion
from kubenexus.cli.config import config
from kubenexus.cli.decisions import decisions
from kubenexus.cli.demo import demo
from kubenexus.cli.devices import devices
from kubenexus.cli.discover import discover
from kubenexus.cli.doctor import doctor
from kubenexus.cli.eta import eta
from kubenexus.cli.explain import explain, why
from kubenexus.cli.gangs import gangs
from kubenexus.cli.replay import replay
from kubenexus.cli.reserve import reserve
from kubenexus.cli.run import run
from kubenexus.cli.simulate import simulate
from kubenexus.cli.top import top
from kubenexus.cli.web import web
from kubenexus.cli.webhook import webhook
from kubenexus.cli.whatif import whatif


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kubenexus")
def main() -> None:
    """KubeNexus: a Kubernetes scheduler that keeps the cluster as columns and places whole jobs."""


main.add_command(agents)
main.add_command(cluster)
main.add_command(completion)
main.add_command(config)
main.add_command(decisions)
main.add_command(demo)
main.add_command(devices)
main.add_command(discover)
main.add_command(doctor)
main.add_command(eta)
main.add_command(explain)
main.add_command(gangs)
main.add_command(replay)
main.add_command(reserve)
main.add_command(run)
main.add_command(simulate)
main.add_command(top)
main.add_command(web)
main.add_command(webhook)
main.add_command(whatif)
main.add_command(why)


@main.command()
@click.option("--markdown", is_flag=True, help="Print the page of the manual (docs/keys.md).")
def keys(markdown: bool) -> None:
    """Print every label and annotation that KubeNexus reads."""
    # Imported here to keep `kubenexus --version` fast.
    from kubenexus.api.keys import SECTIONS, render

    click.echo(render.render_markdown(SECTIONS) if markdown else render.render_plain(SECTIONS), nl=False)
