"""Virtual time: the embedded cluster and the real scheduler in one event loop that never waits.

    run(scenario)                    a loop whose clock jumps to the next timer when no task is ready
    Simulation(configuration, ...)   API server + scheduler + clock, joined without sockets

A simulation contains no scenario; `sim.perf` or a trace supplies it. The same seed gives the same decision log.
"""
