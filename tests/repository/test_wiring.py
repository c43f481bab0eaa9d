"""Collaborators are constructor arguments: no function is assigned to an attribute of another object."""

import ast
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "kubenexus"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def nodes_of(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def modules() -> Iterator[tuple[str, list[ast.AST]]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), nodes_of(path.read_text(encoding="utf-8"))


def is_property(method: Function) -> bool:
    return any("property" in ast.unparse(each) for each in method.decorator_list)


def methods(nodes: list[ast.AST]) -> set[str]:
    """The names of functions and methods that are called, not read."""
    functions = [node for node in nodes if isinstance(node, Function)]
    return {each.name for each in functions if not is_property(each)}


def data(nodes: list[ast.AST]) -> set[str]:
    """The names of attributes, fields and properties."""
    found = {node.name for node in nodes if isinstance(node, Function) and is_property(node)}
    for node in nodes:
        if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store):
            found.add(node.attr if isinstance(node, ast.Attribute) else node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found


def pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Each target of an assignment with its value."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip_longest(target.elts, node.value.elts)
        else:
            yield target, node.value


def late(nodes: list[ast.AST], functions: set[str]) -> list[str]:
    """Assignments of a function to an attribute of an object other than self."""
    found = []
    for node in nodes:
        for target, value in pairs(node) if isinstance(node, ast.Assign) else ():
            name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
            is_function = isinstance(value, ast.Lambda) or name in functions
            if is_function and isinstance(target, ast.Attribute) and ast.unparse(target.value) != "self":
                found.append(f"{target.lineno}: {ast.unparse(target)}")
    return found


# The standard library has no other way: the callback of a TLS context.
KNOWN = {"app/http/serving_certificates.py": ["self.context.sni_callback"]}


def test_no_function_is_assigned_to_an_object_after_its_construction() -> None:
    trees = dict(modules())
    functions = set().union(*map(methods, trees.values())) - set().union(*map(data, trees.values()))
    found = {path: [each.partition(": ")[2] for each in late(nodes, functions)] for path, nodes in trees.items()}
    assert {path: some for path, some in found.items() if some} == KNOWN


def test_the_check_finds_what_it_looks_for() -> None:
    text = (
        "class A:\n    def ran(self): ...\n\na, b = A(), A()\na.done = b.ran\na.x, a.y = 1, lambda: 2\na.z = b.data\n"
    )
    assert late(nodes_of(text), methods(nodes_of(text))) == ["5: a.done", "6: a.y"]


def idle(nodes: list[ast.AST]) -> list[str]:
    """Defaults of parameters and fields that are functions of the module which do nothing: a missing collaborator
    would be silent."""
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    nothing = {name for name, node in functions.items() if all(map(is_nothing, node.body))}
    found = []
    for node in nodes:
        if isinstance(node, ast.arguments):
            found += [each for each in (*node.defaults, *node.kw_defaults) if each is not None]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            found.append(node.value)
    return [f"{each.lineno}: {each.id}" for each in found if isinstance(each, ast.Name) and each.id in nothing]


def is_nothing(statement: ast.stmt) -> bool:
    """Whether a statement is `pass`, a docstring, or `...`."""
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, ast.Pass)


# Rules of the simulated API server: data, in which most kinds leave out most steps.
RULE_TABLES = ["sim/apiserver/rules/base.py"]


def test_no_default_is_a_function_that_does_nothing() -> None:
    assert [path for path, nodes in modules() if idle(nodes)] == RULE_TABLES


def test_the_check_of_defaults_finds_what_it_looks_for() -> None:
    text = 'def _nobody():\n    """No."""\n\ndef f(a=_nobody, *, b=_nobody): ...\n\nclass A:\n    c: int = _nobody\n'
    assert idle(nodes_of(text)) == ["4: _nobody", "4: _nobody", "7: _nobody"]
