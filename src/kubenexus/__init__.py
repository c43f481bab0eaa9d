"""KubeNexus: a Kubernetes scheduler that keeps the cluster as columns and places whole jobs."""

import os

__version__ = "0.1.0"

# Before NumPy is imported. Its matrix products would start a thread for each core: on small ones these cost more than
# they save, 140 instead of 34 ms of a table on two busy cores, and sums come out differently with each number of cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
