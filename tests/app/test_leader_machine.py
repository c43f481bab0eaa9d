"""Whatever the network does, no two replicas write at the same time.

Three candidates, driven call by call: each call may reach the server late, twice as late, or never, and its answer may
be lost. Who may write does so at the last moment that it may, and the write lasts until its timeout.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubenexus.app.election.candidate import Candidate
from kubenexus.app.election.lease import Lease, LeaseConfig, get_call
from kubenexus.client.calls import ApiError, Call
from tests.app.leases import LeaseServer

TERMS = LeaseConfig(namespace="ns", name="lease")
WHO = st.integers(0, 2)
SHORT = st.sampled_from([0.0, 0.0, 0.5, 3.0])
SELDOM = st.sampled_from([*[False] * 15, True])
STEPS = st.sampled_from([0.0, 1.0, 2.0, 4.0, 9.0, 12.0, 14.0, 15.1])


class Answer(NamedTuple):
    body: bytes = b""
    error: ApiError | None = None


@dataclass
class Replica:
    """A candidate with at most one call of its own on the way; what it gave up waiting for may still arrive."""

    brain: Candidate
    call: Call | None = None
    sent_at: float = 0.0
    served: Answer | None = None
    writing_until: float = -1.0
    closed: bool = False
    late: list[Call] = field(default_factory=list)


class Election(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1_794_792_257.0
        self.server = LeaseServer()
        self.replicas = [Replica(Candidate(f"r{i}", TERMS)) for i in range(3)]

    @initialize()
    def one_leads_and_another_knows(self) -> None:
        for who in (0, 1):
            self.a_whole_round(who, 0.0, 0.0, who, 0.0)

    @rule(step=STEPS)
    def time_passes(self, step: float) -> None:
        self.now += step

    @rule(who=WHO)
    def it_asks(self, who: int) -> None:
        each = self.replicas[who]
        if each.call is None and not each.closed:
            each.call = each.brain.renewal(self.now) or get_call(TERMS)
            each.sent_at, each.served = self.now, None

    @rule(who=WHO)
    def the_server_takes_it(self, who: int) -> None:
        each = self.replicas[who]
        if each.call is not None and each.served is None:
            each.served = self._serve(each.call)

    @rule(who=WHO)
    def it_hears(self, who: int) -> None:
        each = self.replicas[who]
        if each.call is None or each.served is None:
            return
        call, answer, each.call = each.call, each.served, None
        if call.method != "GET":
            if answer.error is None:
                each.brain.on_written(Lease.read(answer.body), each.sent_at, self.now)
            elif not each.closed:
                each.call, each.served, each.sent_at = get_call(TERMS), None, self.now
            return
        if each.closed:
            return
        lease = None if answer.error is not None else Lease.read(answer.body)
        each.call, each.served, each.sent_at = each.brain.on_read(lease, self.now), None, self.now

    @rule(who=WHO)
    def it_gives_up_waiting(self, who: int) -> None:
        each = self.replicas[who]
        if each.call is not None and each.served is None:
            each.late.append(each.call)
        each.call = None

    @rule(who=WHO)
    def a_late_call_arrives(self, who: int) -> None:
        late = self.replicas[who].late
        if late:
            self._serve(late.pop(0))

    @rule(who=WHO, wait=STEPS, there=SHORT, meanwhile=WHO, back=SHORT)
    def a_whole_round(self, who: int, wait: float, there: float, meanwhile: int, back: float) -> None:
        """Asks until it has or has not got the lease. Each call takes its time; another asks while the answer comes."""
        self.now += wait
        self.it_asks(who)
        while self.replicas[who].call is not None:
            self.now += there
            self.the_server_takes_it(who)
            if meanwhile != who:
                self.it_goes_on(meanwhile)
            self.now += back
            self.it_hears(who)

    @rule(who=WHO)
    def it_goes_on(self, who: int) -> None:
        """One call there and back, in no time."""
        self.it_asks(who)
        self.the_server_takes_it(who)
        self.it_hears(who)

    @precondition(lambda self: self.server.lease is not None)
    @rule(who=WHO, really=SELDOM)
    def it_ends(self, who: int, really: bool) -> None:
        """Stops writing, waits for what is on its way, gives up the lease."""
        each = self.replicas[who]
        if really and not each.closed:
            each.brain.close()
            each.closed, each.call, each.writing_until = True, None, self.now
            lease = Lease.read(self.server.apply(get_call(TERMS)))
            call = each.brain.release(lease, self.now)
            if call is not None:
                self._serve(call)

    @invariant()
    def one_writes_at_most(self) -> None:
        for each in self.replicas:
            if each.brain.may_write(self.now):  # it will, at the last moment, and its write will take all its time
                each.writing_until = each.brain.deadline + TERMS.write_timeout
        assert sum(each.writing_until > self.now for each in self.replicas) <= 1

    def _serve(self, call: Call) -> Answer:
        try:
            return Answer(self.server.apply(call))
        except ApiError as error:
            return Answer(error=error)


TestElection = Election.TestCase
TestElection.settings = settings(stateful_step_count=50, max_examples=2 * settings().max_examples)
