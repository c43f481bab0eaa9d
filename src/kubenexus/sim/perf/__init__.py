"""kube-scheduler's own performance workloads (test/integration/scheduler_perf), played in virtual time.

    files ─▶ cases and workloads ─▶ needs (can we?) ─▶ play, op by op, in a world of its own ─▶ results ─▶ report

The YAML and its templates are read as they are. A workload has passed when every pod that it waits for has a node.
"""
