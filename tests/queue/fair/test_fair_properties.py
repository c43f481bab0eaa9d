"""Random trees, weights, guarantees and limits: the order is that of a plain reference, shares are within 5 % of the
ideal ones at saturation, guarantees are met, nothing is idle that a job may use, and usage is that of what runs."""

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kubenexus.api.queues.settings import QueueSettings
from tests.queue.fair.fair_fixture import FairFixture
from tests.queue.fair.reference import Reference, Waiting, ideal
from tests.state.queues.queue_objects import a_queue, added_up, used

LEAVES = ("a", "b", "c", "d")
INNER = ("x", "y")
TOTAL = 100  # cpu of the cluster

weights = st.integers(0, 4)


@st.composite
def trees(draw: st.DrawFn, *, limits: bool = True) -> dict[str, QueueSettings]:
    """Two levels: some leaves below inner queues, the others at the top. Each leaf has the namespaces a0 and a1."""
    queues: dict[str, QueueSettings] = {}
    inner = draw(st.integers(0, 2))
    for name in INNER[:inner]:
        limit: dict[str, Any] = {"limit": {"cpu": draw(st.integers(20, 80))}} if limits and draw(st.booleans()) else {}
        queues[name] = a_queue(name, weight=draw(st.integers(1, 4)), **limit)
    for name in LEAVES[: draw(st.integers(2, 4))]:
        spec: dict[str, Any] = {"weight": draw(weights), "namespaces": [f"{name}0", f"{name}1"]}
        if inner and draw(st.booleans()):
            spec["parent"] = INNER[draw(st.integers(0, inner - 1))]
        if draw(st.booleans()):
            spec["guaranteed"] = {"cpu": draw(st.integers(1, 15))}
        if limits and draw(st.booleans()):
            spec["limit"] = {"cpu": draw(st.integers(15, 40))}
        if limits and draw(st.booleans()):
            spec["namespaceLimit"] = {"cpu": draw(st.integers(5, 30))}
        queues[name] = a_queue(name, **spec)
    return queues


def leaves(queues: dict[str, QueueSettings]) -> list[str]:
    return [name for name, queue in queues.items() if queue.namespaces]


def namespaces(queues: dict[str, QueueSettings]) -> dict[str, str]:
    return {space: name for name in leaves(queues) for space in queues[name].namespaces}


@given(trees(), st.data())
def test_the_order_is_that_of_the_reference(queues: dict[str, QueueSettings], data: st.DataObject) -> None:
    spaces = namespaces(queues)
    fixture, reference = FairFixture(*queues.values(), cpu=TOTAL), Reference(queues, spaces, TOTAL * 1000)
    shapes = data.draw(
        st.lists(st.tuples(st.sampled_from(sorted(spaces)), st.integers(1, 12), st.integers(0, 2)), max_size=25)
    )
    waiting = []
    for number, (space, cpu, priority) in enumerate(shapes):
        fixture.add(f"p{number}", space, cpu=cpu, priority=priority, since=float(number // 3))
        waiting.append(Waiting(f"p{number}", space, cpu * 1000, priority, float(number // 3), number))
    while True:
        attempt, expected = fixture.pop(), reference.next(waiting)
        assert (None if attempt is None else attempt.job.pods[0].metadata.name) == (expected and expected.name)
        if attempt is None or expected is None:
            break
        fixture.place(attempt)
        reference.place(expected)
        waiting.remove(expected)


def saturate(fixture: FairFixture, queues: dict[str, QueueSettings], jobs: dict[str, int], cpu: int) -> None:
    for name, number in jobs.items():
        for i in range(number):
            fixture.add(f"job-{i}", queues[name].namespaces[i % 2], cpu=cpu)
    fixture.run()


@settings(max_examples=25)
@given(trees(limits=False), st.data())
def test_shares_are_within_five_percent_of_the_ideal_ones_at_saturation(
    queues: dict[str, QueueSettings], data: st.DataObject
) -> None:
    jobs = {name: data.draw(st.integers(0, 40), label=name) for name in leaves(queues)}
    assume(2 * sum(jobs.values()) >= TOTAL)
    fixture = FairFixture(*queues.values(), cpu=TOTAL)
    saturate(fixture, queues, jobs, cpu=2)
    found = fixture.cpus()
    wanted = ideal(TOTAL * 1000, queues, {name: number * 2000.0 for name, number in jobs.items()})
    assert sum(found[name] for name in leaves(queues)) == TOTAL, "nothing is idle while jobs wait"
    for name, milli in wanted.items():
        assert abs(found[name] - milli / 1000) <= 0.05 * TOTAL, (found, wanted)


@settings(max_examples=25)
@given(trees(limits=False), st.randoms(use_true_random=False))
def test_guarantees_are_met_once_what_ran_before_has_ended(queues: dict[str, QueueSettings], random: Any) -> None:
    """Without preemption a guarantee is met at the latest when each job that ran before has ended."""
    fixture = FairFixture(*queues.values(), cpu=TOTAL)
    first = leaves(queues)[0]
    saturate(fixture, queues, {first: 20}, cpu=5)
    saturate(fixture, queues, dict.fromkeys(leaves(queues)[1:], 4), cpu=5)
    before = sorted(fixture.running)
    random.shuffle(before)
    for key in before:
        fixture.end(key)
        fixture.run()
    for name in leaves(queues)[1:]:
        assert fixture.cpus()[name] * 1000 >= queues[name].guaranteed.get("cpu", 0)


@given(trees(), st.data())
def test_no_job_waits_that_fits_and_usage_is_that_of_what_runs(
    queues: dict[str, QueueSettings], data: st.DataObject
) -> None:
    spaces = namespaces(queues)
    fixture = FairFixture(*queues.values(), cpu=30)
    waiting: dict[str, Any] = {}
    for number in range(data.draw(st.integers(1, 25))):
        op = data.draw(st.sampled_from(["add", "add", "end", "delete", "limit"]))
        if op == "add":
            space, cpu = data.draw(st.sampled_from(sorted(spaces))), data.draw(st.integers(1, 12))
            job = fixture.add(f"p{number}", space, cpu=cpu)
            waiting[job.key] = job
        elif op == "end" and fixture.running:
            fixture.end(data.draw(st.sampled_from(sorted(fixture.running))))
        elif op == "delete" and waiting:
            key = data.draw(st.sampled_from(sorted(waiting)))
            del waiting[key]
            fixture.queue.delete(key)
        elif op == "limit":
            name = data.draw(st.sampled_from(leaves(queues)))
            spec = {"namespaces": list(queues[name].namespaces), "limit": {"cpu": data.draw(st.integers(1, 40))}}
            fixture.tree.set_queue(a_queue(name, parent=queues[name].parent, **spec))
        for key in fixture.run():
            del waiting[key]
        assert used(fixture.ledger) == added_up(fixture.ledger)
        for job in waiting.values():
            pod = job.pods[0]
            amounts = (("cpu", int(pod.spec.containers[0].resources.requests["cpu"]) * 1000),)
            limit = fixture.tree.reached_limit(job.namespace, amounts, 1)
            assert limit is not None or not fixture.has_room(pod), job.key
