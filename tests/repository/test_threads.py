"""One thread owns all state (`app.scheduling_loop`), so that no lock is needed and none can be waited for in the wrong
order. The lease has a thread of its own, which shares nothing with the loop but three references
(`app.election.leader_thread`)."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "kubenexus"
# Nothing in a cluster runs these.
ELSEWHERE = {"testing", "sim"}
# What may be done beside the loop, because it touches no state: a certificate is made, the web server is imported,
# numbers become text.
BESIDE = {
    "app/http/serving_certificates.py": ["make_self_signed"],
    "app/http/endpoints.py": ["importlib.import_module"],
    "observe/metrics.py": ["self.render"],
    "webhook/certificates.py": ["self._make"],
}
THREADS = {"app/election/leader_thread.py": {"threading"}}
# One lock, and its holder waits for no other: the credential plugin runs once for all calls that need a token.
LOCKS = {"client/exec_plugin.py": ["asyncio.Lock"]}


Nodes = list[ast.AST]


# What the checks look for: a module without such a word is not parsed.
WORDS = re.compile(
    r"\b(threading|_thread|concurrent|multiprocessing|queue|to_thread|run_in_executor|attempt|transaction|\w*lifted"
    r"|Lock|RLock|Condition)\b"
)


@pytest.fixture(scope="module")
def modules() -> dict[str, Nodes]:
    """The nodes of each module, in no order. They are parsed once, and forgotten after these tests."""
    inside = {path.relative_to(SOURCE): path for path in sorted(SOURCE.rglob("*.py"))}
    paths = {each.as_posix(): path for each, path in inside.items() if each.parts[0] not in ELSEWHERE}
    texts = {each: path.read_text(encoding="utf-8") for each, path in paths.items()}
    return {each: list(ast.walk(ast.parse(text))) for each, text in texts.items() if WORDS.search(text)}


def imported(nodes: Nodes) -> set[str]:
    """The first parts of all names."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def calls(nodes: Nodes, *names: str) -> list[ast.Call]:
    """Calls of functions or methods of these names."""
    return [node for node in nodes if isinstance(node, ast.Call) and _last_name(node.func) in names]


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_f63_only_the_lease_has_a_thread_of_its_own(modules: dict[str, Nodes]) -> None:
    threads = {"threading", "_thread", "concurrent", "multiprocessing", "queue"}
    assert {path: found for path, nodes in modules.items() if (found := imported(nodes) & threads)} == THREADS


def test_f63_what_runs_beside_the_loop_is_named_here(modules: dict[str, Nodes]) -> None:
    found = {path: calls(nodes, "to_thread", "run_in_executor") for path, nodes in modules.items()}
    assert {path: [ast.unparse(call.args[0]) for call in some] for path, some in found.items() if some} == BESIDE


TRIALS = (".attempt", ".transaction", "lifted")


def test_f63_nobody_waits_while_placements_are_only_tried(modules: dict[str, Nodes]) -> None:
    """Until a transaction is kept or rolled back, counters hold what no pod has: no other task may run."""
    tried = [
        (path, step)
        for path, nodes in modules.items()
        for step in nodes
        if isinstance(step, ast.With)
        and any(ast.unparse(each.context_expr).partition("(")[0].endswith(TRIALS) for each in step.items)
    ]
    waits = (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Yield, ast.YieldFrom)
    assert len(tried) > 3
    found = [path for path, step in tried if any(isinstance(inside, waits) for inside in ast.walk(step))]
    assert found == ["plan/reserved_capacity.py"]  # `lifted`, a context manager, which is a trial itself


def test_f63_there_is_one_lock(modules: dict[str, Nodes]) -> None:
    found = {
        path: calls(nodes, "Lock", "RLock", "Condition")
        for path, nodes in modules.items()
        if "asyncio" in imported(nodes)
    }
    assert {path: [ast.unparse(call.func) for call in some] for path, some in found.items() if some} == LOCKS
