"""Jobs whose decisions took too long, remembered beyond the end of the process (ADR 10).

They are written to an annotation of the Lease, which the leader updates every two seconds anyway. A job that is being
decided is added after one second, so that even a process that is killed leaves its name. The next leader reads the
annotation when it acquires the lease, and tries those jobs after all others.

`SlowJobs` belongs to the main loop. The lease thread calls only `annotation`, which reads `entries`, a tuple that is
replaced as a whole.
"""

import math
from typing import Annotated, Final

import msgspec

from kubenexus.base.timestamps import format_micro_time, parse_timestamp
from kubenexus.observe import logs

UNDER_WAY: Final = 1.0  # seconds that a decision lasts until its job is written to the lease
SLOW_DECISION: Final = 2.0  # seconds that a decision may take; counted bounds keep it below 0.1
FIRST_REST: Final = 60.0  # seconds that a job rests after its first slow decision; twice as long after each further one
MAX_REST: Final = 3600.0
REMEMBERED_FOR: Final = 3600.0  # seconds for which a job is remembered after its rest
MAX_JOBS: Final = 16  # jobs in the annotation, the latest ones
MAX_TEXT: Final = 32_768  # characters; longer annotations are ignored: 16 of the longest keys are 13,000
MAX_COUNT: Final = 16

log = logs.get("slow_jobs")


class SlowJob(msgspec.Struct, frozen=True, gc=False):
    """A job with slow decisions. `at` is when the last one ended, or when it was last seen under way; `count` is how
    many there were in a row."""

    job: str
    at: float
    count: int = 1

    @property
    def until(self) -> float:
        """Returns when the job may be tried again."""
        return self.at + min(math.ldexp(FIRST_REST, self.count - 1), MAX_REST)

    @property
    def known_until(self) -> float:
        """Returns when the job is forgotten."""
        return self.until + REMEMBERED_FOR


class SlowJobEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry of the annotation. Any client may have written it, so it is validated."""

    job: Annotated[str, msgspec.Meta(min_length=1, max_length=800)]
    at: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


Entries = tuple[SlowJob, ...]


class SlowJobs:
    """The slow jobs of this process and its predecessors. `entries` has each job once, the oldest first."""

    def __init__(self) -> None:
        self.entries: Entries = ()
        self._inherited = False

    def inherit(self, text: str, now: float) -> Entries:
        """Takes over the annotation of the previous leader and returns its jobs. From here on this process writes the
        annotation."""
        self.entries = decode_annotation(text, now)
        self._inherited = True
        return self.entries

    def decided(self, job: str, began: float, now: float) -> float | None:
        """Records that a decision has ended. Returns until when the job is to rest, None if the decision was fast
        enough."""
        if now - began > SLOW_DECISION:
            self.entries = with_slow_decision(self.entries, job, now)
            return self.entries[-1].until
        if self.entries:
            self.entries = tuple(each for each in self.entries if each.job != job)
        return None

    def annotation(self, deciding: tuple[str, float] | None, now: float) -> str | None:
        """Returns the text of the annotation, "" for none, None to leave it unchanged. Called in the lease thread."""
        if not self._inherited:
            return None
        entries = self.entries
        if deciding is not None and now - deciding[1] > UNDER_WAY:
            entries = with_slow_decision(entries, deciding[0], now)
        return encode_annotation(entries, now)


def with_slow_decision(entries: Entries, job: str, now: float) -> Entries:
    """Returns the entries with one more slow decision of this job."""
    before = next((each.count for each in entries if each.job == job), 0)
    others = [each for each in entries if each.job != job and each.known_until > now]
    return (*others, SlowJob(job, now, min(before + 1, MAX_COUNT)))[-MAX_JOBS:]


def encode_annotation(entries: Entries, now: float) -> str:
    """Returns the annotation for these entries, "" if none is to be remembered any longer."""
    known = [
        SlowJobEntry(each.job, format_micro_time(each.at), each.count) for each in entries if each.known_until > now
    ]
    return msgspec.json.encode(known).decode() if known else ""


def decode_annotation(text: str, now: float) -> Entries:
    """Returns the entries of an annotation. Never raises: a text that cannot be read is logged and ignored. A time in
    the future counts as `now`, so that no text delays a job for longer than a slow decision would."""
    if not text:
        return ()
    try:
        if len(text) > MAX_TEXT:
            raise ValueError(f"{len(text)} characters")
        written = msgspec.json.decode(text, type=list[SlowJobEntry])
        found = [SlowJob(each.job, _moment(each.at, now), min(each.count, MAX_COUNT)) for each in written]
    except (ValueError, OverflowError, RecursionError) as error:  # msgspec's errors are ValueErrors
        log.warning("Ignored the list of slow jobs on the lease", err=str(error)[:200])
        return ()
    known = {each.job: each for each in sorted(found, key=lambda each: each.at) if each.known_until > now}
    return tuple(known.values())[-MAX_JOBS:]


def _moment(text: str, now: float) -> float:
    at = parse_timestamp(text, None)
    if at is None:
        raise ValueError(f"not a time: {text[:40]!r}")
    return min(at, now)
