"""Gangs that wait or are bound: reservations, capacity held for lost members, eviction of stale gangs."""
