"""The scheduling queue: which jobs wait, in which order, and which events make a refused job be tried again.

The package knows no nodes and no plugins. The rules of a profile's plugins (order, gates, hints about events, which
pods are alike) come in as `QueueProfile`. Start with `scheduling_queue.py`.
"""
