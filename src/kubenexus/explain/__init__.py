"""Why a pod waits or where it would run, computed from a dump of the cluster."""
