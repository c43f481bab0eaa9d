"""kube-scheduler's own performance workloads (test/integration/scheduler_perf), run in virtual time.

    files ─▶ cases and workloads ─▶ required features ─▶ operations in a simulation of its own ─▶ results ─▶ report

The YAML files and their templates are read unchanged. A workload passes if every pod that it waits for gets a node.
"""
