"""Clusters without machines: agents that play the part of kubelets, against any API server."""
