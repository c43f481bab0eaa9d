"""Renders docs/placement.md: `python -m tests.placement.page`."""

from typing import Final

from kubenexus.plugins import OWN_ORDER
from tests.placement.mixed_cluster import NODE_KINDS
from tests.placement.table import Row, rows

# What each plugin does, in one line.
PLUGINS: Final = {
    "ProfileClassifier": "finds the kind of work; the others use it",
    "WorkloadAwareScoring": "packs batch and training, spreads services, inference and interactive pods",
    "BackfillScoring": "keeps pods that agree to be preempted off nodes that are kept for better tenants",
    "TenantHardwareAffinityScore": "sends GPU pods to hardware of their tenant's tier, others to nodes without GPUs",
    "DeviceFit": "finds the cards of a pod and names them",
    "VRAMScheduler": "finds cards with enough memory, and no more than needed",
    "GPUTopology": "gives pods with several GPUs ones that are joined",
    "ResourceFragmentationScore": "keeps islands of GPUs whole for pods that need them",
    "NetworkFabricScore": "prefers the better fabric, and places near other members of the job",
    "TopologyScoring": "spreads the pods of one workload over zones, regions and racks",
    "NUMATopology": "keeps pods off nodes whose kubelet would refuse them, and prefers whole NUMA nodes",
}
_HEAD = """# Placement: who asks, what runs, where it lands

KubeNexus looks at **who** asks (the tenant and its tier), **what** runs (service, inference, interactive, batch or
training) and **where** the pod would land (hardware, islands of GPUs, fabric, zone). Your pods need no annotation.

## In ten minutes

Apply the examples to a cluster on which [KubeNexus runs](running.md), and look where the pods are:

```sh
kubectl apply -f examples/placement/namespaces.yaml
kubectl apply -f examples/placement/
kubectl get pods -A -o wide -l example=placement
```

No GPUs at hand? On the [embedded cluster](embedded.md) these commands make some:

```sh
export KUBECONFIG=/tmp/kubeconfig
kubenexus agents --nodes 1 --prefix t4- --gpu 4 --label nvidia.com/gpu.product=Tesla-T4 &
kubenexus agents --nodes 1 --prefix h100- --gpu 8 --label nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3 &
```

| file | what you see |
|---|---|
| [namespaces.yaml](../examples/placement/namespaces.yaml) | a gold and a bronze tenant |
| [deployment.yaml](../examples/placement/deployment.yaml) | its pods are on different nodes, none of which has GPUs |
| [job.yaml](../examples/placement/job.yaml) | its pods are together on the node that was fullest |
| [training.yaml](../examples/placement/training.yaml) | the gold tenant's pod has the best GPUs |
| [model-server.yaml](../examples/placement/model-server.yaml) | the bronze tenant's pod has the cheapest GPU |
| [spread-job.yaml](../examples/placement/spread-job.yaml) | a job that asks to be spread |

Then ask why. You see the kind of work, the tenant, and the points of each plugin for the best nodes:

```sh
kubectl get nodes,pods,namespaces,services,replicasets,statefulsets,resourceslices -A -o json > dump.json
kubenexus explain --cluster dump.json --pod research/training
```

## How a node is chosen

1. **Who.** The namespace or queue of the pod has the [tier of its tenant](tenants.md): gold, silver or bronze. Without
   a label it is bronze. A pod cannot raise its own tier.
2. **What.** Owners, labels, images and requests show the [kind of work](classification.md).
3. **Where.** Nodes that cannot run the pod are refused, each with a reason. Every plugin gives each other node 0 to 100
   points, and these count as often as the plugin's weight. The node with the largest sum wins.

kube-scheduler's own plugins are all there. Those for what you ask for (TaintToleration, NodeAffinity, PodTopologySpread
and InterPodAffinity) have four times their usual weight, since utilization counts four times as much, too: a preference
in your manifest outweighs as much as it does with kube-scheduler. These come on top:

"""
_WEIGHTS = "A profile named `default-scheduler` has none of them: it answers as kube-scheduler does.\n"
_TABLE = """
## Who wins

Six kinds of nodes, each pod alone. The numbers are sums of points, the winner's in bold; a dash is a node that cannot
run the pod. The last column has the next best kind of node, and what the plugins that decided prefer about the winner.

"""
_TAIL = """
The first row: {pod} has {best} points on an empty node without GPUs, and {second} on one that is half full.

## Change it

- For one workload: `workload.kubenexus.io/placement: pack` or `spread`, `workload.kubenexus.io/type`,
  `scheduling.kubenexus.io/vram-request` and the other [keys](keys.md), as labels or annotations of its pods.
- For a tenant: the label `tenant.kubenexus.io/tier` of its namespace. For a node: `tenant.kubenexus.io/reserved-tier`
  keeps it for tenants of a tier, `hardware.kubenexus.io/tier` says what its GPUs are worth.
- For all: weights and arguments of the plugins in the [configuration](configuration.md#our-own-settings).

`make docs` computes the table and the weights from [the pods and nodes](../tests/placement/mixed_cluster.py); a test
compares them. For each plugin [a test](../tests/placement/test_plugins_matter.py) has a pod that goes elsewhere without
it, and for each two of them it shows that they do not cancel each other out. What the first KubeNexus answered is in
[golden vectors](placement-golden.md).
"""


def render() -> str:
    """Returns the page."""
    found = rows()
    return "".join([_HEAD, *_plugins(), "\n", _WEIGHTS, _TABLE, *_wins(found), _tail(found[0])])


def _plugins() -> list[str]:
    lines = ["| plugin | weight | |\n|---|---|---|\n"]
    for plugin, weight in OWN_ORDER:
        shown = weight if hasattr(plugin, "score") else ""
        lines.append(f"| [{plugin.name}](plugins/{plugin.name.lower()}.md) | {shown} | {PLUGINS[plugin.name]} |\n")
    return lines


def _wins(found: list[Row]) -> list[str]:
    kinds = [kind.text for kind in NODE_KINDS]
    lines = [f"| pod | {' | '.join(kinds)} | why |\n", "|---" * (len(kinds) + 2) + "|\n"]
    for row in found:
        cells = [_cell(row, kind) for kind in kinds]
        lines.append(f"| {row.pod} | {' | '.join(cells)} | {row.why} |\n")
    return lines


def _cell(row: Row, kind: str) -> str:
    points = row.points[kind]
    if points is None:
        return "-"
    return f"**{points}**" if kind == row.winner else str(points)


def _tail(row: Row) -> str:
    best, second = sorted(filter(None, row.points.values()), reverse=True)[:2]
    return _TAIL.format(pod=f"a {row.pod}", best=best, second=second)


if __name__ == "__main__":
    print(render(), end="")
