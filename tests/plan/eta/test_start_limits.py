"""Limits of queues and tiers in the simulation of starts: a table, and a reference in plain Python."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.plan.eta.queue_model import Members, ModelJob, RunningJob, RunningPod, TierUse
from tests.plan.eta.test_start_simulation import NOW, Reference, clusters, model_of, on_row, one, starts


def within(use, *, tiers=(), order=0, believed=10.0, kind=0):
    return ModelJob((Members(kind),), (float(order),), believed, uses=use, tiers=tiers)


@pytest.mark.parametrize(
    ("jobs", "limits", "expected"),
    [
        pytest.param([((0, 1),)], [0], [10.0], id="a job at its limit starts when its queue uses less"),
        pytest.param([((0, 1),)], [1], [0.0], id="a job within its limit starts at once"),
        pytest.param([((0, 3),)], [0], [math.inf], id="a job that asks for more than the limit never starts"),
        pytest.param([((0, 1),), ()], [0], [10.0, 0.0], id="others pass it, without a reservation"),
        pytest.param([((0, 1),), ((0, 1),)], [0], [10.0, 20.0], id="two at one limit start one after the other"),
        pytest.param([((0, 1), (1, 1))], [0, -1], [math.inf], id="the limit of the queue above counts as well"),
    ],
)
def test_limits_of_queues_hold_jobs_while_nodes_are_free(jobs, limits, expected):
    waiting = [within(uses, order=order) for order, uses in enumerate(jobs)]
    busy = RunningJob((RunningPod(0, np.array([1], np.int64)),), NOW, 10.0, uses=((0, 1),))
    model = msgspec.structs.replace(model_of([9], [(1, None)], waiting, [busy]), limits=tuple(limits))
    assert [each - NOW for each in starts(model, [NOW + 10.0], [10.0] * len(jobs))] == expected


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        pytest.param([4, 0], [10.0, math.inf], id="a tier at its limit is closed, though it has room"),
        pytest.param([4, 1], [0.0, 10.0], id="nodes of another tier are open"),
    ],
)
def test_limits_of_tiers_hold_jobs_from_their_nodes(free, expected):
    premium = (TierUse(1, ((0, 1),)),)
    busy = RunningJob((RunningPod(0, np.array([1], np.int64)),), NOW, 10.0, uses=((0, 1),))
    jobs = [within((), tiers=premium, order=order) for order in range(2)]
    model = model_of(free, [(1, None)], jobs, [busy])
    model = msgspec.structs.replace(model, limits=(0,), tiers=np.array([1, 2]))
    assert [each - NOW for each in starts(model, [NOW + 10.0], [math.inf] * 2)] == expected


@st.composite
def limited_clusters(draw):
    free, kinds, jobs, running = draw(clusters())
    limits = draw(st.lists(st.integers(-2, 6), min_size=1, max_size=2))
    use = st.lists(st.integers(0, 3), min_size=len(limits), max_size=len(limits))
    uses = [draw(use) for _ in (*jobs, *running)]
    return free, kinds, jobs, running, limits, uses


class LimitedReference(Reference):
    """Jobs beyond a limit are passed over, and are not the first that waits."""

    def __init__(self, free, kinds, jobs, running, limits, uses):
        super().__init__(free, kinds, jobs, running)
        self.uses, self.limits = uses, limits

    def used(self):
        """By limit, what started and has not ended (`left` counts what runs from the beginning)."""
        left = list(self.limits)
        for number, (_, _, _, runtime) in enumerate(self.jobs):
            if self.starts[number] <= self.now < self.starts[number] + runtime:
                left = [each - use for each, use in zip(left, self.uses[number], strict=True)]
        for number, each in enumerate(self.first):
            if each[2] <= self.now:
                own = self.uses[len(self.jobs) + number]
                left = [left_now + use for left_now, use in zip(left, own, strict=True)]
        return left

    def play(self):
        self.first = list(self.running)
        return super().play()

    def start_all(self):
        whole = self.jobs
        while True:  # one start at a time, since each changes what is left
            head, passed_over, before = None, set(), list(self.starts)
            for number, (kind, need, believed, runtime) in enumerate(whole):
                key = (kind, need, tuple(self.uses[number]))
                beyond = any(use > left for use, left in zip(self.uses[number], self.used(), strict=True) if use)
                if self.starts[number] < math.inf or key in passed_over or beyond:
                    continue
                rows = self.choose(kind, need, self.room(kind, self.free))
                if not rows:
                    passed_over.add(key)
                    head = head or (number, self.head_start(kind, need))
                    continue
                promise = None if head is None else head[1]
                if promise is not None and self.now + believed > promise[0]:
                    room, left = self.room(kind, self.free), self.room(kind, promise[1])
                    both = enumerate(zip(room, left, strict=True))
                    room = [min(a, b) if row in promise[2] else a for row, (a, b) in both]
                    rows = self.choose(kind, need, room)
                    for row, count in rows:
                        promise[1][row] -= self.kinds[kind][0] * count
                if rows:
                    self.start(number, rows, runtime, believed, kind)
            if before == self.starts:
                return


@settings(max_examples=150, deadline=None)
@given(limited_clusters())
def test_jobs_within_limits_start_when_the_reference_starts_them(cluster):
    free, kinds, jobs, running, limits, uses = cluster

    def of(number):
        return tuple((limit, use) for limit, use in enumerate(uses[number]) if use)

    waiting = [
        msgspec.structs.replace(one(kind, place, believed, need), uses=of(place))
        for place, (kind, need, believed, _) in enumerate(jobs)
    ]
    busy = [
        msgspec.structs.replace(on_row(row, amount, believed), uses=of(len(jobs) + number))
        for number, (row, amount, _, believed, _) in enumerate(running)
    ]
    model = msgspec.structs.replace(model_of(free, kinds, waiting, busy), limits=tuple(limits))
    found = starts(model, [each[2] for each in running], [each[3] for each in jobs])
    assert found == LimitedReference(free, kinds, jobs, running, limits, uses).play()
