"""Plugins about devices: whether a node has the cards that a pod needs, how good they are for it, and which it gets."""
