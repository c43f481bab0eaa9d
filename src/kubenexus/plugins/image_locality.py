"""ImageLocality: prefers nodes that have the pod's images already, less so if few nodes have them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import AS_IS, CodedScores, Depends
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.state.view import Nodes

_MIB = 1024 * 1024
_MIN_SIZE = 23 * _MIB
_MAX_SIZE_PER_IMAGE = 1000 * _MIB


class ImageLocality:
    name = "ImageLocality"
    reads = ("spec.containers", "spec.initContainers", "spec.volumes.image")
    depends = Depends.CLUSTER
    normalize = AS_IS

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | CodedScores | int:
        if not nodes.has_images:
            return 0
        wanted = pod.cached(self.name, lambda: tuple(_images(pod)))
        points: IntColumn | CodedScores | int = nodes.cached_until_node_change(
            (self, wanted), lambda nodes: _points(wanted, nodes)
        )
        return points


def _points(wanted: tuple[str, ...], nodes: Nodes) -> IntColumn | CodedScores | int:
    found = [image for image in (nodes.image(name) for name in wanted) if image is not None]
    if not found:
        return 0
    present: IntColumn = np.zeros(nodes.width, np.int64)
    for image in found:
        spread = len(image.rows) / nodes.total
        present += int(float(image.size) * spread) * nodes.with_image(image)
    most = _MAX_SIZE_PER_IMAGE * len(wanted)
    points: IntColumn = 100 * (np.clip(present, _MIN_SIZE, most) - _MIN_SIZE) // (most - _MIN_SIZE)
    if nodes.rows is not None or not nodes.width:
        return points
    values, codes = np.unique(points, return_inverse=True)  # many classes share these
    return CodedScores(codes, values) if len(values) > 1 else int(values[0])


def _images(pod: PodClass) -> list[str]:
    spec = pod.spec
    names = [container.image for container in (*spec.init_containers, *spec.containers)]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return [_with_tag(name) for name in names]


def _with_tag(name: str) -> str:
    """Returns the name as container runtimes report it: no tag means `latest`."""
    return name if name.rfind(":") > name.rfind("/") else name + ":latest"
