"""Bounds the work of an expression from its text, before it is compiled.

The API server refuses expressions whose estimated cost is above a limit, and the library counts the steps of loops.
Neither bounds how long a text can grow: ten nested `cel.bind` that double a text make a kilobyte a megabyte. A decision
must not wait for such an expression. So the largest text and the number of steps are bounded from
counts of tokens. Both bounds are crude, and far above what selectors of devices need.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kubenexus.api.cel.tokens import IDENTIFIER, STRING, Token

MAX_LENGTH: Final = 10 * 1024  # of an expression, as in the API
MAX_TOKENS: Final = 3000  # compiling so many takes 50 ms
MAX_TEXT: Final = 10**6  # bytes of the largest value
MAX_WORK: Final = 10**7  # bytes and steps, about 50 ms
MAX_CALLBACKS: Final = 20_000  # calls of functions that are written in Python, 1 to 3 us each
MAX_STEPS: Final = 10_000  # of loops, the library's own limit
MAX_DEPTH: Final = 100  # nested brackets; the library's own limit is higher

_LOOPS: Final = frozenset(
    {"all", "exists", "exists_one", "existsOne", "filter", "map", "transformList", "transformMap"}
)
_GROWING: Final = frozenset({"replace", "join", "format", "quote", "split", "string", "bytes"})
# In steps: an evaluation by itself, and a call of a function in Python. A step has so many tokens, or bytes of texts.
_EVALUATION, _CALLBACK, _TOKENS, _BYTES = 10, 4, 16, 2_000
_VALUE_LENGTH: Final = 64  # the longest attribute
_VALUES: Final = 48  # the most attributes of a device that a loop can see, and some to spare


class Expense(NamedTuple):
    """What one evaluation costs at most, in steps of about a microsecond, or why the expression is refused."""

    steps: int = 0
    problem: str = ""


def expense(found: Sequence[Token], callbacks: frozenset[str]) -> Expense:
    """Returns the expense of an expression. `callbacks` are the functions that are written in Python."""
    if len(found) > MAX_TOKENS:
        return Expense(problem=f"more than {MAX_TOKENS} tokens")
    names = [token.text for token in found if token.kind == IDENTIFIER]
    longest = max((len(token.text) for token in found if token.kind == STRING), default=0)
    joins = sum(token.text in ("+", ",") for token in found)
    binds = names.count("bind") + sum(name in _LOOPS for name in names)
    depth, loops = _depths(found)
    if depth > MAX_DEPTH:
        return Expense(problem=f"more than {MAX_DEPTH} nested brackets")
    growing = sum(name in _GROWING for name in names)
    # Largest if all `+` are spread evenly over the variables that hold the sums.
    text = _power(1 + joins / max(binds, 1), max(binds, 1)) * _power(1.0 + max(longest, 2), growing)
    text *= max(longest, _VALUE_LENGTH)
    if text > MAX_TEXT:
        return Expense(problem="its values can grow too large")
    elements = max(_VALUES, joins + 1, longest if "split" in names else 0)
    steps = min(MAX_STEPS, binds * _power(float(elements), loops)) if loops else 1
    if steps * len(found) > MAX_WORK or steps * text > MAX_WORK * 10:
        return Expense(problem="its loops can take too many steps")
    calls = steps * sum(name in callbacks for name in names)
    if calls > MAX_CALLBACKS:
        return Expense(problem="its loops can call too many functions")
    return Expense(int(_EVALUATION + steps * len(found) / _TOKENS + steps * text / _BYTES + calls * _CALLBACK))


def _depths(found: Sequence[Token]) -> tuple[int, int]:
    """Returns the deepest nesting of brackets, and that of loops."""
    open_loops: list[bool] = []
    deepest = loops = 0
    previous = ""
    for token in found:
        if token.kind != STRING and token.text in ("(", "[", "[?", "{"):
            open_loops.append(previous in _LOOPS)
            deepest, loops = max(deepest, len(open_loops)), max(loops, sum(open_loops) if previous in _LOOPS else 0)
            if deepest > MAX_DEPTH:
                break
        elif token.kind != STRING and token.text in (")", "]", "}") and open_loops:
            open_loops.pop()
        previous = token.text if token.kind == IDENTIFIER else ""
    return deepest, loops


def _power(base: float, exponent: int) -> float:
    """Returns `base ** exponent`, without an overflow."""
    return float(min(base, 1e9) ** min(exponent, 30))
