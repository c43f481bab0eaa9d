"""Waiting in tests: for a condition or for turns of the loop, never for a clock; a slow machine is then only slow."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], patience: float = 10.0) -> None:
    """Lets everybody else work until it holds. `patience` only ends a test that would hang."""
    async with asyncio.timeout(patience):
        while not condition():
            await asyncio.sleep(0)


async def turns(count: int = 50) -> None:
    """Lets everybody else work: more turns than anything under way needs to go as far as it can without us.

    What is sent over a socket of this machine is there at the receiver's next turn.
    """
    for _ in range(count):
        await asyncio.sleep(0)
