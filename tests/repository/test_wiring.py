"""Collaborators are constructor arguments: no public attribute that holds a function is assigned later."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "kubenexus"


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def assigned(node: ast.AST) -> list[ast.Attribute]:
    """The attributes that a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    flat = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return [each for each in flat if isinstance(each, ast.Attribute)]


def functions(tree: ast.Module) -> set[str]:
    """Public attributes that are annotated as functions."""
    annotated = [node for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    targets = [node.target for node in annotated if "Callable[" in ast.unparse(node.annotation)]
    names = {each.attr if isinstance(each, ast.Attribute) else ast.unparse(each) for each in targets}
    return {name for name in names if not name.startswith("_")}


def late(tree: ast.Module, names: set[str]) -> list[str]:
    """Assignments to such an attribute of another object."""
    targets = [target for node in ast.walk(tree) for target in assigned(node)]
    others = [each for each in targets if each.attr in names and ast.unparse(each.value) != "self"]
    return [f"{each.lineno}: {ast.unparse(each)}" for each in others]


def test_no_function_is_assigned_to_an_object_after_its_construction() -> None:
    trees = dict(modules())
    names = set().union(*map(functions, trees.values()))
    assert {path: found for path, tree in trees.items() if (found := late(tree, names))} == {}


def test_no_method_is_replaced_at_run_time() -> None:
    replaced = {}
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Lambda, ast.Name)):
                for target in assigned(node):
                    if isinstance(node.value, ast.Lambda) and not ast.unparse(target).startswith("self."):
                        replaced[f"{path}:{node.lineno}"] = ast.unparse(target)
    assert replaced == {}


def test_the_check_finds_what_it_looks_for() -> None:
    text = "class A:\n    def __init__(self):\n        self.done: Callable[[], None] = f\n\na = A()\na.done = g\n"
    assert late(ast.parse(text), {"done"}) == ["6: a.done"]
