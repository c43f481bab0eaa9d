"""Replays of traces: the decisions of a policy for jobs that arrive, and what they leave of a cluster.

    traces ─▶ nodes and jobs ─▶ arrivals, `decide`, `commit`, departures ─▶ results ─▶ table, JSON lines, page

A policy is a profile, decided by the same `Planner` as in the live scheduler. `policies` has those of papers.
"""
