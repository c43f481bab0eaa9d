"""Decisions about whole jobs: `decide`, gang planning, reservations, and backoff from nodes. No I/O."""
