"""Plugins that place a pod by the tier of its tenant."""
