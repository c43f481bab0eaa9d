"""The ResourceClaims of a pod, by name."""

from kubenexus.api.core import Pod, PodResourceClaim


def claim_name(pod: Pod, claim: PodResourceClaim) -> str | None:
    """Returns the name of the ResourceClaim of a pod's claim; None if it does not exist yet, "" if none is needed."""
    if claim.resource_claim_name or not claim.resource_claim_template_name:
        return claim.resource_claim_name or None
    for status in pod.status.resource_claim_statuses or ():
        if status.name == claim.name:
            return status.resource_claim_name
    return None
