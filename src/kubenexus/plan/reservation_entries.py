"""The entries of a reservation as pods of a job, so that the gang planner finds nodes for all of them, or for none.

These pods exist nowhere else: they have the entries' requests, and the reservation's node selector and tolerations.
"""

from typing import Final

from kubenexus.api.core import (
    Affinity,
    Container,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from kubenexus.api.gangs.job_key import gang_key
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.reservations.request import ReservationEntry, ReservationRequest
from kubenexus.framework.job import Job

FAMILY: Final = "reservation"  # the part of the job's key that names the source of a gang


def reservation_job(request: ReservationRequest, profile: str) -> Job:
    """Returns the job whose pods are the entries, in order."""
    namespace, _, name = request.key.partition("/")
    pods = tuple([entry_pod(request, each, profile) for each in request.entries])
    return Job(gang_key(namespace, FAMILY, name), pods, minimum=len(pods))


def entry_pod(request: ReservationRequest, entry: ReservationEntry, profile: str) -> Pod:
    """Returns the pod that takes what the entry keeps."""
    quantities = dict(entry.quantities)
    return Pod(
        metadata=ObjectMeta(
            name=f"{request.key.partition('/')[2]}#{entry.name}",
            namespace=request.namespace,
            uid=f"{request.uid}#{entry.name}",
        ),
        spec=PodSpec(
            scheduler_name=profile,
            containers=[
                Container(name="reserved", resources=ResourceRequirements(requests=quantities, limits=quantities))
            ],
            node_selector=dict(request.node_selector),
            tolerations=list(request.tolerations),
            affinity=_pinned(entry.node) if entry.node else None,
        ),
    )


def _pinned(node: str) -> Affinity:
    named = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
    terms = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[named])])
    return Affinity(node_affinity=NodeAffinity(required=terms))
