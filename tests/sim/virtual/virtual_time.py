"""Time that passes in tests of virtual time: never on the wall."""

import asyncio

from kubenexus.sim.virtual.loop import VirtualLoop


async def elapse(seconds: float, result: str = "") -> str:
    """So many virtual seconds later. A loop that would really wait for them is refused."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop), f"{type(loop).__name__} would wait {seconds} s on the wall"
    return await asyncio.sleep(seconds, result)
