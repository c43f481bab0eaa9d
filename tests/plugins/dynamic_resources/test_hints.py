"""Which changes of claims wake a pod that DynamicResources refused."""

from typing import Any

import pytest

from kubenexus.api.codec import from_data
from kubenexus.api.core import PodResourceClaim
from kubenexus.api.devices.resource_claim import ResourceClaim
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, EventResource, events_to_register
from kubenexus.plugins.dynamic_resources.plugin import DynamicResources
from kubenexus.testing.builders import a_pod
from tests.plugins.dynamic_resources.cluster import an_allocated_claim

POD = a_pod("p", namespace="a", resource_claims=[PodResourceClaim(name="gpu", resource_claim_name="own")])


def a_claim(name: str, namespace: str = "a", **status: Any) -> ResourceClaim:
    meta = {"name": name, "namespace": namespace, "uid": name}
    return from_data({"metadata": meta, "status": status}, ResourceClaim)


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param(None, a_claim("own"), True, id="its claim was made"),
        pytest.param(None, a_claim("other"), False, id="another claim was made"),
        pytest.param(None, a_claim("own", "b"), False, id="a claim of that name in another namespace"),
        pytest.param(a_claim("own"), an_allocated_claim("own", "d0"), True, id="its claim was allocated"),
        pytest.param(a_claim("other"), an_allocated_claim("other", "d0"), False, id="another claim was allocated"),
        pytest.param(a_claim("own"), a_claim("own"), False, id="its claim changed in nothing that matters"),
        pytest.param(
            an_allocated_claim("other", "d0"), a_claim("other"), True, id="another claim gave its device back"
        ),
        pytest.param(an_allocated_claim("other", "d0"), None, True, id="a claim with a device is gone"),
        pytest.param(a_claim("other"), None, False, id="a claim without one is gone"),
    ],
)
def test_what_wakes_a_pod(old: ResourceClaim | None, new: ResourceClaim | None, wakes: bool) -> None:
    plugin = DynamicResources({})
    registered = events_to_register([plugin])[plugin.name]
    action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
    event = ClusterEvent(EventResource.RESOURCE_CLAIM, action, old, new)
    (wake,) = [each for each in registered if each.resource is EventResource.RESOURCE_CLAIM]
    assert wake.hint is not None
    assert wake.hint(POD, event) == wakes
