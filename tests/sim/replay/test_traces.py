"""Readers of traces: what they return, and the line about what they cannot read."""

from pathlib import Path

import pytest

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.replay.traces import openb, philly
from kubenexus.sim.replay.traces.json_lines import read_lines
from kubenexus.sim.replay.traces.node_option import nodes_of
from kubenexus.sim.replay.traces.trace import JobShape, Trace, TraceJob, TraceNode

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,1024,2,A\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np1,500,256,1,250,B|A\np2,1000,512,0,0,\n"
EXAMPLES = Path(__file__).parents[3] / "examples" / "traces"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_openb_nodes_and_pods(tmp_path: Path) -> None:
    assert openb.read_nodes(write(tmp_path, "n.csv", NODES)) == (TraceNode("n1", 8000, 1 << 30, 2, "A"),)
    part, none = openb.read_pods(write(tmp_path, "p.csv", PODS))
    assert part == TraceJob("p1", JobShape(500, 256 << 20, 1, 250, ("A", "B")))
    assert none == TraceJob("p2", JobShape(1000, 512 << 20))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("sn,cpu_milli\n", "columns memory_mib, gpu, model missing", id="columns are missing"),
        pytest.param(NODES.replace("2,A", "two,A"), ":2: column gpu: not a number: 'two'", id="no number"),
        pytest.param(NODES.replace("8000", "-1"), ":2: column cpu_milli: must be 0 to", id="a negative number"),
        pytest.param(NODES.replace("2,A", "2.5,A"), ":2: column gpu: must be a whole number", id="half a GPU"),
        pytest.param(NODES.replace("2,A", "nan,A"), ":2: column gpu: must be 0 to", id="not a number at all"),
        pytest.param(NODES + "n1,1,1,1,A\n", ":3: column sn: 'n1' is there twice", id="the same name twice"),
        pytest.param(NODES + "n2,1\n", ":3: expected 5 cells", id="a line that ends early"),
        pytest.param("sn,cpu_milli,memory_mib,gpu,model\n", "no nodes", id="no line"),
        pytest.param("", "columns sn, cpu_milli, memory_mib, gpu, model missing", id="an empty file"),
    ],
)
def test_broken_nodes_are_one_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(KubeNexusError) as error:
        openb.read_nodes(write(tmp_path, "n.csv", text))
    assert str(error.value).startswith(str(tmp_path / "n.csv"))
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            PODS.replace("1,250", "2,250"), "column gpu_milli: 2 GPUs with 250 thousandths of each", id="parts"
        ),
        pytest.param(
            PODS.replace("1,250", "1,2000"), "column gpu_milli: must be a whole number from 0 to 1000", id="two"
        ),
        pytest.param("name,cpu_milli\n", "columns memory_mib, num_gpu, gpu_milli missing", id="columns are missing"),
        pytest.param(PODS.splitlines()[0] + "\n", "no pods", id="an empty trace"),
        pytest.param('"', "not a CSV file", id="a quote that does not end"),
    ],
)
def test_broken_pods_are_one_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(KubeNexusError, match=problem):
        openb.read_pods(write(tmp_path, "p.csv", text))


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(KubeNexusError, match=r"cannot read no/such\.csv: No such file or directory"):
        openb.read_pods(Path("no/such.csv"))


def test_arrivals_are_the_pods_in_another_order_and_copies_up_to_the_ratio() -> None:
    trace = Trace(
        "tiny", openb.read_nodes(EXAMPLES / openb.NODES_FILE), openb.read_pods(EXAMPLES / "openb_pod_list_tiny.csv")
    )
    drawn = openb.inflated(trace, 42)
    first = [job.name for job in drawn.jobs[: len(trace.jobs)]]
    assert sorted(first) == sorted(job.name for job in trace.jobs)
    assert first != [job.name for job in trace.jobs]
    requested = [job.milli for job in drawn.jobs]
    assert sum(requested[:-1]) < 1.3 * trace.capacity <= sum(requested)
    assert len({job.name for job in drawn.jobs}) == len(drawn.jobs)
    assert not drawn.has_departures
    assert openb.inflated(trace, 42) == drawn != openb.inflated(trace, 43)


def test_philly_jobs_arrive_in_order_and_large_ones_are_gangs(tmp_path: Path) -> None:
    text = (
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,20,1,vc\n2017-10-09 07:00:55,5,1,5,vc\n"
    )
    small, large = philly.read_jobs(write(tmp_path, "p.csv", text), 8)
    assert (small.at, small.duration, small.shape.gpus, small.pods) == (0.0, 5.0, 1, 1)
    assert (large.at, large.duration, large.shape.gpus, large.pods, large.tenant) == (60.0, 66.0, 7, 3, "vc")


@pytest.mark.parametrize(("text", "count", "gpus"), [("3x8", 3, 8), ("1x1", 1, 1)])
def test_nodes_of_one_size(text: str, count: int, gpus: int) -> None:
    nodes = nodes_of(text)
    assert [len(nodes), nodes[0].gpus] == [count, gpus]


LINES = '{"kind":"node","name":"n","count":2,"cpu":"4","memory":"1Gi","gpus":1,"model":"A"}\n'


def test_our_own_form(tmp_path: Path) -> None:
    later = '{"kind":"job","name":"b","at":5,"duration":9,"pods":2,"gpus":8,"tenant":"t","priority":3}\n'
    job = '{"kind":"job","name":"a","count":2,"cpu":"500m","gpus":1,"gpu_fraction":0.25,"models":["B","A"]}\n'
    nodes, jobs = read_lines(write(tmp_path, "t.jsonl", LINES + later + "\n" + job))
    assert nodes == (TraceNode("n-0", 4000, 1 << 30, 1, "A"), TraceNode("n-1", 4000, 1 << 30, 1, "A"))
    part = JobShape(500, 0, 1, 250, ("A", "B"))
    assert jobs == (
        TraceJob("a-0", part),
        TraceJob("a-1", part),
        TraceJob("b", JobShape(gpus=8, priority=3), 5.0, 9.0, 2, "t"),
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("{", ":2: Input data was truncated", id="half a line"),
        pytest.param('{"kind":"pod","name":"a"}', ":2: Invalid value 'pod'", id="another kind"),
        pytest.param('{"kind":"job","name":"a","gpu":1}', "unknown field `gpu`", id="a field that is not known"),
        pytest.param('{"kind":"job","name":"a","at":-1}', ":2: Expected `float` >= 0", id="before the beginning"),
        pytest.param('{"kind":"job","name":"a","cpu":"many"}', ":2: ", id="no quantity"),
        pytest.param(
            '{"kind":"job","name":"a","gpus":2,"gpu_fraction":0.5}', "gpu_fraction is for jobs with one", id="parts"
        ),
        pytest.param('{"kind":"node","name":"n-0"}', "a node n-0 is there already", id="a node twice"),
    ],
)
def test_broken_lines_are_one_line(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(KubeNexusError) as error:
        read_lines(write(tmp_path, "t.jsonl", LINES + line))
    assert problem in str(error.value)
    assert "\n" not in str(error.value)
