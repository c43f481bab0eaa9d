"""How much memory a cluster takes, measured in a process of its own:
`python -m bench.memory NODES PODS MORE IMAGES WISH`, where the wish may be empty.

The process does what a scheduler does at its start: it lists nodes and bound pods page by page, decodes them from
JSON, tells the ledger, and drops the page; then it decides one pod of each class. What it then holds (VmRSS, so the
interpreter, NumPy and the allocator's holes are in it) is the figure. Further pods of the same classes give the slope.
"""

import itertools
import subprocess
import sys
from pathlib import Path

import msgspec

from bench import objects
from bench.cluster import BenchError, Cluster, Kind, fill_pods, placed, small_classes, spread
from bench.measure import Memory, settle_down
from bench.objects import NodeKind
from kubenexus.framework.job import Job

ROOT = Path(__file__).parents[1]


class Sizes(msgspec.Struct, frozen=True):
    """Resident bytes: with nodes and pods, and with more pods."""

    filled: int
    more: int


def measure(nodes: int, pods: int, more: int, images: int = 0, wish: str = "") -> list[Memory]:
    """In a fresh process, whose memory nothing else has touched. With a wish, all pods have such terms."""
    also = f", {images} images a node" if images else f", {wish}" if wish else ""
    arguments = [sys.executable, "-m", "bench.memory", *map(str, (nodes, pods, more, images)), wish]
    done = subprocess.run(arguments, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    sizes = msgspec.json.decode(done.stdout, type=Sizes)
    return [
        Memory("memory", f"{pods} pods{also}", nodes, mb=_mb(sizes.filled)),
        Memory("memory", f"per pod{also}", nodes, bytes=round((sizes.more - sizes.filled) / more)),
    ]


def fill(nodes: int, pods: int, more: int, images: int, wish: str = "") -> Sizes:
    """Run in the fresh process: fill a ledger and look, twice."""
    settle_down()
    cluster = Cluster(Kind(NodeKind(images=images), residents=pods / nodes, wish=wish), nodes)
    planner = cluster.planner()
    for pod in cluster.pods(template._replace(wish=wish) for template in small_classes()):
        placed(planner.decide(Job.of(pod), cluster.ledger.snapshot(), 0.0))
    settle_down()
    objects.forget_texts()
    filled = resident()
    further = itertools.islice(spread(nodes, pods + more, wish), pods, None)
    fill_pods(cluster.ledger, further, cluster.numbers)
    settle_down()
    objects.forget_texts()
    held = len(cluster.ledger.pods)
    if held != pods + more:
        raise BenchError(f"{held} pods in the ledger instead of {pods + more}")
    return Sizes(filled, resident())


def resident() -> int:
    """What this process holds in memory now, in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise OSError("/proc/self/status has no VmRSS")


def _mb(size: int) -> float:
    return round(size / 1e6, 1)


if __name__ == "__main__":
    n_nodes, n_pods, n_more, n_images = map(int, sys.argv[1:5])
    sys.stdout.buffer.write(msgspec.json.encode(fill(n_nodes, n_pods, n_more, n_images, sys.argv[5])))
