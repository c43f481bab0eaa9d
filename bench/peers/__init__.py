"""Other gang schedulers side by side with KubeNexus and kube-scheduler, each on a real control plane of its own.

    make bench-peers                                                             # all of them
    python -m bench.peers --nodes 100 --gangs 10 --rack-gangs 5 volcano kubenexus   # a small run of two

Each is built from Go's module proxy into the user's cache, in the version that `modules/<name>/go.mod` pins. Needs
`make controlplane`. docs/benchmarks.md says how it is measured, and holds the figures.
"""
