"""The waiting room: jobs that wait, in which order, and what wakes those that were refused.

It knows no nodes and no plugins. What a profile's plugins say about waiting (the order, the gates, which event may
help whom, which pods are alike) reaches it as `QueueProfile`. Start with `room.py`.
"""
