"""Which jobs a pod comes after (`scheduling.kubenexus.io/after`), and by which names others can wait for it."""

import re
from typing import Final

from kubenexus.api.core import Pod
from kubenexus.api.keys.gang import NAME as GANG
from kubenexus.api.keys.workload import AFTER, BATCH
from kubenexus.base.errors import Malformed, truncated

MAX_NAMES: Final = 16  # that one pod may wait for
MAX_TEXT: Final = 4096
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")


def after(pod: Pod) -> tuple[str, ...]:
    """Returns the names of the jobs that must have succeeded before the pod is tried, each once. Raises Malformed."""
    text = pod.metadata.annotations.get(AFTER.key)
    if text is None:
        return ()
    if len(text) > MAX_TEXT:
        raise Malformed(f"has {len(text)} characters; at most {MAX_TEXT} are allowed", field=AFTER.key)
    names = tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
    if len(names) > MAX_NAMES:
        raise Malformed(f"has {len(names)} names; at most {MAX_NAMES} are allowed", field=AFTER.key)
    for name in names:
        if not _NAME.fullmatch(name):
            raise Malformed(
                f"must be names of jobs with commas between them; {truncated(name)!r} is none", field=AFTER.key
            )
    return names


def names_of(pod: Pod) -> tuple[str, ...]:
    """Returns the names by which other pods can wait for this one: its own, that of its Job, and that of its gang."""
    labels = pod.metadata.labels
    return tuple(dict.fromkeys(filter(None, (pod.metadata.name, labels.get(BATCH.key), labels.get(GANG.key)))))
