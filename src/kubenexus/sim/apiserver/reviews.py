"""Access reviews: every authenticated client may do everything."""

from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.status_errors import Json

USER: Json = {"username": "kubenexus", "groups": ["system:masters", "system:authenticated"]}
_EVERYTHING: Json = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
REVIEWS: dict[str, Json] = {
    "subjectaccessreviews": {"allowed": True},
    "selfsubjectaccessreviews": {"allowed": True},
    "localsubjectaccessreviews": {"allowed": True},
    "selfsubjectrulesreviews": {
        "resourceRules": [_EVERYTHING],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    },
    "tokenreviews": {"authenticated": True, "user": USER},
    "selfsubjectreviews": {"userInfo": USER},
}


def review(kind: ServedKind, asked: Json) -> Json:
    """Returns the review with its result. Nothing is stored."""
    seen = {"kind": kind.kind, "apiVersion": kind.group_version, "metadata": asked.get("metadata") or {}}
    return {**seen, "spec": asked.get("spec") or {}, "status": REVIEWS[kind.resource]}
