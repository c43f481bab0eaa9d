"""Names and prose say what things are: no metaphors for classes and modules, no persons for objects (CONTRIBUTING)."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kubenexus"
MODULES = sorted(PACKAGE.rglob("*.py"))
GENERATED = ROOT / "docs" / "keys.md"  # from the texts of api/keys
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "changes").glob("*.md")} - {GENERATED})

# Persons that stand for a job, a caller or a plugin, and speech that stands for a call.
RIDDLES = re.compile(r"\b(whoever|whatever|somebody|nobody|anybody|everybody|anew|(?:is|are)\s+told)\b", re.IGNORECASE)
MAX_RIDDLES = 40  # in all docstrings and comments of the package

# Classes that were called by a metaphor, or by a word that means something else in Kubernetes.
OLD_CLASSES = """
    Assembly Auditor Axis Backstage Beam Bench Board Bond Bonding Box Camera Cast Census Certificate Chore Chores
    Commitment Crew Deed Door Doors Fate Feed Fences Flaw Flight Formation Garbled Ground Happening Hearing Herald Hole
    Holes Housekeeping Inquest Jointly Keeper Kin Known Landing Laws Leaning Line Lineup Lots Nearness NotAtHand
    NotInTime NotTrue Notes Outlook Ours Patience Player Promise Quest Questions Reception Registrar Residents Roll Room
    Roster Scene Seat Shelf Show Shunned Site Sites Spot Stage Stake Standing Stock Story StoryFailed Tally Tie Told
    Trouble Turn Turns Twin Usher WaitingRoom Wake Ways Wish Wishes World Yielding
    """

# Modules that were called so, by their paths in the package.
OLD_MODULES = """
    api/gangs/claim api/gangs/nearness api/offers app/auditor app/counted app/doors app/feed app/hearing app/herald
    app/holes app/inquest app/keeper app/known app/landing app/loop app/pages app/ports app/registrar app/rights
    app/self_made base/garbage base/moments base/numbers bind/commitment bind/notes bind/outcome bind/shunned cli/ending
    client/access client/answers client/changes client/lines client/places client/topics client/wire config/drafts
    config/shape cycle/bench cycle/border cycle/census cycle/lots cycle/rank cycle/refusals framework/bonds
    framework/points observe/ahead observe/gathering observe/story plan/gang/axes plan/gang/crews plan/gang/even
    plan/gang/ground plan/gang/kinds plan/gang/mixed plan/gang/outlook plan/gang/quest plan/gang/sites plan/gang/stake
    plan/gang/ways plan/seat plugins/evenness plugins/resources_together queue/assembly queue/board queue/changes
    queue/entry queue/flight queue/formation queue/kind queue/line queue/lines queue/places queue/reception
    queue/refusals queue/roll queue/room queue/standing queue/tally queue/turns sim/apiserver/housekeeping sim/box
    sim/chores sim/controllers/kin sim/controllers/office sim/controllers/shelf sim/demo/acts sim/demo/scene
    sim/demo/show sim/demo/stage sim/demo/world sim/marks sim/perf/backstage sim/perf/making sim/perf/play
    sim/perf/shelf sim/perf/trial sim/seen sim/virtual/roll sim/virtual/world state/cells state/fences state/intake
    state/journal state/owners state/questions state/residents state/volumes/reach state/volumes/shelf
    state/volumes/stock testing/controlplane/family testing/fuzz/books testing/fuzz/hearing testing/fuzz/laws
    testing/fuzz/tally testing/fuzz/torn testing/fuzz/twin testing/fuzz/world testing/oracle/held testing/oracle/ours
    testing/oracle/say testing/oracle/tally testing/oracle/trial testing/twins
    """


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Each docstring of a module, with the line it begins on."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            text = first.value.value if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else None
            if isinstance(text, str):
                yield first.lineno, text


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Each comment of a module, with its line. Comments on consecutive lines are one text, as they are read."""
    block: list[str] = []
    begin = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start[0] != begin + len(block):
            yield begin, "\n".join(block)
            block = []
        begin = begin if block else token.start[0]
        block.append(token.string.lstrip("#"))
    if block:
        yield begin, "\n".join(block)


def riddles(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Line and word of each riddle in these texts."""
    for begin, text in texts:
        for match in RIDDLES.finditer(text):
            yield begin + text.count("\n", 0, match.start()), " ".join(match.group().split())


def riddles_of(source: str) -> list[tuple[int, str]]:
    """Line and word of each riddle in a module. A module without such a word is not parsed."""
    if not RIDDLES.search(source.replace("#", " ")):
        return []
    return sorted(riddles([*docstrings(source), *comments(source)]))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param('"""Nobody calls it."""\n', [(1, "Nobody")], id="in the docstring of a module"),
        pytest.param('def f():\n    """One.\n\n    Two, whatever it is."""\n', [(4, "whatever")], id="its own line"),
        pytest.param('class A:\n    """Who is\n    told."""\n', [(2, "is told")], id="two words over a line break"),
        pytest.param("x = 1  # computed anew\n", [(1, "anew")], id="in a comment behind code"),
        pytest.param("# the planner is\n# told of it\nx = 1\n", [(1, "is told")], id="over two lines of a comment"),
        pytest.param("# who is\nx = 1\n# told\n", [], id="not over two comments with code between"),
        pytest.param('x = "nobody"\nnobody = x\n', [], id="not in strings and names"),
        pytest.param('def f():\n    """As in `test_for_nobody_else`."""\n', [], id="not as part of a name"),
    ],
)
def test_riddles_are_found_in_docstrings_and_comments_alone(source: str, found: list[tuple[int, str]]) -> None:
    assert riddles_of(source) == found


def test_docstrings_and_comments_have_things_of_the_code_as_subjects() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in MODULES
        for line, word in riddles_of(path.read_text(encoding="utf-8"))
    ]
    assert len(found) <= MAX_RIDDLES, "\n".join([f"{len(found)} of at most {MAX_RIDDLES}:", *found])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_no_riddles(page: Path) -> None:
    assert list(riddles([(1, page.read_text(encoding="utf-8"))])) == []


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def nodes(source: str, words: re.Pattern[str]) -> Iterator[ast.AST]:
    """The nodes of a module. A module without such a word is not parsed."""
    if words.search(source):
        yield from ast.walk(ast.parse(source))


def old_classes(source: str) -> list[tuple[int, str]]:
    """Line and name of each class that has an old name."""
    classes = [node for node in nodes(source, _CLASS) if isinstance(node, ast.ClassDef)]
    return [(each.lineno, each.name) for each in classes if each.name in _OLD_CLASSES]


_OLD_CLASSES = set(OLD_CLASSES.split())
_CLASS = re.compile(rf"\bclass\b[\s\\]+(?:{'|'.join(_OLD_CLASSES)})\b")


def test_no_class_is_called_by_a_metaphor() -> None:
    found = [f"{path.relative_to(ROOT)}:{line}: {name}" for path in MODULES for line, name in old_classes(text(path))]
    assert found == []


def test_a_class_with_an_old_name_is_found() -> None:
    first = OLD_CLASSES.split(maxsplit=1)[0]
    assert old_classes(f"if x:\n    class {first}:\n        pass\n") == [(2, first)]
    assert old_classes(f'"""class {first}"""\n\nclass {first}er:\n    pass\n') == []


def test_no_module_is_called_by_a_metaphor() -> None:
    paths = {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in MODULES}
    assert sorted(paths & set(OLD_MODULES.split())) == []


OLD_CONTRACT = re.compile("`(gate|pins|prepare|room|touched|bonds|wakes|scalar|of_volumes|at_rest)`")


def old_methods(source: str) -> list[tuple[int, str]]:
    """Line and name of each old method of the plugin contract that a text constant names."""
    texts = [node for node in nodes(source, OLD_CONTRACT) if isinstance(node, ast.Constant)]
    return [
        (each.lineno, name)
        for each in texts
        if isinstance(each.value, str)
        for name in OLD_CONTRACT.findall(each.value)
    ]


def test_no_message_names_an_old_method_of_the_plugin_contract() -> None:
    """A plugin author who reads one would look for a method that is not there."""
    modules = [path for path in MODULES if path.name != "registry.py"]
    assert [f"{path.name}:{line}: {name}" for path in modules for line, name in old_methods(text(path))] == []


def test_a_message_that_names_an_old_method_is_found() -> None:
    assert old_methods('# `gate`\nx = "call `pins` and `gate`"\n') == [(2, "pins"), (2, "gate")]
