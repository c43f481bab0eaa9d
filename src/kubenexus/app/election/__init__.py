"""Leader election: the Lease, the candidate, the thread that renews it."""
