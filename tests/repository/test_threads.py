"""One thread owns all state (`app.scheduling_loop`), so that no lock is needed and none can be waited for in the wrong
order. The lease has a thread of its own, which shares nothing with the loop but three references
(`app.election.leader_thread`)."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "kubenexus"
# Nothing in a cluster runs these.
ELSEWHERE = {"testing", "sim"}
# What may be done beside the loop, because it touches no state: a certificate is made, the web server is imported,
# numbers become text.
BESIDE = {
    "app/http/serving_certificates.py": ["_make_self_signed"],
    "app/http/endpoints.py": ["importlib.import_module"],
    "observe/metrics.py": ["self.render"],
}
THREADS = {"app/election/leader_thread.py": {"threading"}}
# One lock, and its holder waits for no other: the credential plugin runs once for all calls that need a token.
LOCKS = {"client/exec_plugin.py": ["asyncio.Lock"]}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE)
        if inside.parts[0] not in ELSEWHERE:
            yield inside.as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    """The first parts of all names."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def calls(tree: ast.Module, *names: str) -> list[ast.Call]:
    """Calls of functions or methods of these names."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in found if ast.unparse(call.func).split(".")[-1] in names]


def test_f63_only_the_lease_has_a_thread_of_its_own() -> None:
    threads = {"threading", "_thread", "concurrent", "multiprocessing", "queue"}
    assert {path: found for path, tree in modules() if (found := imported(tree) & threads)} == THREADS


def test_f63_what_runs_beside_the_loop_is_named_here() -> None:
    found = {path: calls(tree, "to_thread", "run_in_executor") for path, tree in modules()}
    assert {path: [ast.unparse(call.args[0]) for call in some] for path, some in found.items() if some} == BESIDE


def test_f63_nobody_waits_while_placements_are_only_tried() -> None:
    """Until a transaction is kept or rolled back, counters hold what no pod has: no other task may run."""
    tried = [
        (path, step)
        for path, tree in modules()
        for step in ast.walk(tree)
        if isinstance(step, ast.With)
        and any(ast.unparse(each.context_expr).endswith((".attempt()", ".transaction()")) for each in step.items)
    ]
    waits = (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Yield, ast.YieldFrom)
    assert len(tried) > 3
    assert [path for path, step in tried if any(isinstance(inside, waits) for inside in ast.walk(step))] == []


def test_f63_there_is_one_lock() -> None:
    found = {path: calls(tree, "Lock", "RLock", "Condition") for path, tree in modules() if "asyncio" in imported(tree)}
    assert {path: [ast.unparse(call.func) for call in some] for path, some in found.items() if some} == LOCKS
