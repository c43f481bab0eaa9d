"""The controllers of the cluster in the box: what is wanted (a Deployment, a Job, ...) becomes pods.

    store ─▶ shelf ─▶ who is concerned ─▶ reconcile(what is wanted, what is there, now) ─▶ status and calls ─▶ store

One page for each kind, and each is a pure function: what is wanted and what is there go in, a `ReconcileResult` comes
out. There is no memory that matters: whatever is killed and started again goes on from what the store has. Calls go
through the same door as everybody's, with all its checks.

They sit on the store itself and not at the end of a watch: what they see is never old, so they need none of the
bookkeeping (expectations, caches that lag) that makes the real ones large. `office` has the rounds, `live` runs them
beside a server; in virtual time somebody else calls `run` and asks for `next_due`.
"""
