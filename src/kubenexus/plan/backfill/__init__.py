"""Backfill by time: when the first job in the queue is expected to start, and which jobs may go ahead of it."""
