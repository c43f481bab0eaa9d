"""The keys of jobs: the only module that builds them, or takes one apart.

    namespace/name                   a pod that is scheduled by itself
    namespace/family/name            a gang; the family is the source that declares it (`sources`)
    namespace/workload/name/part/replica
                                     a gang of a Workload; part and replica may be empty
    ...+gated                        the members of a gang that have scheduling gates
    namespace/name#left              the capacity that a lost member left, as a pod in the ledger

A key is a plain string, since queue, ledger, logs and the slow jobs in the lease refer to jobs by it. Names of objects
have neither a slash, nor a plus, nor a hash, so no two kinds of keys are ever equal.
"""

from typing import Final

_SEPARATOR: Final = "/"
_GATED: Final = "+gated"
_HOLD: Final = "#left"


def gang_key(namespace: str, family: str, *names: str) -> str:
    """Returns the key of a gang. An empty name keeps its position: group and replica must not be mistaken for each
    other."""
    return _SEPARATOR.join((namespace, family, *names))


def gated_key(gang: str) -> str:
    """Returns the key of the job that the gated members of a gang wait in."""
    return gang + _GATED


def hold_name(pod: str) -> str:
    """Returns the name under which the ledger holds the capacity of a lost pod of this name."""
    return pod + _HOLD


def is_gang_key(key: str) -> bool:
    """Whether the key is that of a gang, or of its gated members, and not that of a single pod."""
    return key.count(_SEPARATOR) > 1


def namespace_of(key: str) -> str:
    return key.partition(_SEPARATOR)[0]


def display_name(key: str) -> str:
    """Returns the job as users write it: `ml/llama`, or `ml/llama/workers` for a group of a Workload."""
    if not is_gang_key(key):
        return key
    namespace, _, *names = key.removesuffix(_GATED).split(_SEPARATOR)
    return _SEPARATOR.join((namespace, *[name for name in names if name]))
