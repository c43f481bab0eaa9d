"""Which declared features a pod needs of its node."""

from typing import Any

import pytest

from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod
from kubenexus.api.features import required_features

RULES = {"name": "c", "restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
MOUNT = {"name": "c", "volumeMounts": [{"name": "v"}, {"name": "w", "bindMountOptions": ["noexec"]}]}


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        pytest.param({"containers": [{"name": "c"}]}, set(), id="a plain pod needs nothing"),
        pytest.param({"containers": [RULES]}, {"RestartAllContainersOnContainerExits"}, id="restart rules"),
        pytest.param({"initContainers": [RULES]}, {"RestartAllContainersOnContainerExits"}, id="of init containers"),
        pytest.param({"containers": [MOUNT]}, {"VolumeBindMountOptions"}, id="mount options"),
        pytest.param({"ephemeralContainers": [MOUNT]}, {"VolumeBindMountOptions"}, id="of debug containers"),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False}, {"UserNamespacesHostNetworkSupport"}, id="both together"
        ),
        pytest.param({"hostNetwork": True}, set(), id="the host's users are the default"),
        pytest.param({"hostNetwork": True, "hostUsers": None}, set(), id="and null means the default"),
        pytest.param({"hostUsers": False}, set(), id="own users, own network"),
    ],
)
def test_features(spec: dict[str, Any], needed: set[str]) -> None:
    assert required_features(from_data({"spec": spec}, Pod)) == needed
