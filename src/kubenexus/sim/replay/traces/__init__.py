"""Traces of clusters as nodes and jobs: public ones (openb, Philly), and our own form of JSON lines."""
