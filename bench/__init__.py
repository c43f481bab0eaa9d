"""How fast a decision is, and how much memory a cluster takes: `python -m bench`, or `make bench`.

Every time is reported twice, in microseconds and as a multiple of `kernel`: bare NumPy doing the arithmetic of one
decision over the same number of nodes, timed in the same minute on the same machine. The multiple is what we promise,
since it means the same on a laptop and on a server. `docs/benchmarks.md` has the figures.
"""
