"""`WaitingQuestions`: questions that wait for a copy, shared out by user.

Users take turns. If more wait than there is place for, the newest question of the user with the most leaves: a user
who asks much is refused, and no other. A question that several users ask counts for one of them. Before it leaves, it
is passed to another of its users, if that one has fewer.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable

Question = Callable[[], bytes]


class WaitingQuestion:
    """A question, and the answer that its callers wait for. `changes`: it may change the state of the copy."""

    __slots__ = ("answer", "changes", "key", "question", "user", "users")

    def __init__(
        self, question: Question, answer: "asyncio.Future[bytes]", user: str, key: Hashable = None, *, changes: bool
    ) -> None:
        self.question, self.answer, self.key, self.changes = question, answer, key, changes
        self.user = user  # for whom it counts
        self.users = {user}


class WaitingQuestions:
    """At most `most` questions, in a line for each user."""

    def __init__(self, most: int) -> None:
        self._most, self._count = most, 0
        self._lines: dict[str, deque[WaitingQuestion]] = {}  # the first user has the next turn
        self._keyed: dict[Hashable, WaitingQuestion] = {}  # those that others may join

    def __len__(self) -> int:
        return self._count

    def join(self, key: Hashable, user: str) -> WaitingQuestion | None:
        """Returns the question with this key, which the user asks from now on, too."""
        found = None if key is None else self._keyed.get(key)
        if found is not None:
            found.users.add(user)
        return found

    def add(self, question: WaitingQuestion) -> WaitingQuestion | None:
        """Returns the question that has to leave for this one, which may be the new one itself."""
        self._append(question)
        return self._push_out(question.user) if self._count > self._most else None

    def put_back(self, questions: Iterable[WaitingQuestion]) -> None:
        """Adds questions that were taken and not asked, before those that wait."""
        for question in reversed(list(questions)):
            self._lines.setdefault(question.user, deque()).appendleft(question)
            self._count += 1
            if question.key is not None:
                self._keyed.setdefault(question.key, question)

    def take(self, most: int) -> list[WaitingQuestion]:
        """Removes and returns the next questions: one of each user in turn."""
        found: list[WaitingQuestion] = []
        while self._lines and len(found) < most:
            user = next(iter(self._lines))
            line = self._lines.pop(user)
            found.append(line.popleft())
            if line:
                self._lines[user] = line
        for each in found:
            self._forget(each)
        return found

    def _append(self, question: WaitingQuestion) -> None:
        self._lines.setdefault(question.user, deque()).append(question)
        self._count += 1
        if question.key is not None:
            self._keyed.setdefault(question.key, question)

    def _push_out(self, asker: str) -> WaitingQuestion:
        """Of equal lines that of the asker is the longest. Each question that is passed on makes the longest line
        shorter, so this ends."""
        while True:
            user = max(self._lines, key=lambda each: (len(self._lines[each]), each == asker))
            most, question = len(self._lines[user]), self._lines[user].pop()
            if not self._lines[user]:
                del self._lines[user]
            fewest = min(question.users, key=lambda each: (self._length(each), each))
            if self._length(fewest) + 1 >= most:
                self._forget(question)
                return question
            question.user = fewest
            self._lines.setdefault(fewest, deque()).append(question)

    def _length(self, user: str) -> int:
        return len(self._lines.get(user, ()))

    def _forget(self, question: WaitingQuestion) -> None:
        self._count -= 1
        if self._keyed.get(question.key) is question:
            del self._keyed[question.key]
