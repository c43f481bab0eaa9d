"""Device claims: pools of devices that drivers publish, claims of pods, and the devices that are allocated.

`store` receives the objects and the pods that are added and removed, and the plugin reads from it. The other modules
are its parts.
"""
