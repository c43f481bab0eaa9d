"""Answers questions in a copy of the process, so that no answer delays the loop: the kernel copies what is written.

    loop ── fork ─▶ copy ── fork ─▶ question 1 ─▶ frame
                         └─ fork ─▶ question 2 ─▶ frame          frames go to the loop through a pipe

The loop pays one fork for all questions that wait, as often as `CopyPacing` allows. A copy shares no lock, connection
or file with the process, and is the first that the kernel ends if memory is short. Each question has a copy of its own
if it changes the ledger. Equal questions that wait together are answered once. After some seconds a copy leaves the
questions that are left to the next one, so that users take turns (`WaitingQuestions`).

A copy and the copies that it makes are one process group, which the loop ends as a whole.
"""

import asyncio
import gc
import os
import resource
import signal
import struct
import warnings
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from time import thread_time
from typing import Final, NoReturn

from kubenexus.app.http.api.copy_pacing import CopyPacing
from kubenexus.app.http.api.request_problem import RequestProblem
from kubenexus.app.http.api.waiting_questions import Question, WaitingQuestion, WaitingQuestions
from kubenexus.base.clock import Clock

MAX_WAITING: Final = 64  # questions
MAX_TOGETHER: Final = 64  # of one copy
MAX_SECONDS: Final = 15  # for one question
TURN_SECONDS: Final = 5.0  # after which a copy begins no further question
SLACK_SECONDS: Final = 60.0  # more for a copy as a whole: it runs at low priority
MAX_ANSWER: Final = 16 << 20  # bytes
MAX_MEMORY: Final = 1 << 30  # bytes that a copy may use beyond what the process has
_FRAME: Final = struct.Struct("<HQ")  # an HTTP status, and the length of the body
_NEXT_TURN: Final = 0  # in place of a status: the question was not begun
_CHUNK: Final = 1 << 18

BUSY = RequestProblem(429, "TooManyRequests", "Too many requests, please try again later.")
TOO_LONG = RequestProblem(504, "Timeout", f"the answer took longer than {MAX_SECONDS} seconds, or too much memory")
FAILED = RequestProblem(500, "InternalError", "the question could not be answered")
TOO_LARGE = RequestProblem(413, "RequestEntityTooLarge", "the answer is too large; ask for fewer items")


class StateCopies:
    """Runs questions. `silence` is called first in each copy: what must not happen twice ends there."""

    def __init__(self, clock: Clock, silence: Callable[[], None] = lambda: None) -> None:
        self._clock, self._silence = clock, silence
        self._waiting = WaitingQuestions(MAX_WAITING)
        self._pacing = CopyPacing(clock)
        self._task: asyncio.Task[None] | None = None
        self.copies = 0

    async def answer(self, question: Question, key: Hashable = None, *, user: str = "", changes: bool = True) -> bytes:
        """Returns what `question` returns, in a copy of this process. Raises RequestProblem: what the question raised,
        or that this user asks too much, or that it took too long.

        Questions with the same key that wait together are answered once. `changes`: the question may change the state
        of the copy, so that it needs one of its own.
        """
        waiting = self._waiting.join(key, user)
        if waiting is None:
            waiting = WaitingQuestion(question, asyncio.get_running_loop().create_future(), user, key, changes=changes)
            waiting.answer.add_done_callback(_retrieved)
            pushed_out = self._waiting.add(waiting)
            if pushed_out is not None:
                pushed_out.answer.set_exception(BUSY)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._work())
        return await asyncio.shield(waiting.answer)

    async def close(self) -> None:
        """Ends the copies. What waits gets no answer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for each in self._waiting.take(len(self._waiting)):
            each.answer.cancel()

    async def _work(self) -> None:
        while self._waiting:
            while (pause := self._pacing.pause()) > 0.0:
                await asyncio.sleep(pause)
            # Those that need no copy of their own take milliseconds: they come first.
            some = sorted(self._waiting.take(MAX_TOGETHER), key=lambda each: each.changes)
            left: list[WaitingQuestion] = []
            try:
                left = await self._ask(some)
            finally:
                for each in some:
                    if not each.answer.done() and each not in left:
                        each.answer.set_exception(FAILED)
            self._waiting.put_back(left)

    async def _ask(self, some: list[WaitingQuestion]) -> list[WaitingQuestion]:
        """Returns the questions that the copy did not begin."""
        reading, writing = os.pipe()
        began = thread_time()
        try:
            pid = _fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            return []
        if not pid:
            _copy(some, writing, self._silence, self._clock)
        with suppress(OSError):
            os.setpgid(pid, pid)  # the copy does the same: the first of both counts
        os.close(writing)
        self._pacing.began(thread_time() - began)
        self.copies += 1
        try:
            return await _read(reading, some)
        finally:
            os.close(reading)
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # all have ended, or nothing waits for them any more
            await _reap(pid)


def _fork() -> int:
    with warnings.catch_warnings():
        # The lease has a thread. A copy has none, and uses nothing that the thread may hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


# --- in the process --------------------------------------------------------------------------------------------------


async def _read(fd: int, some: list[WaitingQuestion]) -> list[WaitingQuestion]:
    """Reads one frame for each question. Returns the questions that were not begun."""
    loop, buffer, ended = asyncio.get_running_loop(), bytearray(), asyncio.Event()
    pending, left = deque(some), list[WaitingQuestion]()
    os.set_blocking(fd, False)

    def readable() -> None:
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        buffer.extend(chunk)
        while pending and len(buffer) >= _FRAME.size:
            status, length = _FRAME.unpack_from(buffer)
            if len(buffer) < _FRAME.size + length:
                break
            body = bytes(buffer[_FRAME.size : _FRAME.size + length])
            del buffer[: _FRAME.size + length]
            asked = pending.popleft()
            if status == _NEXT_TURN:
                left.append(asked)
            else:
                _settle(asked.answer, status, body)
        if not chunk or not pending:
            ended.set()

    loop.add_reader(fd, readable)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(TURN_SECONDS + MAX_SECONDS + SLACK_SECONDS):
                await ended.wait()
    finally:
        loop.remove_reader(fd)
    return left


def _settle(answer: "asyncio.Future[bytes]", status: int, body: bytes) -> None:
    if answer.done():
        return
    if status == 200:
        answer.set_result(body)
    else:
        answer.set_exception(RequestProblem.of(status, body))


def _retrieved(answer: "asyncio.Future[bytes]") -> None:
    """Marks an exception as seen: the client may have hung up."""
    if not answer.cancelled():
        answer.exception()


async def _reap(group: int) -> None:
    """Waits for the end of a copy, and of its own copies if they have become ours: the first process of a container
    inherits those. The kernel takes milliseconds to free their memory."""
    while True:
        try:
            while os.waitpid(-group, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        await asyncio.sleep(0.005)


# --- in the copy -----------------------------------------------------------------------------------------------------


def _copy(some: list[WaitingQuestion], writing: int, silence: Callable[[], None], clock: Clock) -> NoReturn:
    """Answers the questions one after the other, and ends. Never returns into the loop."""
    try:
        _leave(writing)
        silence()
        latest = clock.now() + TURN_SECONDS
        for each in some:
            if clock.now() > latest:
                _write(writing, _NEXT_TURN, b"")
            elif each.changes:
                _ask_alone(each.question, writing)
            else:
                signal.alarm(MAX_SECONDS)
                answer = _answer(each.question)
                signal.alarm(0)
                _write(writing, *answer)
    finally:
        os._exit(0)  # without handlers, buffers and destructors, which are those of the process


def _ask_alone(question: Question, writing: int) -> None:
    """Answers a question in a copy of its own, which the alarm may end, or the kernel."""
    pid = os.fork()
    if pid:
        if os.waitpid(pid, 0)[1]:
            _write(writing, TOO_LONG.status, TOO_LONG.body)
        return
    code = 1
    try:
        signal.alarm(MAX_SECONDS)
        _limit_memory()
        status, body = _answer(question)
        signal.alarm(0)
        _write(writing, status, body)
        code = 0
    finally:
        os._exit(code)


def _leave(writing: int) -> None:
    """Leaves all that is shared with the process: its group, signals, sockets, files."""
    with suppress(OSError):
        os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
        signal.signal(each, signal.SIG_DFL)
    gc.disable()  # a collection would write into all objects, and so copy them
    os.closerange(3, writing)
    os.closerange(writing + 1, 1 << 20)
    with suppress(OSError):
        os.nice(10)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def _answer(question: Question) -> tuple[int, bytes]:
    """Returns the status and the body of the answer."""
    try:
        body = question()
    except RequestProblem as problem:
        return problem.status, problem.body
    except MemoryError:
        return TOO_LONG.status, TOO_LONG.body
    except Exception as error:
        _log(f"live API: {type(error).__name__}: {error}")
        return FAILED.status, FAILED.body
    return (200, body) if len(body) <= MAX_ANSWER else (TOO_LARGE.status, TOO_LARGE.body)


def _log(text: str) -> None:
    """Writes a line to stderr. Loggers may hold files and locks of the process."""
    with suppress(OSError):
        os.write(2, f"{' '.join(text.split())[:2000]}\n".encode(errors="replace"))


def _limit_memory() -> None:
    with suppress(OSError, ValueError, IndexError):
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        most = pages * resource.getpagesize() + MAX_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _write(fd: int, status: int, body: bytes) -> None:
    left = memoryview(_FRAME.pack(status, len(body)) + body)
    while left:
        left = left[os.write(fd, left) :]
