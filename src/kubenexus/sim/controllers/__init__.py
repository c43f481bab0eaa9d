"""The controllers of the embedded cluster: they create pods for Deployments, Jobs and the other workloads.

    store ─▶ object_cache ─▶ affected workload ─▶ reconcile(item, children, now) ─▶ status and calls ─▶ store

There is one module for each kind, and each `reconcile` is a pure function of the workload and its children that returns
a `ReconcileResult`. No state matters beyond the store: a restarted manager continues from there. Calls go through the
API server with all its checks, as those of every client.

The controllers listen to the store itself, not to a watch. They never see stale objects, so they need none of the
bookkeeping (expectations, lagging caches) of the real ones. `manager` calls the reconcilers and `runner` drives the
manager beside a server. In virtual time the simulation calls `run` and `next_due`.
"""
