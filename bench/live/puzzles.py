"""`python -m bench.live.puzzles`: how many gangs with device claims each scheduler places, of those that fit tightly.

The gangs are planted (`kubenexus.testing.claim_puzzles`): all of their members fit, but not if each takes the first
devices that match. All puzzles are posed on one cluster, each on nodes of its own; a gang is a PodGroup.
"""

import asyncio
from collections import Counter
from typing import Any, Final

import click
import msgspec

from bench.live import contestants
from bench.live.cases import SCHEDULER
from bench.live.contestants import OURS, THEIRS
from bench.live.stage import CLOCK, CREATORS, Stage, at_most, staged
from bench.report import machine
from kubenexus.client import kinds
from kubenexus.client.kinds import ApiResource
from kubenexus.client.verbs import list_call
from kubenexus.testing.claim_puzzles import Puzzle, claim_of, class_of_all, puzzles, slice_of

QUIET: Final = 45.0  # seconds without a bind after which no more are waited for
PUZZLE: Final = "puzzle"
Data = dict[str, Any]


def objects(number: int, puzzle: Puzzle) -> list[tuple[ApiResource, Data]]:
    """The nodes, slices, claims and pods of a puzzle."""
    made: list[tuple[ApiResource, Data]] = []
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    for i, devices in enumerate(puzzle.nodes):
        name = f"p{number}-n{i}"
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, PUZZLE: str(number)}}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        made.append((kinds.NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}))
        made.append((kinds.RESOURCE_SLICES, slice_of(name, devices)))
    group: Data = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": f"p{number}"}}
    group["spec"] = {"schedulingPolicy": {"gang": {"minCount": len(puzzle.members)}}}
    made.append((kinds.POD_GROUPS, group))
    for i, member in enumerate(puzzle.members):
        name = f"p{number}-m{i:02d}"
        made.append((kinds.RESOURCE_CLAIMS, claim_of(name, member)))
        made.append((kinds.PODS, _pod(name, number)))
    return made


def _pod(name: str, number: int) -> Data:
    container = {
        "name": "main",
        "image": "pause",
        "resources": {"requests": {"cpu": "100m"}, "claims": [{"name": "gpu"}]},
    }
    spec = {
        "schedulerName": SCHEDULER,
        "schedulingGroup": {"podGroupName": f"p{number}"},
        "nodeSelector": {PUZZLE: str(number)},
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
        "containers": [container],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {PUZZLE: str(number)}},
        "spec": spec,
    }


async def solved(who: str, posed: list[Puzzle]) -> tuple[int, float]:
    """How many gangs are bound as a whole in the end, and the seconds until the last bind."""
    async with staged(gangs=True) as stage:
        namespace = await stage.namespace()
        await stage.make(kinds.DEVICE_CLASSES, class_of_all())
        for puzzle in (objects(i, each) for i, each in enumerate(posed)):
            await at_most(CREATORS, _creator(stage, puzzle, namespace), len(puzzle))
        await stage.untaint()
        began = last = CLOCK.now()
        contestant = contestants.start(who, stage.plane, stage.gates)
        bound: Counter[str] = Counter()
        while contestant.running and CLOCK.now() - last < QUIET and bound.total() < sum(len(p.members) for p in posed):
            await asyncio.sleep(0.5)
            found = await _bound(stage, namespace)
            if found != bound:
                bound, last = found, CLOCK.now()
        return sum(bound[str(i)] == len(each.members) for i, each in enumerate(posed)), last - began


def _creator(stage: Stage, made: list[tuple[ApiResource, Data]], namespace: str) -> Any:
    async def create(number: int) -> None:
        resource, body = made[number]
        await stage.make(resource, body, namespace if resource.namespaced else "")

    return create


async def _bound(stage: Stage, namespace: str) -> Counter[str]:
    listed = msgspec.json.decode(await stage.read(list_call(kinds.PODS, namespace=namespace)))
    return Counter(each["metadata"]["labels"][PUZZLE] for each in listed["items"] if "nodeName" in each["spec"])


@click.command()
@click.option("--number", default=100, show_default=True)
@click.argument("schedulers", nargs=-1, type=click.Choice([THEIRS, OURS]))
def main(schedulers: tuple[str, ...], number: int) -> None:
    """How many of the gangs each of SCHEDULERS places."""
    click.echo(machine())
    posed = puzzles(number)
    for who in schedulers or (THEIRS, OURS):
        gangs, seconds = asyncio.run(solved(who, posed))
        click.echo(f"{who:<16} {gangs} of {number} gangs, the last bind after {seconds:.1f} s")


if __name__ == "__main__":
    main()
