"""Indexed Jobs: each pod has an index, and each index must succeed once. Sets of indexes are written as `0-4,7`."""

from collections.abc import Iterable

from kubenexus.sim.controllers import owner_refs
from kubenexus.sim.controllers.types import JOBS, Item, Pod

INDEX = "batch.kubernetes.io/job-completion-index"
VARIABLE = "JOB_COMPLETION_INDEX"


def of(pods: Iterable[Pod]) -> set[int]:
    """Returns the indexes of these pods."""
    said = (pod.metadata.annotations.get(INDEX, "") for pod in pods)
    return {int(text) for text in said if text.isdigit()}


def parse(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def text(numbers: Iterable[int]) -> str:
    """Formats indexes: three or more in a row as a range, two one by one, as upstream does."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(_run(run) for run in runs)


def _run(run: list[int]) -> str:
    if len(run) > 2:
        return f"{run[0]}-{run[-1]}"
    return ",".join(str(each) for each in run)


def pod(item: Item, number: int, finalizer: str) -> Item:
    """Returns the pod of one index, which is in its name, hostname, annotation, label and an environment variable."""
    name = item["metadata"]["name"]
    template = item["spec"]["template"]["metadata"]
    notes = {**template.get("annotations", {}), INDEX: str(number)}
    made = owner_refs.pod_of(
        JOBS,
        item,
        prefix=f"{name}-{number}-",
        labels={INDEX: str(number)},
        annotations=notes,
        finalizers=[finalizer],
    )
    spec = made["spec"]
    spec["hostname"] = f"{name}-{number}"
    for group in ("containers", "initContainers"):
        if group in spec:
            spec[group] = [_told(each) for each in spec[group]]
    return made


def _told(container: Item) -> Item:
    said = container.get("env", [])
    if any(each["name"] == VARIABLE for each in said):
        return container
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*said, {"name": VARIABLE, "valueFrom": source}]}
