"""What a scheduler uses while it has nothing to do."""

import asyncio

from bench.live import contestants
from bench.live.meters import cpu_of, memory_of
from bench.live.stage import Stage

SETTLES = 10.0  # seconds after its first bind


async def idle(stage: Stage, who: str, seconds: float) -> str:
    """In a line. A pod that it binds first shows that it has begun."""
    program, namespace = contestants.start(who, stage.plane, stage.gates), await stage.namespace()
    await stage.until_awake(namespace, lambda: program.running)
    await stage.clean(namespace)
    await asyncio.sleep(SETTLES)
    before = cpu_of(program.pid)
    await asyncio.sleep(seconds)
    used, size = (cpu_of(program.pid) - before) / seconds, memory_of(program.pid)
    program.stop()
    return f"{who}, idle: {size:.0f} MB, {used:.4f} of a core"
