"""The simulation of starts against a reference: plain Python, one row and one job at a time."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.plan.eta.queue_model import Members, ModelJob, QueueModel, RunningJob, RunningPod
from kubenexus.plan.eta.start_simulation import Draw, StartSimulation

NOW = 1000.0
STEPS = 10_000


def model_of(free, kinds, jobs, running=(), *, levels=(), cards=None, parts=None):
    """Returns a model with one resource. `kinds` are amounts with the rows that are open, None for all."""
    rows = len(free)
    opened = [[True] * rows if rows_of is None else [row in rows_of for row in range(rows)] for _, rows_of in kinds]
    numbers, shares = zip(*(parts or [(0, 0)] * len(kinds)), strict=True)
    return QueueModel(
        free=np.array(free, np.int64).reshape(rows, 1),
        demand=np.array([[amount] for amount, _ in kinds], np.int64),
        open=np.array(opened),
        cards=np.array(cards, np.int64) if cards else np.zeros((rows, 0), np.int64),
        card_number=np.array(numbers, np.int64),
        card_share=np.array(shares, np.int64),
        jobs=tuple(jobs),
        running=tuple(running),
        levels=tuple(np.array(each, np.int64) for each in levels),
    )


def one(kind, place, believed=math.inf, need=1, level=-1):
    return ModelJob((Members(kind, need, need),), (float(place),), believed, level)


def on_row(row, amount, believed=math.inf, cards=()):
    return RunningJob((RunningPod(row, np.array([amount], np.int64), cards),), NOW, believed)


def starts(model, ends, runtimes):
    return StartSimulation(model, NOW).run(Draw(ends, runtimes), STEPS).starts


class Reference:
    """The same rules over lists of numbers. A job is (kind, need, believed, runtime); a running pod (row, amount, end,
    believed)."""

    def __init__(self, free, kinds, jobs, running):
        self.free, self.kinds, self.jobs = list(free), kinds, jobs
        self.running = list(running)
        self.now, self.starts = NOW, [math.inf] * len(jobs)

    def room(self, kind, free):
        amount, rows = self.kinds[kind]
        return [max(left, 0) // amount if rows is None or row in rows else 0 for row, left in enumerate(free)]

    def choose(self, kind, need, room):
        if max(room) >= need:
            return [(min((number, row) for row, number in enumerate(room) if number >= need)[1], need)]
        if need == 1 or sum(room) < need:
            return []
        found = []
        for row in sorted(range(len(room)), key=lambda each: (-room[each], each)):
            number = min(room[row], need)
            if number:
                found.append((row, number))
                need -= number
        return found

    def play(self):
        while True:
            self.start_all()
            ends = sorted(each[2] for each in self.running if each[2] < math.inf)
            if not ends:
                return self.starts
            self.now = max(ends[0], self.now)
            for each in [each for each in self.running if each[2] <= self.now]:
                self.running.remove(each)
                self.free[each[0]] += each[1]

    def start_all(self):
        head = None
        passed_over = set()
        for number, (kind, need, believed, runtime) in enumerate(self.jobs):
            if self.starts[number] < math.inf or (kind, need) in passed_over:
                continue
            rows = self.choose(kind, need, self.room(kind, self.free))
            if not rows:
                passed_over.add((kind, need))
                if head is None:
                    head = number, self.head_start(kind, need)
                continue
            promise = None if head is None else head[1]
            if promise is not None and self.now + believed > promise[0]:
                room = self.room(kind, self.free)
                left = self.room(kind, promise[1])
                both = enumerate(zip(room, left, strict=True))
                room = [min(a, b) if row in promise[2] else a for row, (a, b) in both]
                rows = self.choose(kind, need, room)
                for row, count in rows:
                    promise[1][row] -= self.kinds[kind][0] * count
            if rows:
                self.start(number, rows, runtime, believed, kind)

    def start(self, number, rows, runtime, believed, kind):
        self.starts[number] = self.now
        for row, count in rows:
            amount = self.kinds[kind][0] * count
            self.free[row] -= amount
            self.running.append((row, amount, self.now + runtime, believed, self.now))

    def head_start(self, kind, need):
        free = list(self.free)
        known = [each for each in self.running if each[3] < math.inf]
        at = sorted({self.believed_end(each) for each in known})
        for time in at:
            for each in known:
                if self.believed_end(each) == time:
                    free[each[0]] += each[1]
            rows = self.choose(kind, need, self.room(kind, free))
            if rows:
                for row, count in rows:
                    free[row] -= self.kinds[kind][0] * count
                return time, free, {row for row, _ in rows}
        return None

    def believed_end(self, each):
        end = each[3]
        while each[4] + end <= self.now:
            end *= 2
        return each[4] + end


@st.composite
def clusters(draw):
    rows = draw(st.integers(1, 4))
    free = draw(st.lists(st.integers(0, 8), min_size=rows, max_size=rows))
    subset = st.one_of(st.none(), st.sets(st.integers(0, rows - 1), min_size=1))
    kinds = draw(st.lists(st.tuples(st.integers(1, 8), subset), min_size=1, max_size=3))
    # Distinct primes: no two things end at the same time, so the order of equal ends does not matter.
    times = iter(draw(st.permutations([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53])))
    jobs = [
        (draw(st.integers(0, len(kinds) - 1)), draw(st.integers(1, 3)), 1.0 * next(times), next(times) + 0.013 * number)
        for number in range(draw(st.integers(1, 4)))
    ]
    running = [
        (
            draw(st.integers(0, rows - 1)),
            draw(st.integers(1, 8)),
            NOW + next(times) + number / 9,
            next(times) + 0.7,
            NOW,
        )
        for number in range(draw(st.integers(0, 4)))
    ]
    return free, kinds, jobs, running


@settings(max_examples=150, deadline=None)
@given(clusters())
def test_jobs_start_when_the_reference_starts_them(cluster):
    free, kinds, jobs, running = cluster
    model = model_of(
        free,
        kinds,
        [one(kind, place, believed, need) for place, (kind, need, believed, _) in enumerate(jobs)],
        [on_row(row, amount, believed) for row, amount, _, believed, _ in running],
    )
    found = starts(model, [each[2] for each in running], [each[3] for each in jobs])
    assert found == Reference(free, kinds, jobs, running).play()


def test_a_short_job_passes_the_first_and_a_long_one_waits_behind_it():
    jobs = [one(1, 0, 100.0), one(0, 1, 500.0), one(0, 2, 5.0)]
    model = model_of([1], [(1, None), (4, None)], jobs, [on_row(0, 3, 10.0)])
    assert starts(model, [NOW + 10.0], [100.0, 500.0, 5.0]) == [NOW + 10.0, NOW + 110.0, NOW]


def test_a_job_behind_pods_without_an_end_never_starts():
    model = model_of([1], [(4, None)], [one(0, 0)], [on_row(0, 3)])
    assert starts(model, [math.inf], [1.0]) == [math.inf]


def test_members_share_a_domain_of_the_required_level():
    jobs = [one(0, 0, 10.0, need=2, level=0)]
    model = model_of([1, 1, 1], [(1, None)], jobs, [on_row(1, 1, 5.0)], levels=[[1, 2, 0]])
    assert starts(model, [NOW + 5.0], [10.0]) == [NOW + 5.0]


def test_a_whole_card_is_not_made_of_two_halves():
    model = model_of(
        [9],
        [(1, None)],
        [one(0, 0, 10.0)],
        [on_row(0, 1, 50.0, cards=((0, 500),)), on_row(0, 1, 70.0, cards=((1, 500),))],
        cards=[[500, 500]],
        parts=[(1, 1000)],
    )
    assert starts(model, [NOW + 50.0, NOW + 70.0], [10.0]) == [NOW + 50.0]


def test_steps_are_bounded():
    running = [on_row(0, 1, 5.0) for _ in range(50)]
    model = model_of([0], [(100, None)], [one(0, 0)], running)
    found = StartSimulation(model, NOW).run(Draw([NOW + each for each in range(1, 51)], [1.0]), 7)
    assert (found.steps, found.until) == (7, NOW + 7)


def test_a_gang_whose_second_kind_never_fits_costs_few_trials():
    rows, pods = 50, 600
    kinds = [(1, None), (10**6, None), (1, None)]
    jobs = [ModelJob((Members(0), Members(1)), (0.0,), 60.0), one(2, 1)]
    running = [on_row(each % rows, 1, believed=10.0 + each) for each in range(pods)]
    model = model_of([0] * rows, kinds, jobs, running)
    found = StartSimulation(model, NOW).run(Draw([NOW + 10.0 + each for each in range(pods)], [60.0, 60.0]), 1)
    assert found.starts[0] == math.inf
    assert found.work < 40 * pods


def test_a_draw_ends_when_its_work_is_done():
    model = model_of([0], [(1, None)], [one(0, each, 10.0) for each in range(100)], [on_row(0, 1, believed=5.0)])
    simulation, draw = StartSimulation(model, NOW), Draw([NOW + 5.0], [10.0] * 100)
    whole = simulation.run(draw, STEPS)
    part = simulation.run(draw, STEPS, whole.work / 2)
    assert max(whole.starts) < math.inf
    assert part.until < math.inf
    started = [each for each in part.starts if each < math.inf]
    assert 0 < len(started) < 100
    assert started == whole.starts[: len(started)]
