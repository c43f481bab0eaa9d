"""Volumes: what the API server says of them, what pods on the cluster use, and what was promised and is not bound yet.

`store` is told of objects and of pods that come and go, and is what rules ask; the others are its parts.
"""
