"""Which gang a pod is in, how many of it must start together, and how close they must be. Start with `resolver.py`."""
