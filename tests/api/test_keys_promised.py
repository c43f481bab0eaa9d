"""The keys that users were promised: a spelling that disappears from the registry breaks somebody's manifests."""

import pytest

from kubenexus.api import keys

# Kind of object, then every key that is read on it.
PROMISED = {
    "Pod": """
        pod-group.scheduling.kubenexus.io/name
        pod-group.scheduling.kubenexus.io/min-available
        pod-group.scheduling.sigs.k8s.io/name
        pod-group.scheduling.sigs.k8s.io/min-available
        pod-group.scheduling.sigs.k8s.io/min-member
        scheduling.kubenexus.io/min-available
        scheduling.x-k8s.io/pod-group
        gang.scheduling.kubenexus.io/name
        scheduling.kubenexus.io/gang-group
        scheduling.kubenexus.io/gang-numa-spread
        scheduling.kubenexus.io/gang-timeout-seconds
        scheduling.k8s.io/workload-name
        scheduling.k8s.io/pod-group
        scheduling.k8s.io/workload
        scheduling.k8s.io/podset
        scheduling.k8s.io/group-name
        kueue.x-k8s.io/pod-group-name
        kueue.x-k8s.io/pod-group-total-count
        kueue.x-k8s.io/queue-name
        volcano.sh/job-name
        tenant.kubenexus.io/tier
        tenant.kubenexus.io/name
        scheduling.kubenexus.io/priority-tier
        workload.kubenexus.io/type
        workload.kubenexus.io/preemptible
        scheduling.kubenexus.io/backfill
        backfill.scheduling.kubenexus.io/eligible
        scheduling.kubenexus.io/app-id
        spark-app-id
        spark-role
        spark-app-selector
        tf-replica-type
        pytorch-replica-type
        pytorch-job-name
        mpi-job-role
        ray.io/node-type
        kubeflow.org/component
        batch.kubernetes.io/job-name
        training.kubeflow.org/job-name
        pytorch.org/job-name
        tensorflow.org/job-name
        serving.kubeflow.org/inferenceservice
        serving.kserve.io/inferenceservice
        seldon.io/deployment
        app.kubernetes.io/component
        app.kubernetes.io/name
        app.jupyter.org/hub-version
        app.rstudio.com/rstudio-server
        kubenexus.io/driver-cpu
        kubenexus.io/driver-memory
        kubenexus.io/executor-cpu
        kubenexus.io/executor-memory
        kubenexus.io/executor-count
        kubenexus.io/dynamic-allocation-enabled
        kubenexus.io/min-executors
        kubenexus.io/max-executors
        scheduling.kubenexus.io/preemption-for-gang
        scheduling.kubenexus.io/preemption-timestamp
        topology.kubenexus.io/spread-zones
        topology.kubenexus.io/min-zones
        topology.kubenexus.io/affinity
        scheduling.kubenexus.io/numa-policy
        numa.scheduling.kubenexus.io/policy
        numa.scheduling.kubenexus.io/resources
        scheduling.kubenexus.io/numa-affinity-node-id
        scheduling.kubenexus.io/numa-anti-affinity-node-id
        scheduling.kubenexus.io/memory-intensive
        scheduling.kubenexus.io/numa-distance-weight
        gpu.kubenexus.io/prefer-nvlink
        gpu.kubenexus.io/min-nvlink-bandwidth
        gpu.kubenexus.io/type
        scheduling.kubenexus.io/vram-request
        scheduling.kubenexus.io/vram-per-gpu
        scheduling.kubenexus.io/vram-request-total
        vram.scheduling.kubenexus.io/required
        scheduling.kubenexus.io/model-size
        scheduling.kubenexus.io/network-sensitive
        scheduling.kubenexus.io/min-fabric-tier
        scheduling.kubenexus.io/co-locate
        scheduling.kubenexus.io/require-clique
    """,
    "Node": """
        tenant.kubenexus.io/reserved-tier
        numa.kubenexus.io/node-count
        numa.kubenexus.io/node-<i>-cpus
        numa.kubenexus.io/node-<i>-cpu-count
        numa.kubenexus.io/node-<i>-memory
        numa.kubenexus.io/node-<i>-bandwidth
        numa.kubenexus.io/node-<i>-distance-<j>
        topology.kubenexus.io/numa-nodes
        gpu.kubenexus.io/gpu<g>-numa
        gpu.kubenexus.io/numa-node-<g>
        feature.node.kubernetes.io/memory-numa
        feature.node.kubernetes.io/memory-numa.node_count
        feature.node.kubernetes.io/memory-numa.node<i>
        gpu.kubenexus.io/vram
        gpu.kubenexus.io/model
        gpu.kubenexus.io/count
        gpu.kubenexus.io/topology
        gpu.kubenexus.io/is-pristine
        gpu.kubenexus.io/health-<check>
        topology.kubenexus.io/gpu
        nvidia.com/gpu.topology
        nvidia.com/nvlink
        topology.nvidia.com/nvlink
        hardware.kubenexus.io/tier
        hardware.kubenexus.io/gpu-tier
        hardware.kubenexus.io/gpu-model
        hardware.kubenexus.io/gpu-gen
        hardware.kubenexus.io/cost-hour
        gpu.nvidia.com/class
        nvidia.com/gpu.product
        nvidia.com/gpu.memory
        nvidia.com/gpu.count
        nvidia.com/gpu.family
        nvidia.com/gpu.clique
        nvidia.com/gpu.replicas
        nvidia.com/mig.strategy
        nvidia.com/mig-<profile>.<attribute>
        network.kubenexus.io/fabric-type
        network.kubenexus.io/fabric
        fabric.kubenexus.io/type
        fabric.kubenexus.io/domain
        fabric.kubenexus.io/rack
        network.kubenexus.io/fabric-id
        network.kubenexus.io/rack-id
        topology.kubernetes.io/rack
        topology.kubernetes.io/switch
        network.kubenexus.io/spine
        network.kubenexus.io/bandwidth
        network.kubenexus.io/az
        topology.kubernetes.io/zone
        topology.kubernetes.io/region
        feature.node.kubernetes.io/pci-<device>.present
        feature.node.kubernetes.io/pci-<vendor>.device.<id>.present
        feature.node.kubernetes.io/pci-<vendor>.device.<id>.count
        kwok.x-k8s.io/node
    """,
    "Namespace": "tenant.kubenexus.io/tier scheduling.kubenexus.io/tier tenant.kubenexus.io/name",
    "ClusterQueue": "tenant.kubenexus.io/tier",
    "LocalQueue": "scheduling.kubenexus.io/tier",
    "ResourceReservation": "pod-group app.kubernetes.io/managed-by",
    "Job": "kubenexus.io/gang-scheduling",
}


@pytest.mark.parametrize(("on", "key"), [(on, key) for on, wanted in PROMISED.items() for key in wanted.split()])
def test_a_promised_key_is_in_the_registry(on: str, key: str) -> None:
    read_there = [entry for section in keys.SECTIONS for entry in section.entries if on in entry.on]
    assert any(key in entry.keys for entry in read_there)


def test_what_nobody_wrote_is_not_read() -> None:
    known = {key for section in keys.SECTIONS for entry in section.entries for key in entry.keys}
    assert known.isdisjoint({"numa.kubenexus.io/cpus", "numa.kubenexus.io/memory", "gpu.kubenexus.io/interconnect"})
