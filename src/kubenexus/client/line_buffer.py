"""`LineBuffer`: splits bytes that come in pieces of any size into lines. A watch has one JSON object per line, some of
several megabytes."""

from kubenexus.client.http_response import MalformedResponse


class LineBuffer:
    """Collects whole lines until `take` returns them. A line without an end is kept in pieces, joined once."""

    __slots__ = ("_ready", "_tail", "_tail_size", "limit", "size")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._ready: list[bytes] = []
        self._tail: list[bytes] = []
        self._tail_size = 0
        self.size = 0  # bytes of the whole lines

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def broken(self) -> bool:
        """Whether a line has begun and not ended."""
        return self._tail_size > 0

    def feed(self, data: bytes) -> None:
        """Adds the next bytes. Raises MalformedResponse when a line grows beyond the limit."""
        end = data.rfind(b"\n")
        if end < 0:
            self._wait_for_more(data)
            return
        whole = data[:end]
        if self._tail:
            self._tail.append(whole)
            whole = b"".join(self._tail)
            self._tail.clear()
            self._tail_size = 0
        self._keep(whole)
        if end + 1 < len(data):
            self._wait_for_more(data[end + 1 :])

    def take(self, most: int) -> list[bytes]:
        """Removes and returns up to so many whole lines, the oldest first."""
        if len(self._ready) <= most:
            taken, self._ready = self._ready, []
            self.size = 0
            return taken
        taken = self._ready[:most]
        del self._ready[:most]
        self.size -= sum(map(len, taken))
        return taken

    def _keep(self, whole: bytes) -> None:
        lines = [line for line in whole.split(b"\n") if line] if b"\n" in whole else [whole] if whole else []
        if len(whole) > self.limit and any(len(line) > self.limit for line in lines):
            raise self._too_long()
        self._ready += lines
        self.size += len(whole)

    def _wait_for_more(self, piece: bytes) -> None:
        self._tail.append(piece)
        self._tail_size += len(piece)
        if self._tail_size > self.limit:
            raise self._too_long()

    def _too_long(self) -> MalformedResponse:
        return MalformedResponse(f"a line of the stream is longer than {self.limit} bytes")
