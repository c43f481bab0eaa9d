"""Reports of NUMA nodes that wait until the scheduling loop reads them."""

from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.app.watch.node_reports import NodeReports
from tests.api.numa.builders import an_nrt


class Passed:
    """What was passed on, in order."""

    def __init__(self, *known: str) -> None:
        self.known, self.log = set(known), list[str]()
        self.reports = NodeReports(self.read, self.forget, self.known.__contains__)

    def read(self, report: NodeResourceTopology) -> None:
        name = report.metadata.name
        self.known.add(name)
        free = report.zones[0].resources[0].available
        if free == "0":
            raise ValueError(name)
        self.log.append(f"{name} has {free}")

    def forget(self, node: str) -> None:
        self.known.discard(node)
        self.log.append(f"{node} is gone")


def a_report(node: str, free: int) -> NodeResourceTopology:
    return an_nrt([{"cpu": (8, 8, free)}], name=node)


def test_the_first_report_of_a_node_is_passed_on_at_once() -> None:
    passed = Passed()
    passed.reports.on_update(a_report("n", 8))
    assert passed.log == ["n has 8"]
    assert not passed.reports


def test_a_newer_report_takes_the_place_of_one_that_waits() -> None:
    passed = Passed("n", "m")
    for node, free in (("n", 8), ("m", 7), ("n", 6)):
        passed.reports.on_update(a_report(node, free))
    assert passed.log == []
    assert passed.reports.read_some(10) == []
    assert passed.log == ["n has 6", "m has 7"]
    assert not passed.reports


def test_some_are_read_at_a_time_those_first_that_wait_longest() -> None:
    passed = Passed("n", "m", "o")
    for node in ("n", "m", "o"):
        passed.reports.on_update(a_report(node, 4))
    passed.reports.read_some(2)
    assert passed.log == ["n has 4", "m has 4"]
    assert len(passed.reports) == 1


def test_a_report_that_is_gone_is_not_read_any_more() -> None:
    passed = Passed("n")
    passed.reports.on_update(a_report("n", 4))
    passed.reports.on_delete("n")
    passed.reports.read_some(2)
    assert passed.log == ["n is gone"]


def test_one_that_cannot_be_read_keeps_none_of_the_others() -> None:
    passed = Passed("n", "m")
    for node, free in (("n", 0), ("m", 4)):
        passed.reports.on_update(a_report(node, free))
    assert [str(problem) for problem in passed.reports.read_some(5)] == ["n"]
    assert passed.log == ["m has 4"]
