"""Kubernetes objects, decoded once and with only the fields that scheduling needs. No I/O."""
