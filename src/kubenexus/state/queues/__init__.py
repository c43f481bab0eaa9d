"""Queues: the tree, which namespace is in which queue, and what each uses."""
