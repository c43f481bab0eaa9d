"""Queues: the kind, and what one sets."""
