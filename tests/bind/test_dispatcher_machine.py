"""Whatever is committed, prepared, answered, lost, fenced or ended, in whatever order: each job lands once, no gang is
begun that cannot be completed, and room stays taken for pods that have their nodes, and for no others."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubenexus.api.core import Pod
from kubenexus.bind.bind_result import BindResult, BindStatus
from kubenexus.bind.dispatcher import Dispatcher
from kubenexus.bind.job_binding import BindHooks, JobBinding, PodBinding
from kubenexus.client.calls import ApiError, Call, Uncertain, Unreachable
from kubenexus.framework.decision import Decision
from kubenexus.framework.verdict import Code
from kubenexus.testing.builders import a_pod
from tests.async_helpers import yield_to_loop
from tests.bind.send_checks import send_checks
from tests.bind.server import Guard, PodServer

LIMIT = 3
NOTHING = Decision("job", Code.SUCCESS, 0, 0.0)
DONE, LOST, STRANGE_AFTER = "done", "done, no answer", "done, and then an error that nothing explains"
FAULTS: dict[str, Exception] = {
    "refused": ApiError(403, "Forbidden", "no"),
    "conflict": ApiError(409, "Conflict", "with something"),
    "failed": ApiError(500, "InternalError", "no"),
    "busy": ApiError(429, "TooManyRequests", "later"),
    "away": Unreachable("connection refused"),
    "silent": Uncertain("no answer within 5 s"),
    "strange": RuntimeError("something that no answer explains"),
}
ANSWERS = st.sampled_from([DONE, DONE, DONE, LOST, STRANGE_AFTER, *FAULTS])


class Asked(NamedTuple):
    """A bind in flight, and who waits for its answer."""

    call: Call
    answer: "asyncio.Future[str]"


class Server(PodServer):
    """Each bind waits until the machine says how it is answered."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Asked] = []
        self.witness: Any = None  # hears of each bind before anything becomes of it

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if not call.path.endswith("/binding"):
            return await super().send(call, timeout=timeout)
        self.witness(call.path.split("/")[6])
        asked = Asked(call, asyncio.get_running_loop().create_future())
        self.asked.append(asked)
        try:
            how = await asked.answer
        finally:
            self.asked.remove(asked)
        if how in FAULTS:
            raise FAULTS[how]
        self._answer(call)
        if how != DONE:
            raise Uncertain("no answer within 5 s") if how == LOST else RuntimeError("strange")
        return b"{}"


class Volumes:
    name = "Volumes"
    awaited = "volumes"

    def __init__(self) -> None:
        self.waiting: dict[str, asyncio.Future[str]] = {}

    def may_concern(self, pod: Pod) -> bool:
        return True

    def concerns(self, pod_binding: PodBinding) -> bool:
        return pod_binding.node == "slow"

    async def pre_bind(self, pod_binding: PodBinding) -> str:
        self.waiting[pod_binding.pod.metadata.name] = future = asyncio.get_running_loop().create_future()
        try:
            return await future
        finally:
            del self.waiting[pod_binding.pod.metadata.name]


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.server, self.guard, self.volumes = Server(), Guard(), Volumes()
        self.server.witness = self._sent
        self.jobs: dict[int, JobBinding] = {}
        self.of_pod: dict[str, int] = {}
        self.landed: dict[int, list[BindResult]] = {}
        self.sent: dict[int, set[str]] = {}
        self.gone: set[str] = set()
        self.assumed: set[str] = set()
        self.wrong: list[str] = []
        self.ending: asyncio.Future[int] | None = None
        self.dispatcher = Dispatcher(
            self.server,
            self.guard,
            self._land,
            random.Random(1),
            limit=LIMIT,
            hooks=BindHooks((self.volumes,)),
            checks=send_checks(
                still_wanted=lambda pod_binding: "gone" if pod_binding.pod.metadata.name in self.gone else ""
            ),
            sleep=lambda seconds: asyncio.sleep(0),
        )
        self.dispatcher.rest = 0.0

    # --- what may happen ------------------------------------------------------------------------------------------

    @rule(size=st.integers(1, 5), spare=st.integers(0, 2), slow=st.booleans())
    def commit(self, size: int, spare: int, slow: bool) -> None:
        number = len(self.jobs)
        pods = [a_pod(f"j{number}-{i}") for i in range(size)]
        for pod in pods:
            self.server.pods[pod.key] = pod
            self.of_pod[pod.metadata.name] = number
            self.assumed.add(pod.metadata.name)
        pod_bindings = tuple(PodBinding(pod, "slow" if slow else "n") for pod in pods)
        self.jobs[number] = job = JobBinding(pod_bindings, NOTHING, attempt=number, minimum=max(1, size - spare))
        self.loop.run_until_complete(self._submit(job))

    async def _submit(self, job: JobBinding) -> None:
        self.dispatcher.submit(job)

    @rule(count=st.integers(1, 5))
    def pass_time(self, count: int) -> None:
        self.loop.run_until_complete(yield_to_loop(count))

    @precondition(lambda self: self.server.asked)
    @rule(data=st.data(), how=ANSWERS)
    def answer(self, data: st.DataObject, how: str) -> None:
        asked = data.draw(st.sampled_from(self.server.asked))
        if not asked.answer.done():
            asked.answer.set_result(how)

    @precondition(lambda self: self.volumes.waiting)
    @rule(data=st.data(), how=st.sampled_from(["", "", "", "no volume", "raise"]))
    def prepared(self, data: st.DataObject, how: str) -> None:
        future = self.volumes.waiting[data.draw(st.sampled_from(sorted(self.volumes.waiting)))]
        if future.done():
            return
        if how == "raise":
            future.set_exception(RuntimeError("strange"))
        else:
            future.set_result(how)

    @rule(fault=st.sampled_from([FAULTS["failed"], FAULTS["silent"], FAULTS["strange"], FAULTS["refused"]]))
    def look_fails(self, fault: Exception) -> None:
        self.server.looks.append(fault)

    @precondition(lambda self: self.of_pod)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        """A pod is deleted, and the watch says so."""
        name = data.draw(st.sampled_from(sorted(self.of_pod)))
        self.gone.add(name)
        self.server.pods.pop(f"default/{name}", None)

    @rule()
    def fence(self) -> None:
        self.guard.leads = not self.guard.leads

    @precondition(lambda self: self.ending is None and len(self.jobs) > 2)
    @rule()
    def end(self) -> None:
        self.ending = self.loop.create_task(self.dispatcher.close(1000.0))
        self.loop.run_until_complete(yield_to_loop(1))

    # --- what always holds ----------------------------------------------------------------------------------------

    def _land(self, job_binding: JobBinding, results: Sequence[BindResult]) -> None:
        if job_binding.attempt in self.landed:
            self.wrong.append(f"job {job_binding.attempt} landed twice")
        self.landed[job_binding.attempt] = list(results)
        for pod_binding, result in zip(job_binding.pod_bindings, results, strict=True):
            if result.status is not BindStatus.BOUND:
                self.assumed.discard(pod_binding.pod.metadata.name)

    def _sent(self, name: str) -> None:
        """A bind goes out: its job can be completed, or a bind of it went out before that may have happened."""
        number = self.of_pod[name]
        job, began = self.jobs[number], self.sent.setdefault(number, set())
        if not self.guard.leads:
            self.wrong.append(f"{name} was sent without the lease")
        if number in self.landed:
            self.wrong.append(f"{name} was sent after its job landed")
        left = [pod_binding for pod_binding in job.pod_bindings if pod_binding.pod.metadata.name not in self.gone]
        if not began and (len(left) < job.minimum or self.dispatcher._closing):
            self.wrong.append(f"{name} was sent: {len(left)} of at least {job.minimum} are left")
        began.add(name)

    @invariant()
    def nothing_goes_wrong(self) -> None:
        assert self.wrong == [], self.wrong

    @invariant()
    def who_has_landed_has_a_node_or_no_room(self) -> None:
        for number, results in self.landed.items():
            for pod_binding, result in zip(self.jobs[number].pod_bindings, results, strict=True):
                assert not result.status.is_unresolved
                name, there = pod_binding.pod.metadata.name, self.server.pods.get(pod_binding.key)
                if there is not None:
                    has_node = there.spec.node_name == pod_binding.node
                    assert (result.status is BindStatus.BOUND) == has_node == (name in self.assumed)

    def teardown(self) -> None:
        self.guard.leads = True
        self.server.looks.clear()
        for _ in range(10_000):
            for asked in list(self.server.asked):
                if not asked.answer.done():
                    asked.answer.set_result(DONE)
            for future in list(self.volumes.waiting.values()):
                if not future.done():
                    future.set_result("")
            self.loop.run_until_complete(yield_to_loop(1))
            if not self.dispatcher.open_count:
                break
        if self.ending is not None:
            assert self.loop.run_until_complete(self.ending) == 0
        self.loop.close()
        self.nothing_goes_wrong()
        self.who_has_landed_has_a_node_or_no_room()
        assert sorted(self.landed) == sorted(self.jobs), "each job lands"
        assert (self.dispatcher.resting, self.dispatcher.calm) == (False, True)


TestMachine = Machine.TestCase
TestMachine.settings = settings(stateful_step_count=50)
