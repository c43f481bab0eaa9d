"""ProfileClassifier: pods of different kinds of work are different classes.

It refuses no node and gives no points. A class has its kind as `pod.signed["ProfileClassifier"]`: `training`,
`inference`, `batch`, `service` or `interactive` (`api.classification`).
"""

from collections.abc import Mapping
from typing import Any

from kubenexus.api.core import Pod
from kubenexus.plugins.workload.signed import workload_of
from kubenexus.state.nodes import NodeColumns


class ProfileClassifier:
    name = "ProfileClassifier"
    reads = ()
    signs_template = True

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def sign(self, pod: Pod, nodes: NodeColumns) -> str:
        return workload_of(pod).type.value
