"""The story, act by act. Each makes something happen, waits until it is true, and says what is to be seen."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kubenexus.sim.demo.stage import NotTrue, Pods, Stage, all_placed, node_of, refusal

SERVICE, BATCH = 12, 40


class Act(NamedTuple):
    title: str
    play: Callable[[Stage], Awaitable[str]]


async def a_service_spreads(stage: Stage) -> str:
    await stage.service("shop")
    for number in range(SERVICE):
        await stage.pod(f"shop-{number}", "1", app="shop")
    pods = await stage.until("shop", all_placed(SERVICE), "every pod of the service has a node")
    zones = await stage.zones()
    spread = Counter(zones[node_of(pod)] for pod in pods.values())
    nodes = len({node_of(pod) for pod in pods.values()})
    if len(spread) != 2 or max(spread.values()) - min(spread.values()) > 1:
        raise NotTrue(f"the service is spread evenly over the zones: {dict(spread)}")
    per_zone = " and ".join(f"{number} in {zone}" for zone, number in sorted(spread.items()))
    return f"{SERVICE} pods on {nodes} nodes, {per_zone}"


async def a_batch_runs_through(stage: Stage) -> str:
    for number in range(BATCH):
        await stage.pod(f"batch-{number}", "2", app="batch", seconds=1)
    pods = await stage.until("batch", _all_done, "every pod of the batch succeeds")
    return f"{len(pods)} pods of a second each, all succeeded, on {len({node_of(p) for p in pods.values()})} nodes"


def _all_done(pods: Pods) -> bool:
    return len(pods) == BATCH and all(pod["status"].get("phase") == "Succeeded" for pod in pods.values())


async def gpus_go_to_who_asks(stage: Stage) -> str:
    for number in range(4):
        await stage.pod(f"train-{number}", "16", app="train", gpu=8)
    pods = await stage.until("train", all_placed(4), "every trainer has eight GPUs")
    nodes = sorted(node_of(pod) for pod in pods.values())
    if len(set(nodes)) != 4 or not all(node.startswith("h100-") for node in nodes):
        raise NotTrue(f"each trainer has an H100 node of its own: {nodes}")
    return f"four trainers of eight GPUs on {', '.join(nodes)}"


async def a_node_is_drained(stage: Stage) -> str:
    pods = await stage.pods("shop")
    node = Counter(node_of(pod) for pod in pods.values()).most_common(1)[0][0]
    await stage.cordon(node)
    moving = [pod for pod in pods.values() if node_of(pod) == node]
    for pod in moving:  # what the service's controller would do
        await stage.remove(pod)
        await stage.pod(f"{pod['metadata']['name']}-again", "1", app="shop")
    pods = await stage.until("shop", all_placed(SERVICE), "every pod of the drained node has another")
    if any(node_of(pod) == node for pod in pods.values()):
        raise NotTrue(f"nothing is left on {node}")
    return f"{len(moving)} pod(s) left {node}, which is cordoned, and run elsewhere"


async def a_hopeless_pod_is_told_why(stage: Stage) -> str:
    await stage.pod("hopeless", "1", gpu=16)
    pods = await stage.until("hopeless", lambda pods: any(map(refusal, pods.values())), "the pod is told why it waits")
    said = refusal(pods["hopeless"])
    if "Insufficient nvidia.com/gpu" not in said:
        raise NotTrue(f"it is told that GPUs are missing: {said!r}")
    return f"16 GPUs on one node? {said}"


STORY = (
    Act("A service spreads", a_service_spreads),
    Act("A batch runs through", a_batch_runs_through),
    Act("GPUs go to who asks for them", gpus_go_to_who_asks),
    Act("A node is drained", a_node_is_drained),
    Act("A hopeless pod is told why", a_hopeless_pod_is_told_why),
)
