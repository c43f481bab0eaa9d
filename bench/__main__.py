"""`python -m bench`: run, print, write build/bench.json."""

from pathlib import Path

import click

from bench import report, suite
from bench.suite import Plan
from bench.targets import judge


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--nodes", default="", metavar="N[,N...]", help="Sizes of clusters; default 1000,5000,15000,50000.")
@click.option("--only", default="", metavar="PATTERN", help="Benches whose 'bench/case' contains this (* allowed).")
@click.option("--quick", is_flag=True, help="A first impression: 1,000 and 5,000 nodes, few rounds, no memory.")
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds of each bench; the best one counts.")
@click.option("--markdown", is_flag=True, help="Print the tables of docs/benchmarks.md.")
@click.option(
    "--output", default="build/bench.json", type=click.Path(dir_okay=False, path_type=Path), show_default=True
)
def main(nodes: str, only: str, quick: bool, rounds: int | None, markdown: bool, output: Path) -> None:
    """Time decisions against bare NumPy on this machine. A slow result is a result: the exit code is 0."""
    plan = Plan(only=only)
    if quick:
        plan = plan._replace(sizes=suite.SIZES[:2], rounds=20, memory=plan.memory if "memory" in only else None)
    if nodes:
        plan = plan._replace(sizes=_sizes(nodes))
    if rounds:
        plan = plan._replace(rounds=rounds)
    results = []
    click.echo(report.machine() + "\n")
    if not markdown:
        click.echo(report.header())
    for result in suite.run(plan):
        results.append(result)
        if not markdown:
            click.echo(report.line(result))
    judgements = list(judge(results))
    click.echo(report.markdown(results, judgements) if markdown else "\n" + report.verdicts(judgements))
    report.write(results, output)


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part.replace("_", "")) for part in text.replace(",", " ").split())
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers", param_hint="--nodes") from None
    if not sizes or min(sizes) < 1:
        raise click.BadParameter("needs at least one node", param_hint="--nodes")
    return sizes


if __name__ == "__main__":
    main()
