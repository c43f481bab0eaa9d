"""The labels and annotations by which agents are told what to do."""

# A label: agents keep the nodes that have it, unless they are told to keep all.
AGENT = "sim.kubenexus.io/agent"
# An annotation of a pod: after so many seconds it has succeeded. Without it, it runs until it is deleted.
RUN_SECONDS = "sim.kubenexus.io/run-seconds"
# An annotation of a pod, or of a node for all pods that come to it: refused with this reason, such as OutOfcpu.
REFUSE = "sim.kubenexus.io/refuse"
