"""The labels and annotations that control agents."""

# A label: agents handle the nodes that have it, unless their settings include all nodes.
AGENT = "sim.kubenexus.io/agent"
# An annotation of a pod: it succeeds after so many seconds. Without it, the pod runs until it is deleted.
RUN_SECONDS = "sim.kubenexus.io/run-seconds"
# An annotation of a pod, or of a node for all its pods: the pod is rejected with this reason, such as OutOfcpu.
REFUSE = "sim.kubenexus.io/refuse"
