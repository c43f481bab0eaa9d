"""The steps of the demo. Each changes the cluster, waits for the outcome and returns a line about it.

To add a step, add a function and an entry in STORY. `only` is the reason why other schedulers cannot run the step; it
is then skipped, and the output says so.
"""

import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import held_shares
from kubenexus.sim.controllers.types import DEPLOYMENTS, JOBS
from kubenexus.sim.demo import manifests
from kubenexus.sim.demo.cluster_state import ClusterState, amount, is_ready, measure, owned_by, refusal
from kubenexus.sim.demo.demo_client import DemoClient, expect
from kubenexus.sim.demo.demo_nodes import GPU
from kubenexus.sim.kubelets.node_calls import ZONE

REPLICAS, BATCHES, SIZE, MEMBERS = 12, 5, 8, 3
WORKERS, SHARDS, TRAINERS = 8, 6, 4
URGENT = "urgent"  # a priority class, and the gang that has it
ISLAND = 8
BRONZE, GOLD = "lab", "prod"  # namespaces of two tenants, and the apps in them
SPREAD = "a service is spread, so that it loses little with a node"
PACKED = "a batch is packed, so that whole nodes stay free for large pods and gangs"
KEPT = "H100s are kept for the tenant with the gold tier until they are the only place left"
EQUAL = "kube-scheduler knows no tenants, nor what hardware is worth"
UNJOINED = "kube-scheduler does not know which GPUs are joined"
ALONE = "kube-scheduler places the members of these gangs one by one"


class DemoStep(NamedTuple):
    title: str
    play: Callable[[DemoClient], Awaitable[str]]
    only: str = ""


# ---- the steps -------------------------------------------------------------------------------------------------------


async def a_deployment_spreads(client: DemoClient) -> str:
    state = client.state
    await client.apply(manifests.service("shop"), manifests.deployment("shop", REPLICAS, "2"))
    await client.until(f"{REPLICAS} pods of deployment shop with a node", _unplaced(state, "shop", REPLICAS))
    await client.until("deployment shop available", _unfulfilled(state, f"{DEPLOYMENTS}/shop", "Available"))
    zones = Counter(state.nodes[pod.spec.node_name].metadata.labels[ZONE] for pod in state.of("shop"))
    even = len(zones) == 2 and max(zones.values()) - min(zones.values()) <= 1
    expect(even, "them spread evenly over two zones", str(dict(zones)))
    nodes, most = _nodes_of(state.of("shop")), min(REPLICAS, len(_ordinary(state)))
    expect(nodes == most, f"them on {most} nodes", f"{nodes} nodes")
    per_zone = " and ".join(f"{number} in {zone}" for zone, number in sorted(zones.items()))
    return f"{REPLICAS} pods on {nodes} nodes, {per_zone}: {SPREAD}"


async def every_node_gets_its_daemon(client: DemoClient) -> str:
    state = client.state
    await client.apply(manifests.daemon_set("logs"))
    await client.until("one ready pod of daemonset logs a node", _unready(state, "logs", len(state.nodes)))
    places = _nodes_of(state.of("logs"))
    expect(places == len(state.nodes), "no two of them on one node", f"{places} nodes with one")
    return f"{places} pods, one a node, GPU nodes and their taints included"


async def a_batch_runs_through(client: DemoClient) -> str:
    state, names = client.state, [f"batch-{number}" for number in range(BATCHES)]
    fewest = _fewest_nodes(state, BATCHES * SIZE, 1000)
    for number, name in enumerate(names):
        await client.apply(manifests.job(name, "batch", SIZE, "1", seconds=1 + number % 2))
        await client.pause(0.4)
    for name in names:
        await client.until(f"job {name} complete", _unfulfilled(state, f"{JOBS}/{name}", "Complete"))
    done = sum(state.workloads[f"{JOBS}/{name}"].status.succeeded for name in names)
    expect(done == BATCHES * SIZE, f"{BATCHES * SIZE} pods succeeded", f"{done}")
    used = state.nodes_at_once("batch")
    nodes = f"at most {used} of {len(_ordinary(state))} nodes at once"
    story = f"{BATCHES} jobs, {done} pods of a second or two, all succeeded, on {nodes}"
    if not client.packs:
        return story
    expect(used <= fewest + 1, f"them on {fewest} nodes, the fewest that hold them, or one more", f"{used} nodes")
    return f"{story}: {PACKED}"


async def a_database_starts_in_order(client: DemoClient) -> str:
    state = client.state
    await client.apply(manifests.stateful_set("db", MEMBERS, "4"))
    await client.until(f"{MEMBERS} ready pods of statefulset db", _unready(state, "db", MEMBERS))
    pods = state.of("db")
    expect(_nodes_of(pods) == MEMBERS, "each on a node of its own", f"{_nodes_of(pods)} nodes")
    for before, after in itertools.pairwise(pods):
        in_order = state.ready[before.metadata.uid] <= state.born[after.metadata.uid]
        expect(in_order, f"{after.metadata.name} made when {before.metadata.name} was ready", "it made before")
    return f"{', '.join(pod.metadata.name for pod in pods)}, each when the one before was ready, each on its own node"


async def a_small_pod_leaves_islands_whole(client: DemoClient) -> str:
    """All GPUs are free: a pod with one could go anywhere."""
    state = client.state
    await client.apply(manifests.pod("notebook", "4", gpu=1))
    await client.until("pod notebook with a node", _unplaced(state, "notebook", 1))
    small = state.of("notebook")[0].spec.node_name
    expect(small.startswith("t4-"), "the pod with one GPU on a node without an island", small)
    await client.pause(1.5)
    await client.apply(manifests.pod("model", "16", gpu=ISLAND))
    await client.until("pod model with a node", _unplaced(state, "model", 1))
    (large,) = state.of("model")
    cards = {each.device for each in held_shares(large)}
    whole = large.spec.node_name.startswith("h100-") and len(cards) == ISLAND
    expect(whole, f"{ISLAND} GPUs of one island named in its annotation", f"{len(cards)} on {large.spec.node_name}")
    await client.pause(1.5)
    for app in ("notebook", "model"):
        await client.end(app)
    await client.until("both gone", lambda: "some" if state.of("notebook") + state.of("model") else "")
    island = f"the whole island of {large.spec.node_name}"
    return f"one GPU came from {small} and broke no island of {ISLAND}; then a pod with {ISLAND} got {island}"


async def tenants_get_the_hardware_of_their_tier(client: DemoClient) -> str:
    """All GPUs are free, and any pod may use any of them."""
    state = client.state
    await client.apply(manifests.namespace(BRONZE), manifests.namespace(GOLD, tier="gold"))
    t4, a100 = _gpus(state, "t4"), _gpus(state, "a100")
    await _bronze_pods(client, {"t4": 1})
    await client.apply(manifests.pod(GOLD, "4", gpu=1, namespace=GOLD))
    await client.until(f"pod {GOLD} with a node", _unplaced(state, GOLD, 1))
    best = state.of(GOLD)[0].spec.node_name
    expect(_model(best) == "h100", "the pod of the gold tenant on an H100", best)
    await client.pause(1.5)
    await _bronze_pods(client, {"t4": t4, "a100": a100})
    await _bronze_pods(client, {"t4": t4, "a100": a100, "h100": 1})
    for app in (BRONZE, GOLD):
        await client.end(app)
    await client.until("both tenants gone", lambda: "some" if state.of(BRONZE) + state.of(GOLD) else "")
    bronze = f"a bronze one filled {t4} T4s, then {a100} A100s, and only its next pod took an H100"
    return f"a gold tenant got an H100 at once; {bronze}: {KEPT}"


async def _bronze_pods(client: DemoClient, models: dict[str, int]) -> None:
    """Adds pods with one GPU until there are as many as `models` has. Expects them on these models."""
    state, count = client.state, sum(models.values())
    for number in range(len(state.of(BRONZE)), count):
        await client.apply(manifests.pod(f"{BRONZE}-{number}", "2", gpu=1, app=BRONZE, namespace=BRONZE))
    await client.until(f"{count} pods of the bronze tenant with a node", _unplaced(state, BRONZE, count))
    found = Counter(_model(pod.spec.node_name) for pod in state.of(BRONZE))
    expect(found == models, f"the pods of the bronze tenant on {_listed(models)}", _listed(found))
    await client.pause(1.5)


async def gpus_go_to_who_asks(client: DemoClient) -> str:
    state = client.state
    await client.apply(manifests.job("train", "train", TRAINERS, "16", gpu=8))
    await client.until(f"{TRAINERS} pods of job train with a node", _unplaced(state, "train", TRAINERS))
    nodes = sorted({pod.spec.node_name for pod in state.of("train")})
    whole = len(nodes) == TRAINERS and all(node.startswith("h100-") for node in nodes)
    expect(whole, "each trainer on an H100 node of its own", ", ".join(nodes))
    return f"four trainers of eight GPUs on {', '.join(nodes)}"


async def an_urgent_gang_takes_what_it_needs(client: DemoClient) -> str:
    """All H100s are in use, by pods of a lower priority."""
    state = client.state
    await client.apply(manifests.priority_class(URGENT, 1000))
    before = {pod.metadata.uid for pod in state.of("train")}
    await client.apply(*manifests.gang("greedy", TRAINERS + 1, "16", gpu=8, priority=URGENT))

    def untold() -> str:
        told = sum(bool(_short_of(pod)) for pod in state.of("greedy"))
        return "" if told == TRAINERS + 1 else f"{told} told"

    await client.until("all members of gang greedy told that they wait", untold)
    left = {pod.metadata.uid for pod in state.of("train")}
    expect(left == before, "no trainer evicted for a gang that does not fit all the same", f"{len(left & before)} left")
    await client.pause(1.5)
    await client.end("greedy")
    await client.apply(*manifests.gang(URGENT, 2, "16", gpu=8, priority=URGENT))
    await client.until(f"2 ready pods of gang {URGENT}", _unready(state, URGENT, 2))
    kept = {pod.metadata.uid for pod in state.of("train")} & before
    expect(len(kept) == TRAINERS - 2, f"{TRAINERS - 2} trainers still there", f"{len(kept)}")
    await client.pause(1.5)
    await client.end(URGENT)
    await client.until(f"{TRAINERS} ready trainers again", _unready(state, "train", TRAINERS))
    useless = f"a gang of {TRAINERS + 1} nodes evicted none of the {TRAINERS} trainers, since it would not have fitted"
    return f"{useless}; one of two nodes evicted two and ran, and when it left, they were back"


async def two_gangs_want_the_same_gpus(client: DemoClient) -> str:
    """Twelve GPUs are free, and two gangs of eight arrive at once, their members interleaved."""
    state, names = client.state, ("red", "blue")
    for pair in zip(*(manifests.gang(name, WORKERS, "2", gpu=1) for name in names), strict=True):
        await client.apply(*pair)

    def unsettled() -> str:
        """Every member has a node or a condition with the reason."""
        pods = [pod for name in names for pod in state.of(name)]
        settled = sum(bool(pod.spec.node_name or _short_of(pod)) for pod in pods)
        return "" if settled == len(pods) == 2 * WORKERS else f"{settled} of {len(pods)}"

    await client.until("every member with a node, or told why not", unsettled)
    first, second = sorted(names, key=lambda name: not state.of(name)[0].spec.node_name)
    counts = [sum(bool(pod.spec.node_name) for pod in state.of(name)) for name in (first, second)]
    expect(counts == [WORKERS, 0], "one gang on its nodes and nobody of the other", f"{counts[0]} and {counts[1]} pods")
    await client.pause(1.5)
    await client.end(first)
    await client.until(f"{WORKERS} ready pods of gang {second}", _unready(state, second, WORKERS))
    await client.end(second)
    await client.until("both gangs gone", lambda: "some" if state.of(first) + state.of(second) else "")
    return f"{first} ran as a whole and {second} held nothing meanwhile; then {second} ran as a whole"


async def a_gang_is_told_what_it_lacks(client: DemoClient) -> str:
    state = client.state
    await client.apply(manifests.pod("notebook", "4", gpu=4))
    await client.until("pod notebook with a node", _unplaced(state, "notebook", 1))
    await client.apply(*manifests.gang("llama", SHARDS, "2", gpu=2))
    told: list[str] = []

    def untold() -> str:
        """All members have the refusal in their condition, and the first one the missing resources."""
        told[:] = sorted(_short_of(pod) for pod in state.of("llama"))
        numbers = sum("members fit" in each for each in told)
        return "" if all(told) and numbers == 1 else f"{sum(map(bool, told))} told, {numbers} with numbers"

    await client.until("all members of gang llama told that they wait", untold)
    why = next(each for each in told if "members fit" in each)
    exact = f"4 of at least {SHARDS} members fit in the whole cluster; 2 more need" in why and "4 nvidia.com/gpu" in why
    expect(exact, "gang llama told that it lacks 4 GPUs for 2 members", repr(why))
    await client.pause(1.5)
    left = await client.end("notebook")
    await client.until(f"{SHARDS} pods of gang llama with a node", _unplaced(state, "llama", SHARDS))
    seconds = max(state.placed[pod.metadata.uid] for pod in state.of("llama")) - left
    await client.end("llama")
    return f"{why} A pod with 4 GPUs leaves, and {1000 * seconds:.0f} ms later all {SHARDS} have a node"


async def a_node_is_drained(client: DemoClient) -> str:
    state = client.state
    crowd = Counter(pod.spec.node_name for app in ("shop", "db") for pod in state.of(app))
    node = min(crowd, key=lambda name: (-crowd[name], name))
    await client.cordon(node)
    await client.pause(1.5)
    moved = await client.drain(node)
    await client.until(f"{REPLICAS} ready pods of deployment shop", _unready(state, "shop", REPLICAS))
    await client.until(f"{MEMBERS} ready pods of statefulset db", _unready(state, "db", MEMBERS))
    left = [pod.metadata.name for pod in state.of("shop") + state.of("db") if pod.spec.node_name == node]
    expect(not left, f"nothing but daemons on {node}", ", ".join(left))
    expect(any(owned_by(pod, "DaemonSet") for pod in state.on(node)), f"the daemon still on {node}", "none")
    return f"{moved} pods left {node}, which is cordoned, and run elsewhere; its daemon stays"


async def a_hopeless_pod_is_told_why(client: DemoClient) -> str:
    state = client.state
    await client.apply(manifests.pod("hopeless", "1", gpu=16))

    def why() -> str:
        return next((refusal(pod) for pod in state.of("hopeless")), "")

    await client.until("pod hopeless told why it waits", lambda: "" if why() else "no word")
    expect("Insufficient nvidia.com/gpu" in why(), "it told that GPUs are lacking", repr(why()))
    return f"16 GPUs on one node? {why()}"


STORY = (
    DemoStep("A Deployment spreads", a_deployment_spreads),
    DemoStep("Every node gets its daemon", every_node_gets_its_daemon),
    DemoStep("A batch of Jobs runs through", a_batch_runs_through),
    DemoStep("A database starts in order", a_database_starts_in_order),
    DemoStep("A small pod leaves islands whole", a_small_pod_leaves_islands_whole, only=UNJOINED),
    DemoStep("Tenants get the hardware of their tier", tenants_get_the_hardware_of_their_tier, only=EQUAL),
    DemoStep("GPUs go to who asks for them", gpus_go_to_who_asks),
    DemoStep("An urgent gang takes what it needs", an_urgent_gang_takes_what_it_needs, only=ALONE),
    DemoStep("Two gangs want the same GPUs", two_gangs_want_the_same_gpus, only=ALONE),
    DemoStep("A gang is told what it lacks", a_gang_is_told_what_it_lacks, only=ALONE),
    DemoStep("A node is drained", a_node_is_drained),
    DemoStep("A hopeless pod is told why", a_hopeless_pod_is_told_why),
)


# ---- predicates ------------------------------------------------------------------------------------------------------


def _unplaced(state: ClusterState, app: str, count: int) -> Callable[[], str]:
    return lambda: _fewer(state.of(app), count, lambda pod: bool(pod.spec.node_name), "with a node")


def _unready(state: ClusterState, app: str, count: int) -> Callable[[], str]:
    return lambda: _fewer(state.of(app), count, is_ready, "ready")


def _fewer(pods: list[Pod], count: int, good: Callable[[Pod], bool], what: str) -> str:
    """Returns what is missing, or "" if there are exactly `count` pods and all are good."""
    number = sum(map(good, pods))
    return "" if number == len(pods) == count else f"{number} of {len(pods)} {what}"


def _unfulfilled(state: ClusterState, workload: str, condition: str) -> Callable[[], str]:
    def saw() -> str:
        found = state.workloads.get(workload)
        if found is None:
            return "no such workload"
        return "" if found.says(condition) else f"its condition {condition} not true"

    return saw


def _short_of(pod: Pod) -> str:
    """Returns what the gang lacks, or a pointer to that text; "" while members are missing."""
    why = refusal(pod)
    return why if "members fit" in why or "refused as a whole" in why else ""


def _nodes_of(pods: list[Pod]) -> int:
    return len({pod.spec.node_name for pod in pods})


# ---- nodes -----------------------------------------------------------------------------------------------------------


def _ordinary(state: ClusterState) -> list[str]:
    """Returns the nodes without GPUs."""
    return [name for name, node in state.nodes.items() if measure(node)[0] != GPU]


def _fewest_nodes(state: ClusterState, count: int, milli: int) -> int:
    """Returns how few ordinary nodes hold `count` pods of `milli` milli-CPUs; all nodes if they are too few."""
    free = [measure(state.nodes[name])[1] - amount(state.on(name), "cpu") for name in _ordinary(state)]
    held = itertools.accumulate(sorted((each // milli for each in free), reverse=True))
    return min(sum(1 for each in held if each < count) + 1, len(free))


def _model(node: str) -> str:
    return node.partition("-")[0]


def _gpus(state: ClusterState, model: str) -> int:
    return sum(measure(node)[1] for name, node in state.nodes.items() if _model(name) == model)


def _listed(models: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {model}" for model, number in sorted(models.items()))
