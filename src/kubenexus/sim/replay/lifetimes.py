"""Arrivals with departures, drawn from a trace: for traces whose own times leave the cluster idle."""

import random

from msgspec.structs import replace

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.replay.traces.trace import Trace

LONGEST = 3600.0 * 24  # seconds: longer lifetimes are cut, or the cluster never reaches a steady state
ROUNDS = 2  # how often the jobs of the trace arrive


def with_lifetimes(trace: Trace, seed: int, load: float) -> Trace:
    """Returns jobs of the trace in a random order with exponential gaps, each with its duration in the trace.

    The gaps are such that jobs ask for `load` times the cluster's GPUs, in the mean over time.
    """
    rng = random.Random(seed)
    timed = [job for job in trace.jobs if job.duration]
    if not timed:
        raise KubeNexusError(f"trace {trace.name}: no pod has a creation_time and a deletion_time")
    jobs = [replace(job, duration=min(job.duration or 0.0, LONGEST)) for job in timed] * ROUNDS
    rng.shuffle(jobs)
    gpu_seconds = sum(job.milli * (job.duration or 0.0) for job in jobs)
    if not gpu_seconds or not trace.capacity:
        raise KubeNexusError(f"trace {trace.name}: no GPU is offered, or none is requested")
    rate = load * trace.capacity * len(jobs) / gpu_seconds
    at, timed = 0.0, []
    for count, job in enumerate(jobs):
        at += rng.expovariate(rate)
        timed.append(replace(job, name=f"{job.name}-{count}", at=at))
    return Trace(trace.name, trace.nodes, tuple(timed))
