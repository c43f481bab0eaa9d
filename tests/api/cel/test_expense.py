"""Expressions that would take too long are refused by their text, before they run."""

import pytest

from kubenexus.api.cel.expense import expense
from kubenexus.api.cel.library import CALLBACKS
from kubenexus.api.cel.tokens import tokens

TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
CALLS = " && ".join(['isIP("::1")'] * 10)


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        pytest.param(f"{TEN}.exists(x, x == 3)", "", id="a loop"),
        pytest.param(f"{TEN}.all(x, {TEN}.exists(y, x == y))", "", id="a loop in a loop"),
        pytest.param(f"{TEN}.map(x, x * 2).filter(x, x > 3).exists(x, x == 8)", "", id="loops one after the other"),
        pytest.param('["a", "b"].exists(x, quantity(x) == quantity("1"))', "", id="some calls"),
        pytest.param('"a-b".replace("-", "+") == "a+b"', "", id="a replacement"),
        pytest.param('cel.bind(a, "x", a + a == "xx")', "", id="a bound text"),
        pytest.param(
            'cel.bind(a, "xxxxxxxxxx", cel.bind(b, a+a+a+a, cel.bind(c, b+b+b+b, cel.bind(d, c+c+c+c, '
            "cel.bind(e, d+d+d+d, cel.bind(f, e+e+e+e, cel.bind(g, f+f+f+f, g+g+g+g == g)))))))",
            "its values can grow too large",
            id="bound texts that grow",
        ),
        pytest.param('"x"' + '.replace("", "yyyyyyyyyy")' * 6 + ' == ""', "grow too large", id="replacements"),
        pytest.param(
            f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, {' && '.join(['a == b'] * 300)}))))",
            "too many steps",
            id="nested loops with much to do",
        ),
        pytest.param(
            f"{TEN}.all(a, {TEN}.all(b, {CALLS}))",
            "too many functions",
            id="nested loops that call functions of Python",
        ),
        pytest.param("(" * 101 + "true" + ")" * 101, "more than 100 nested brackets", id="deep brackets"),
        pytest.param("!" * 3001 + "true", "more than 3000 tokens", id="many tokens"),
    ],
)
def test_the_bound(expression: str, refused: str) -> None:
    said = expense(tokens(expression), CALLBACKS).problem
    assert refused in said
    assert bool(refused) == bool(said)
