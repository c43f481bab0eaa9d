"""Nodes without machines: agents that act as kubelets do."""
