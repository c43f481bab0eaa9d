"""The controller of gangs that the seeds use."""

from collections.abc import Callable, Iterable
from typing import cast

import pytest

from tests.chaos.checker import Checker
from tests.chaos.controller import Controller, Gang
from tests.chaos.observed_cluster import PodSeen
from tests.chaos.seed_cluster import SCHEDULER, SeedCluster


class Pods:
    """The pods of a cluster by name. `before` runs once, before the next members are created; `after`, after that."""

    def __init__(self) -> None:
        self.names = set[str]()
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def pods(self) -> list[PodSeen]:
        return [PodSeen(f"ns/{name}", name, SCHEDULER, "", {}) for name in sorted(self.names)]

    def create_members(self, gang: str, minimum: int, cpu: str, names: Iterable[str], *, high: bool = False) -> None:
        self.before()
        self.names |= set(names)
        self.after()

    def delete(self, names: Iterable[str]) -> None:
        self.names -= set(names)


def a_controller(pods: Pods) -> Controller:
    controller = Controller(cast(SeedCluster, pods), cast(Checker, pods), seed=1)
    controller.add(Gang("gang", 3, 2, "1"))
    return controller


def test_members_that_are_missing_are_created_again() -> None:
    pods = Pods()
    controller = a_controller(pods)
    pods.delete(["gang-2"])
    controller.look()
    assert (pods.names, controller.replaced) == ({"gang-0", "gang-1", "gang-2"}, 1)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_gang_that_is_retired_while_a_member_is_replaced_keeps_no_member(moment: str) -> None:
    pods = Pods()
    controller = a_controller(pods)
    pods.delete(["gang-2"])
    setattr(pods, moment, lambda: controller.retire(1))
    controller.look()
    assert pods.names == set()
