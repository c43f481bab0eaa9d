"""Checks the gangs that the pods of an object declare: can the object's own pods ever be enough?"""

from collections.abc import Sequence

import msgspec

from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod, PodSpec
from kubenexus.api.gangs.declaration import GangDeclaration
from kubenexus.api.gangs.resolver import declared_gang
from kubenexus.api.keys import gang, read_key
from kubenexus.api.meta import ObjectMeta
from kubenexus.base.errors import Malformed
from kubenexus.webhook.key_check import Finding
from kubenexus.webhook.pod_sets import PodSet


class _Members(msgspec.Struct):
    """The members of a gang in one object. `most` is None if a pod set does not state how many pods it has."""

    name: str
    where: str
    minimum: int
    most: int | None = 0


def check_gangs(kind: str, namespace: str, sets: Sequence[PodSet], *, strict: bool = False) -> list[Finding]:
    """Returns what is wrong with the gangs of these pods. With `strict`, a gang that needs more pods than the object
    makes is a reason to refuse it; members in other objects do not count then."""
    found: list[Finding] = []
    gangs: dict[str, _Members] = {}
    for each in sets:
        try:
            declared = gang_of(each, namespace)
        except Malformed as problem:
            found.append(Finding(_at(each, str(problem)), refuses=True))
            continue
        if declared is None:
            found += _half_declared(each)
            continue
        found += [Finding(_at(each, text)) for text in declared.warnings]
        if declared.minimum:
            found += _count(gangs, declared, each)
    return [*found, *(_too_few(kind, each, strict) for each in gangs.values() if _never_enough(each))]


def gang_of(pods: PodSet, namespace: str) -> GangDeclaration | None:
    """Returns the gang that pods of a template declare, None if they declare none. Raises Malformed."""
    meta = ObjectMeta(name="pod", namespace=namespace, labels=dict(pods.labels), annotations=dict(pods.annotations))
    named = {key: pods.spec[key] for key in ("schedulingGroup", "workloadRef") if key in pods.spec}
    return declared_gang(Pod(metadata=meta, spec=from_data(named, PodSpec) if named else PodSpec()))


def _count(gangs: dict[str, _Members], declared: GangDeclaration, pods: PodSet) -> list[Finding]:
    known = gangs.setdefault(declared.key, _Members(declared.display_name, pods.where, declared.minimum))
    known.most = None if known.most is None or pods.most is None else known.most + pods.most
    if declared.minimum == known.minimum:
        return []
    text = f"gang {known.name} has the minimum {declared.minimum} here and {known.minimum} in {known.where}"
    known.minimum = max(known.minimum, declared.minimum)
    return [Finding(_at(pods, f"{text}; the larger one counts"))]


def _never_enough(members: _Members) -> bool:
    return members.most is not None and members.most < members.minimum


def _too_few(kind: str, members: _Members, strict: bool) -> Finding:
    makes = f"gang {members.name} needs {members.minimum} pods, and this {kind} makes {members.most}"
    rest = "it can never start" if strict else "it starts only if other objects make the others"
    return Finding(f"{members.where}: {makes}: {rest}", refuses=strict)


def _half_declared(pods: PodSet) -> list[Finding]:
    named = read_key(gang.NAME, pods.labels, pods.annotations)
    counted = read_key(gang.MIN_AVAILABLE, pods.labels, pods.annotations)
    if named.is_set:
        return [Finding(_at(pods, f"{named.source_key} makes no gang without {gang.MIN_AVAILABLE.key}"))]
    if counted.is_set:
        return [Finding(_at(pods, f"{counted.source_key} has no effect without {gang.NAME.key}"))]
    return []


def _at(pods: PodSet, text: str) -> str:
    return text if pods.where == "metadata" else f"{pods.where}: {text}"
