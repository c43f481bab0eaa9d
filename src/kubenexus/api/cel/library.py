"""The environment in which selectors are compiled: the variable `device` and Kubernetes' functions.

The library of the language is loaded with the first selector: it takes 10 ms and 18 MB, which a cluster without device
claims need not pay.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from kubenexus.api.cel import values

_TEXT, _INT, _BOOL, _DOUBLE, _VALUE, _LIST, _ANY = "string", "int", "bool", "double", "value", "list", "any"


class _Function(NamedTuple):
    """One overload. Members are called on their first argument."""

    name: str
    member: bool
    parameters: tuple[str, ...]
    result: str
    body: Callable[..., Any]


def _member(name: str, parameters: Sequence[str], result: str, body: Callable[..., Any]) -> _Function:
    return _Function(name, True, tuple(parameters), result, body)


def _plain(name: str, parameters: Sequence[str], result: str, body: Callable[..., Any]) -> _Function:
    return _Function(name, False, tuple(parameters), result, body)


def _parser(name: str, test: str, parse: Callable[..., Any]) -> tuple[_Function, _Function]:
    """A function that parses a text, and one that returns whether the text can be parsed."""
    accepts = functools.partial(values.accepts, parse)
    return _plain(name, [_TEXT], _VALUE, parse), _plain(test, [_TEXT], _BOOL, accepts)


# The library takes a name once, so what its own extensions declare (`indexOf` of texts, `string`) is not extended.
_FUNCTIONS: Final = (
    *_parser("quantity", "isQuantity", values.quantity),
    _member("isInteger", [_VALUE], _BOOL, values.is_integer),
    _member("asInteger", [_VALUE], _INT, values.as_integer),
    _member("asApproximateFloat", [_VALUE], _DOUBLE, values.as_approximate_float),
    _member("sign", [_VALUE], _INT, values.sign),
    _member("add", [_VALUE, _VALUE], _VALUE, values.add),
    _member("add", [_VALUE, _INT], _VALUE, values.add_integer),
    _member("sub", [_VALUE, _VALUE], _VALUE, values.subtract),
    _member("sub", [_VALUE, _INT], _VALUE, values.subtract_integer),
    *_parser("semver", "isSemver", values.semver),
    _plain("semver", [_TEXT, _BOOL], _VALUE, values.semver),
    _plain("isSemver", [_TEXT, _BOOL], _BOOL, lambda text, yes: values.accepts(lambda t: values.semver(t, yes), text)),
    _member("major", [_VALUE], _INT, values.major),
    _member("minor", [_VALUE], _INT, values.minor),
    _member("patch", [_VALUE], _INT, values.patch),
    _member("compareTo", [_VALUE, _VALUE], _INT, values.compare),
    _member("isLessThan", [_VALUE, _VALUE], _BOOL, values.is_less),
    _member("isGreaterThan", [_VALUE, _VALUE], _BOOL, values.is_greater),
    *_parser("ip", "isIP", values.ip),
    _plain("ip.isCanonical", [_TEXT], _BOOL, values.is_canonical),
    _member("family", [_VALUE], _INT, values.family),
    _member("isUnspecified", [_VALUE], _BOOL, values.ip_test("is_unspecified")),
    _member("isLoopback", [_VALUE], _BOOL, values.ip_test("is_loopback")),
    _member("isLinkLocalUnicast", [_VALUE], _BOOL, values.ip_test("is_link_local")),
    _member("isLinkLocalMulticast", [_VALUE], _BOOL, values.is_link_local_multicast),
    _member("isGlobalUnicast", [_VALUE], _BOOL, values.is_global_unicast),
    *_parser("cidr", "isCIDR", values.cidr),
    _member("containsIP", [_VALUE, _VALUE], _BOOL, values.contains_ip),
    _member("containsIP", [_VALUE, _TEXT], _BOOL, values.contains_ip_text),
    _member("containsCIDR", [_VALUE, _VALUE], _BOOL, values.contains_cidr),
    _member("containsCIDR", [_VALUE, _TEXT], _BOOL, values.contains_cidr_text),
    _member("ip", [_VALUE], _VALUE, values.cidr_ip),
    _member("masked", [_VALUE], _VALUE, values.masked),
    _member("prefixLength", [_VALUE], _INT, values.prefix_length),
    _member("sum", [_LIST], _ANY, values.total),
    _member("min", [_LIST], _ANY, values.smallest),
    _member("max", [_LIST], _ANY, values.largest),
    _member("isSorted", [_LIST], _BOOL, values.is_sorted),
    _member("includes", [_ANY, _ANY], _BOOL, values.includes),
    _plain("sets.contains", [_LIST, _LIST], _BOOL, values.contains_all),
    _plain("sets.intersects", [_LIST, _LIST], _BOOL, values.intersects),
    _plain("sets.equivalent", [_LIST, _LIST], _BOOL, values.equivalent),
)

CALLBACKS: Final = frozenset(each.name.rpartition(".")[2] for each in _FUNCTIONS)


@functools.cache
def environment() -> Any:
    """Returns the environment; the first call loads the library."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

    kind = cel.Type
    types = {
        _TEXT: kind.STRING,
        _INT: kind.INT,
        _BOOL: kind.BOOL,
        _DOUBLE: kind.DOUBLE,
        _ANY: kind.DYN,
        _VALUE: kind.Map(kind.STRING, kind.STRING),
        _LIST: kind.List(kind.DYN),
    }
    overloads: dict[str, list[Any]] = {}
    for each in _FUNCTIONS:
        given = [types[parameter] for parameter in each.parameters]
        label = "_".join((each.name, *each.parameters))
        made = cel.Overload(label, types[each.result], given, is_member=each.member, impl=each.body)
        overloads.setdefault(each.name, []).append(made)
    return cel.NewEnv(
        variables={"device": kind.DYN},
        extensions=[ext_strings.ExtStrings(2), ext_optional.ExtOptional(), ext_bindings.ExtBindings()],
        functions=[cel.FunctionDecl(name, made) for name, made in overloads.items()],
    )
