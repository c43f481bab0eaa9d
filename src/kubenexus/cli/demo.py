"""`kubenexus demo`: see it work, with nothing but Python."""

import click


@click.command()
@click.option(
    "--nodes", type=click.IntRange(min=4), default=12, show_default=True, help="Ordinary nodes, besides GPUs."
)
@click.option("--seed", type=int, default=1, show_default=True, help="The same names and identities every time.")
@click.option("--patience", type=float, default=30.0, show_default=True, help="Seconds until an act has failed.")
@click.option("--keep", is_flag=True, help="Leave the cluster running afterwards, until Ctrl-C.")
@click.option("--scheduler", type=click.Choice(["kubenexus", "none"]), default="kubenexus", help="Who places the pods.")
def demo(nodes: int, seed: int, patience: float, keep: bool, scheduler: str) -> None:
    """A cluster in the box, the real scheduler, and a story in acts.

    Everything ends with the command. If an act does not come true, it says which one, and the exit code is 1.
    """
    import asyncio

    from kubenexus.base.errors import KubeNexusError
    from kubenexus.sim.demo.show import play

    ours = scheduler == "kubenexus"
    try:
        asyncio.run(play(click.echo, nodes=nodes, seed=seed, patience=patience, keep=keep, scheduler=ours))
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        click.echo("\nended")
