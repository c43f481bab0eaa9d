"""What a scheduler uses while it has nothing to do."""

import asyncio

from bench.live import contestants
from bench.live.meters import cpu_of, memory_of
from bench.live.stage import Stage

BEGINS = 10.0  # seconds that its start may take


async def idle(stage: Stage, who: str, seconds: float) -> str:
    program = contestants.start(who, stage.plane)
    await asyncio.sleep(BEGINS)
    before = cpu_of(program.pid)
    await asyncio.sleep(seconds)
    used, size = (cpu_of(program.pid) - before) / seconds, memory_of(program.pid)
    program.stop()
    return f"{who}, idle: {size:.0f} MB, {used:.4f} of a core"
