"""The entries of a recording: an operation, what it is about, and its content, in MessagePack.

header      the schema, the configuration and the flags that the process began with
seen, gone  an object of a kind came or changed, or is gone
block       a bound pod cannot be read, so its node is blocked
listed, unlisted, unreadable  what is known of the kinds that define gangs
hold, release       capacity for a lost member
reserve, unreserve, claim     reserved capacity
preempt, preempted  a preemption begins or ends
landed      a preemption ended by itself and left nominations; only in the state
read        the devices of nodes are read, of so many at most
contradict  a kubelet refused a pod that was expected to be admitted
forget      the bind of an assumed pod failed
ahead       the reservation of a gang that the next decisions must respect
decide      a decision, with its job and its time
commit      that decision is in the ledger
assume      a pod that is assumed: when the file began, or as part of a large gang
state       the end of the state that a file begins with
"""

from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.framework.decision import Decision, PodPlacement
from kubenexus.framework.job import Job

SCHEMA = 1


class Header(msgspec.Struct, frozen=True):
    """What a file begins with. `configuration` is the text of the file, "" for the defaults. `anonymised`: names are
    hashed, so ties that names break may come out otherwise."""

    schema: int
    version: str
    configuration: str = ""
    scheduler_name: str = ""
    anonymised: bool = False


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """`about` is a kind, a key or a name, by operation."""

    operation: str
    about: str = ""
    content: msgspec.Raw = msgspec.Raw(b"\xc0")


class Decided(msgspec.Struct, frozen=True, array_like=True):
    """A decision. Its generation is 0: it counts changes, and devices are read in portions. `ahead`: the reservation of
    the last `ahead` entry was to be respected."""

    job: Job
    now: float
    ahead: bool
    spared: tuple[str, ...]
    decision: Decision


class Assumed(msgspec.Struct, frozen=True, array_like=True):
    pod: Pod
    placement: PodPlacement
    now: float


class Preempting(msgspec.Struct, frozen=True, array_like=True):
    """The arguments of `Ledger.begin_preemption`."""

    members: tuple[tuple[Pod, str], ...]
    victims: tuple[str, ...]
    minimum: int
    began: float
    deadline: float


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder(Entry)


def encode_entry(operation: str, about: str, content: Any = None) -> bytes:
    """Returns the payload of an entry."""
    return _encoder.encode((operation, about, content))


def decode_entry(payload: bytes) -> Entry:
    """Returns the entry of a payload. Raises msgspec.DecodeError."""
    return _decoder.decode(payload)


def decision_bytes(decision: Decision) -> bytes:
    """Returns the decision as it is compared: without the generation of its snapshot."""
    return _encoder.encode(without_generation(decision))


def without_generation(decision: Decision) -> Decision:
    """Returns the decision as it is recorded."""
    return msgspec.structs.replace(decision, generation=0)
