"""Kueue's own performance scenarios, played against the queues of this scheduler in virtual time."""
