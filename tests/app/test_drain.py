"""Gangs that come in any order, many times over: whoever runs is whole, nobody waits for somebody who waits, and all
have run in the end."""

import random
from collections import Counter
from itertools import permutations

import pytest

from kubenexus.api.core import Pod
from kubenexus.testing.builders import a_node
from tests.api.gangs.builders import a_member
from tests.app.decision_fixture import DecisionFixture
from tests.rounds import rounds

SEEDS, PARTS = rounds(200, 1000), 4


def gang(name: str, size: int, **fields: object) -> list[Pod]:
    return [a_member(f"{name}-{i}", name, size, **fields) for i in range(size)]


def seeds(part: int) -> range:
    return range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS)


@pytest.mark.parametrize("part", range(PARTS))
def test_f01_of_two_gangs_that_need_all_nodes_one_runs_and_the_other_has_nothing(part: int) -> None:
    for seed in seeds(part):
        dice, fixture = random.Random(seed), DecisionFixture()
        size = dice.randint(2, 5)
        fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(size)))
        pods = gang("left", size, cpu=1) + gang("right", size, cpu=1)
        dice.shuffle(pods)
        for pod in pods:
            fixture.come(pod)
            if dice.random() < 0.3:
                fixture.work()
        fixture.work()
        assert sorted((len(fixture.where("left")), len(fixture.where("right")))) == [0, size], f"seed {seed}"


def drained(seed: int, gangs: int) -> None:
    """Gangs of one to eight GPUs on two machines of eight, which end in any order."""
    dice, fixture = random.Random(seed), DecisionFixture()
    fixture.nodes(a_node("n0", gpu=8), a_node("n1", gpu=8))
    sizes = {f"g{i:02}": dice.randint(1, 8) for i in range(gangs)}
    pods = [pod for name, size in sizes.items() for pod in gang(name, size, gpu=1)]
    dice.shuffle(pods)
    fixture.come(*pods)
    left = set(sizes)
    while left:
        fixture.work()
        running = Counter(name.partition("-")[0] for name in fixture.where())
        assert running, f"seed {seed}: nobody runs, and {sorted(left)} wait"
        assert all(sizes[name] == count for name, count in running.items()), f"seed {seed}: half of a gang"
        name = dice.choice(sorted(running))
        fixture.end(*(f"{name}-{i}" for i in range(sizes[name])))
        left.discard(name)
        fixture.clock.advance(dice.choice([0.1, 1.0, 30.0]))


@pytest.mark.parametrize("part", range(PARTS))
def test_f04_interleaved_gangs_on_two_machines_always_drain(part: int) -> None:
    for seed in seeds(part):
        drained(seed, gangs=4)


@pytest.mark.parametrize("seed", range(rounds(2, 5)))
def test_f04_sixty_of_them_do(seed: int) -> None:
    drained(seed, gangs=60)


@pytest.mark.parametrize("between", [False, True], ids=["decided at the end", "decided after each role"])
def test_f07_jobs_of_two_roles_hold_nothing_while_one_role_is_missing(between: bool) -> None:
    roles = {"left-launcher": 1, "left-worker": 2, "right-launcher": 1, "right-worker": 2}  # with GPUs of each member
    for order in permutations(roles):
        fixture = DecisionFixture()
        fixture.nodes(a_node("n0", gpu=1), a_node("n1", gpu=2))  # room for one launcher and one worker
        for role in order:
            fixture.come(a_member(role, role.partition("-")[0], 2, gpu=roles[role]))
            if between:
                fixture.work()
        for _ in range(2):
            fixture.work()
            running = sorted(fixture.where())
            assert running in (["left-launcher", "left-worker"], ["right-launcher", "right-worker"]), order
            fixture.end(*running)
            fixture.clock.advance(30)
