"""Schedulers side by side on a real control plane: ours, kube-scheduler, and a binder that decides nothing.

    make bench-live                                                     # everything, about 75 minutes
    python -m bench.live --cases basic,spread --modes drain --pairs 1   # some of it
    python -m bench.live --nodes 100 --idle 30 kubenexus                # a scheduler that has nothing to do

Needs `make controlplane`. docs/benchmarks.md says how it is measured, and holds the figures.
"""
