"""Volumes: storage objects of the API server, their use by pods on nodes, and claims that are assumed but not bound.

`store` receives the objects and the pods that are added and removed, and plugins read from it. The other modules are
its parts.
"""
