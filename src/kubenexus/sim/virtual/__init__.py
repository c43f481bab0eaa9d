"""Virtual time: the embedded cluster and the real scheduler in one event loop that never waits.

    run(scenario)                  a loop whose clock jumps to the next timer when there is nothing to do
    World(configuration, ...)      API server + scheduler + clock, joined without sockets

A world does not know what happens in it; a scenario (`sim.perf`, a trace) does. The same seed gives the same log.
"""
