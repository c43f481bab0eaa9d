"""Objects of one kind and different groups do not get mixed up in a file."""

import json

from kubenexus.api.gangs.declaration import COSCHEDULING, POD_GROUP, VOLCANO
from kubenexus.explain.cluster_dump import read_dump


def test_pod_groups_by_their_api_group() -> None:
    forms = ("scheduling.k8s.io/v1beta1", "scheduling.x-k8s.io/v1alpha1", "scheduling.volcano.sh/v1beta1")
    items = [
        {"apiVersion": form, "kind": "PodGroup", "metadata": {"namespace": "ml", "name": f"g{i}"}, "spec": {}}
        for i, form in enumerate(forms)
    ]
    groups = read_dump(json.dumps({"kind": "List", "items": items}).encode(), "file").ledger.groups
    kinds = (POD_GROUP, COSCHEDULING, VOLCANO)
    found = [[groups.find(kind, "ml", f"g{i}") is not None for i in range(3)] for kind in kinds]
    assert found == [[True, False, False], [False, True, False], [False, False, True]]
