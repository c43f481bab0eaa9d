"""`PreBindRunner`: runs the PreBind plugins of a job before its first bind.

Plugins take back what they wrote for pods that are not bound in the end.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from kubenexus.api.core import Pod
from kubenexus.bind.bind_result import BindResult, BindStatus
from kubenexus.bind.job_binding import PodBinding, PreBind, UnBind
from kubenexus.bind.prebind_waits import PreBindWaits

ENDING: Final = "this process is ending"


class PreBindRunner:
    """The PreBind plugins, in order, and the pods that wait in each. `problem` is called with unexpected errors.
    `set_apart` returns a context in which so many binds of a namespace do not count as under way."""

    def __init__(
        self,
        plugins: tuple[PreBind, ...],
        problem: Callable[[str, Exception], None],
        set_apart: Callable[[str, int], AbstractContextManager[None]],
    ) -> None:
        self._plugins, self._problem, self._set_apart = plugins, problem, set_apart
        self._waits = PreBindWaits()
        self._tasks: set[asyncio.Task[None]] = set()  # of jobs that wait here
        self._closing = False

    def reason_to_postpone(self, pods: Sequence[Pod]) -> str:
        """Why a job of one namespace is not to be decided now; "" if it may be. The job may have to wait in a plugin in
        which as many pods of its namespace wait as may."""
        namespace = pods[0].metadata.namespace
        for plugin in self._plugins if self._waits.jobs else ():
            many = self._waits.reached(plugin.name, namespace)
            if many and any(plugin.may_concern(pod) for pod in pods):
                reason = f"{many} pods of this namespace wait for {plugin.awaited} already"
                return f'running PreBind plugin "{plugin.name}": {reason}'
        return ""

    async def run(self, pod_bindings: tuple[PodBinding, ...]) -> BindResult | None:
        """Runs the plugins. Returns the result of all members if the job ends here. Called in the job's own task, which
        `close` cancels."""
        for plugin in self._plugins:
            if self._closing:
                return BindResult(BindStatus.NOT_SENT, ENDING)
            concerned = [each for each in pod_bindings if plugin.concerns(each)]
            result = await self._wait_in(plugin, concerned, len(pod_bindings)) if concerned else None
            if result is not None:
                return result
        return None

    async def _wait_in(self, plugin: PreBind, concerned: list[PodBinding], binds: int) -> BindResult | None:
        """Runs one plugin for the members that it concerns, of a job with so many binds."""
        namespace, task = concerned[0].pod.metadata.namespace, asyncio.current_task()
        if task is None:
            return BindResult(BindStatus.NOT_SENT, ENDING)
        self._tasks.add(task)
        try:
            with self._set_apart(namespace, binds), self._waits.waiting(plugin.name, namespace, len(concerned)):
                problem = await _pre_bind_all(plugin, concerned)
        except asyncio.CancelledError:
            if not self._closing:
                raise
            task.uncancel()
            return BindResult(BindStatus.NOT_SENT, ENDING)
        finally:
            self._tasks.discard(task)
        said = f'running PreBind plugin "{plugin.name}": {problem}'
        return BindResult(BindStatus.REJECTED, said) if problem else None

    async def take_back(self, pod_bindings: Sequence[PodBinding], results: Sequence[BindResult]) -> None:
        """Lets the plugins take back what they wrote for pods that are not bound."""
        unbound = [
            each for each, result in zip(pod_bindings, results, strict=True) if result.status is not BindStatus.BOUND
        ]
        if not unbound:
            return
        for plugin in self._plugins:
            for each in unbound:
                if isinstance(plugin, UnBind) and plugin.concerns(each):
                    try:
                        await plugin.un_bind(each)
                    except Exception as error:
                        self._problem("taking back what was written before a bind", error)

    def close(self) -> None:
        """Ends all jobs that wait in a plugin: volumes may take minutes, and no bind was sent yet."""
        self._closing = True
        for task in self._tasks:
            task.cancel()


async def _pre_bind_all(plugin: PreBind, pod_bindings: list[PodBinding]) -> str:
    """Returns the first problem, "" if there is none. Where one member fails the others are cancelled at once."""
    tasks = [asyncio.ensure_future(plugin.pre_bind(each)) for each in pod_bindings]
    try:
        for task in asyncio.as_completed(tasks):
            problem = await task
            if problem:
                return problem
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return ""
