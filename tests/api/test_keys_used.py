"""The registry says which keys no rule reads, so that the manual promises nothing."""

import ast
from collections.abc import Iterator
from pathlib import Path

from kubenexus.api.keys import KeyEntry, discovered, gang, gpu, network, numa, scheduler, tenant, workload

SOURCE = Path(__file__).parents[2] / "src" / "kubenexus"
REGISTRY = "kubenexus.api.keys"
WRITER = SOURCE / "discovery" / "node_patch.py"  # writes keys for people to read, too
MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (discovered, gang, gpu, network, numa, scheduler, tenant, workload)
}


def used(path: Path) -> Iterator[tuple[str, str]]:
    """The entries that a file names, by module and name."""
    text, aliases = path.read_text(encoding="utf-8"), dict[str, str]()
    if REGISTRY not in text:
        return
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == REGISTRY:
            aliases |= {each.asname or each.name: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"{REGISTRY}."):
            yield from ((str(node.module).rpartition(".")[2], each.name) for each in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield aliases[node.value.id], node.attr


def test_the_keys_that_no_rule_reads_say_so() -> None:
    readers = [path for path in SOURCE.rglob("*.py") if path.parent.name != "keys" and path != WRITER]
    named = {found for path in readers for found in used(path)}
    entries = {
        (module, name): entry
        for module, content in MODULES.items()
        for name, entry in vars(content).items()
        if isinstance(entry, KeyEntry)
    }
    assert {each for each, entry in entries.items() if entry.recognised_only} == entries.keys() - named
