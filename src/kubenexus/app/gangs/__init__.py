"""Gangs while they are bound and after: reservations, holds for lost members, eviction of stale gangs."""
