"""Executes preemptions."""
