"""How soon a gang starts once its last member exists: an embedded server, a scheduler and the load, three processes.

    make bench-latency                                          # two and a half minutes
    python -m bench.latency --nodes 100 --gangs 5 --every 0.5   # a first impression

docs/benchmarks.md says how it is measured.
"""
