"""Simulated clusters: an API server, controllers and kubelets without machines, for tests, demonstrations and
benchmarks."""
