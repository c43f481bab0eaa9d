"""Simulated nodes: agents that act as kubelets do."""
