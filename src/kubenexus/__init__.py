"""KubeNexus: a Kubernetes scheduler that keeps the cluster as columns and places whole jobs."""

__version__ = "0.1.0"
