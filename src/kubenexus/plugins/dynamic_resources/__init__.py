"""DynamicResources: gives the devices of pools to the claims of pods, as kube-scheduler does.

`claim_requests` reads what claims ask for, `allocator` searches devices for them on one node, and `plugin` asks it for
as many nodes as necessary.
"""
