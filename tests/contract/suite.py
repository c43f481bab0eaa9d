"""All cases by name, and a namespace for each."""

import inspect
import itertools
from collections.abc import Callable

from tests.contract.api import Api
from tests.contract.cases import kinds, lists, objects, patches, pods, watches
from tests.contract.http import Http

Case = Callable[[Api], None]
_NUMBERS = itertools.count(1)


def cases() -> dict[str, Case]:
    """Every public function that takes an Api, in the order in which they are written."""
    found: dict[str, Case] = {}
    for module in (objects, pods, lists, watches, patches, kinds):
        for name, function in vars(module).items():
            own = inspect.isfunction(function) and function.__module__ == module.__name__
            if own and not name.startswith("_"):
                found[f"{module.__name__.rpartition('.')[2]}: {name.replace('_', ' ')}"] = function
    return found


CASES = cases()


def run(case: Case, http: Http) -> None:
    """In a fresh namespace, which is left to whoever owns the server."""
    namespace = f"contract-{next(_NUMBERS)}"
    answer = http.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    assert answer.code == 201, answer
    case(Api(http, namespace))
