"""Explains where a pod would run or why it waits, from a dump of the cluster."""
