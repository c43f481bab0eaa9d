"""Gangs with device claims that fit tightly, known to fit because the claims were made around a solution.

Members take devices of each other if each has the first that match, in the order of the pods. The same puzzles go to
the planner, and as objects to an API server with any scheduler.
"""

import random
from typing import Any, Final, NamedTuple

DRIVER: Final = "gpu.example.com"
MODELS: Final = "abc"
Data = dict[str, Any]


class Device(NamedTuple):
    model: str
    root: str


class Member(NamedTuple):
    """What a member asks for: a number of devices of some models, on one root if `together`."""

    number: int
    models: str
    together: bool

    def accepts(self, device: Device) -> bool:
        return device.model in self.models


class Puzzle(NamedTuple):
    """The devices of each node, and the members of the gang; all of them fit."""

    nodes: tuple[tuple[Device, ...], ...]
    members: tuple[Member, ...]


def planted(dice: random.Random) -> Puzzle:
    """Nodes with four to eight devices, nearly all of which the members use together."""
    nodes = tuple(
        tuple(Device(dice.choice(MODELS), f"r{i // 2}") for i in range(dice.choice((4, 6, 8))))
        for _ in range(dice.randint(1, 4))
    )
    members: list[Member] = []
    for devices in nodes:
        left = list(devices)
        while left:
            root = [each for each in left if each.root == left[0].root]
            together = len(root) > 1 and dice.random() < 0.4
            taken = root[:2] if together else left[: dice.choice((1, 1, 2))]
            if not together and dice.random() < 0.5:
                taken = dice.sample(left, len(taken))
            for each in taken:
                left.remove(each)
            if len(taken) == 1 and dice.random() < 0.1:
                continue  # a device to spare
            models = {each.model for each in taken} | set(dice.sample(MODELS, dice.choice((0, 1, 1, 2))))
            members.append(Member(len(taken), "".join(sorted(models)), together))
    dice.shuffle(members)
    return Puzzle(nodes, tuple(members))


def puzzles(number: int) -> list[Puzzle]:
    """The first so many that members in the order of the pods do not solve."""
    found: list[Puzzle] = []
    seed = 0
    while len(found) < number:
        puzzle = planted(random.Random(seed))
        if len(puzzle.members) > 1 and not _greedy(puzzle):
            found.append(puzzle)
        seed += 1
    return found


def _greedy(puzzle: Puzzle) -> bool:
    """Whether members in their order, each with the first devices of the first node that has them, all find some."""
    left = [list(devices) for devices in puzzle.nodes]
    return all(any(_take(member, devices) for devices in left) for member in puzzle.members)


def _take(member: Member, left: list[Device]) -> bool:
    fit = [each for each in left if member.accepts(each)]
    groups = [[each for each in fit if each.root == root] for root in dict.fromkeys(each.root for each in fit)]
    for group in groups if member.together else [fit]:
        if len(group) >= member.number:
            for each in group[: member.number]:
                left.remove(each)
            return True
    return False


# --- as objects ------------------------------------------------------------------------------------------------------


def slice_of(node: str, devices: tuple[Device, ...]) -> Data:
    made = [
        {
            "name": f"d{i}",
            "attributes": {"model": {"string": each.model}, "root": {"string": f"{node}-{each.root}"}},
        }
        for i, each in enumerate(devices)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{node}-{DRIVER}"}}
    return {**kind, "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": made}}


def class_of_all() -> Data:
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": DRIVER}}
    return {**kind, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}}


def claim_of(name: str, member: Member) -> Data:
    models = ", ".join(f'"{each}"' for each in member.models)
    expression = f'device.attributes["{DRIVER}"].model in [{models}]'
    exactly = {
        "deviceClassName": DRIVER,
        "allocationMode": "ExactCount",
        "count": member.number,
        "selectors": [{"cel": {"expression": expression}}],
    }
    devices: Data = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if member.together:
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/root"}]
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
    return {**kind, "spec": {"devices": devices}}
