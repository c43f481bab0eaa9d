"""The herald tells pods why they wait: an event and a condition, and neither again while nothing has changed.

A refusal of one job is a refusal of all that are alike, and each of them is told; there may be a hundred thousand, so
telling is work that is done in portions.
"""

import msgspec

from kubenexus.api.core import Pod
from kubenexus.base.clock import Clock
from kubenexus.bind.notes import Notes
from kubenexus.framework.decision import Decision
from kubenexus.framework.verdict import Code
from kubenexus.observe import conditions, events
from kubenexus.observe.recorder import EventRecorder
from kubenexus.queue.entry import Place
from kubenexus.queue.room import WaitingRoom

PORTION = 256


class Told(msgspec.Struct, frozen=True, gc=False):
    """What a pod was last told."""

    uid: str
    sentence: str


class Herald:
    def __init__(self, room: WaitingRoom, recorder: EventRecorder, notes: Notes, clock: Clock) -> None:
        self._room, self._recorder, self._notes, self._clock = room, recorder, notes, clock
        self._told: dict[str, Told] = {}
        self._waiting: dict[str, None] = {}  # keys of jobs that share a refusal and have yet to hear of it, in order

    @property
    def busy(self) -> bool:
        return bool(self._waiting)

    # --- what is said ---------------------------------------------------------------------------------------------

    def refused(self, key: str, decision: Decision) -> None:
        """A job was tried and has no node. Those like it hear of it in time."""
        job = self._room.job(key)
        for pod in () if job is None else job.pods:
            self._say(pod, decision.code, decision.sentence(), again=True)
        self._waiting.update(dict.fromkeys(other for other in self._room.alike(key) if other != key))

    def failed(self, pod: Pod, message: str) -> None:
        """It was placed, but that could not be carried out."""
        self._say(pod, Code.ERROR, message, again=True)

    def arrived(self, pod: Pod, place: Place) -> None:
        """A pod waits, or was changed while it waits."""
        if place is Place.GATED:
            self._gated(pod)
        elif place in (Place.UNSCHEDULABLE, Place.BACKOFF) and pod.key not in self._told:
            self._waiting[pod.key] = None  # it shares a refusal that stands, and will not be tried itself

    def placed(self, pod: Pod) -> None:
        """It goes to a node, or is gone: what it was told is over."""
        self._told.pop(pod.key, None)
        self._notes.drop(pod.metadata.uid)

    def portion(self, most: int = PORTION) -> None:
        """Tell some of those who have yet to hear."""
        for _ in range(min(most, len(self._waiting))):
            key = next(iter(self._waiting))
            del self._waiting[key]
            job, decision = self._room.job(key), self._room.verdict(key)
            if job is None or decision is None or self._room.place(key) is Place.IN_FLIGHT:
                continue
            for pod in job.pods:
                self._say(pod, decision.code, decision.sentence(), again=False)

    def missed(self, pod: Pod) -> None:
        """A note could not be written: it is to be written again, when there is something to say."""
        self._told.pop(pod.key, None)

    # --- how it is said -------------------------------------------------------------------------------------------

    def _say(self, pod: Pod, code: Code, sentence: str, *, again: bool) -> None:
        told = Told(pod.metadata.uid, sentence)
        known = self._told.get(pod.key) == told
        if known and not again:
            return
        self._recorder.record(events.failed_scheduling(pod, sentence), pod.spec.scheduler_name)
        if known:
            return
        self._told[pod.key] = told
        call = conditions.refused(pod, code, sentence, self._clock.now())
        if call is not None:
            self._notes.write(pod, call)

    def _gated(self, pod: Pod) -> None:
        said = any(each.type == conditions.POD_SCHEDULED for each in pod.status.conditions)
        call = None if said else conditions.gated(pod, self._clock.now())
        if call is not None:
            self._notes.write(pod, call)
