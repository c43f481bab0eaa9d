"""How soon a pod is bound, and a gang once its last member exists: an embedded server, a scheduler and the load, three
processes.

    make bench-latency                                                      # five minutes
    python -m bench.latency --nodes 100 --gangs 5 --every 0.5 --pods 100    # a first impression

docs/benchmarks.md says how it is measured.
"""
