"""The gang of a pod: how many members must start together, and how close they must be. Start with `resolver.py`."""
