"""Go's templates, as far as workloads use them."""

from typing import Any

import pytest

from kubenexus.sim.perf.goexpr import BadTemplate
from kubenexus.sim.perf.gotext import GoTemplate

GOOD = [
    pytest.param("no holes", {}, "no holes", id="a text stays as it is"),
    pytest.param("pod-{{.Index}}-", {"Index": 7}, "pod-7-", id="a value"),
    pytest.param("{{ .Index }}", {"Index": 7}, "7", id="blanks around it"),
    pytest.param("{{.nothing}}", {}, "<no value>", id="a value that is not there"),
    pytest.param("{{DivideInt .Index 3}}", {"Index": 7}, "2", id="a function"),
    pytest.param("{{DivideInt -7 2}} {{Mod -7 2}}", {}, "-3 -1", id="division towards zero"),
    pytest.param("{{AddInt 7000 (Mod .Index (DivideInt .a .b))}}", {"Index": 5, "a": 8, "b": 2}, "7001", id="nested"),
    pytest.param("{{if .p}}{{AddInt 0 .p}}{{else}}9{{end}}", {"p": 1000}, "1000", id="if"),
    pytest.param("{{if .p}}{{AddInt 0 .p}}{{else}}9{{end}}", {"p": 0}, "9", id="zero is false"),
    pytest.param('{{if eq .m "a"}}A{{else if eq .m "b"}}B{{else}}C{{end}}', {"m": "b"}, "B", id="else if"),
    pytest.param("{{range 3}}{{.}}{{end}}", {}, "012", id="range over a number"),
    pytest.param("{{range $i := (.n | Int)}}<{{$i}}>{{end}}", {"n": "2"}, "<0><1>", id="range with a variable"),
    pytest.param("{{range $i, $x := .l}}{{$i}}{{$x}}{{end}}", {"l": ["a", "b"]}, "0a1b", id="range over a list"),
    pytest.param("{{$n := or .n 10}}{{$n}}", {}, "10", id="a variable with a default"),
    pytest.param("{{$n := or .n 10}}{{range 1}}{{$n}}{{end}}", {"n": 4}, "4", id="a variable seen from within"),
    pytest.param("{{(or .l nil) | JSON}}", {}, "null", id="JSON of nothing"),
    pytest.param("{{.l | JSON}}", {"l": [{"a": 1}]}, '[{"a":1}]', id="JSON"),
    pytest.param("a {{- .x -}} b", {"x": 1}, "a1b", id="trimmed blanks"),
    pytest.param("a{{/* why */}}b", {}, "ab", id="a comment"),
    pytest.param("{{if ge .a 2}}x{{end}}", {"a": 2}, "x", id="comparison"),
    pytest.param("{{.f}}", {"f": 3.0}, "3", id="a whole float, as Go shows it"),
]


@pytest.mark.parametrize(("text", "values", "expected"), GOOD)
def test_templates(text: str, values: dict[str, Any], expected: str) -> None:
    assert GoTemplate(text).render(values) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{if .a}}x", "without {{end}}"),
        ("x{{end}}", "without a beginning"),
        ("{{Frobnicate 1}}", "'Frobnicate' is not defined"),
        ("{{}}", "empty action"),
        ("{{$x}}", "undefined variable $x"),
        ("{{DivideInt 1 0}}", "divided by zero"),
        ("{{AddInt .a 1}}", "None is no number"),
        ("{{(Mod 1 2}}", "not closed"),
        ("{{Mod 1}}", "Mod cannot take 1"),
        ("{{.a ? 1}}", "cannot read"),
    ],
)
def test_what_is_wrong_is_told(text: str, problem: str) -> None:
    with pytest.raises(BadTemplate) as caught:
        GoTemplate(text).render({})
    assert problem in str(caught.value)


def test_a_template_knows_what_it_depends_on() -> None:
    assert GoTemplate("{{.a}} b {{DivideInt .Index .c}} .d").names == {"a", "Index", "c"}
