"""Compares our predictions about NUMA with recorded verdicts of the kubelet."""
