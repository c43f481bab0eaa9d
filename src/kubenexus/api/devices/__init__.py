"""Devices of nodes: what the cluster publishes about each card, merged field by field from the best source."""
