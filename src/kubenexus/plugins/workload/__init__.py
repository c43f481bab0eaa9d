"""Plugins that place a pod by its kind of work."""
