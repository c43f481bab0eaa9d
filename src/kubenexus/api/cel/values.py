"""Quantities, versions, IP addresses and networks inside expressions, and their functions.

The library has no values of types from outside. So such a value is a map of one entry, the name of its type and its
canonical text: equal values are equal maps. A function raises ValueError, which becomes an error of the expression.
"""

import functools
import ipaddress
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from kubenexus.api.quantity import INT64_MAX, NANO, Quantity
from kubenexus.base.errors import Malformed, truncated

Value: TypeAlias = dict[str, str]

QUANTITY: Final = "kubernetes.Quantity"  # in nano units
SEMVER: Final = "kubernetes.Semver"  # without build metadata, which is not compared
IP: Final = "net.IP"
CIDR: Final = "net.CIDR"

_NUMBER: Final = r"(0|[1-9][0-9]{0,18})"
_PART: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PART}(?:\.{_PART})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_LONGEST: Final = 256  # characters of a version, network or quantity; attributes have at most 64


# --- quantities ----------------------------------------------------------------------------------------------------


def quantity(text: str) -> Value:
    """Returns the quantity of a text. Raises ValueError."""
    try:
        return _of_nano(Quantity.parse(_bounded(text)).nano)
    except Malformed:
        raise ValueError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None


def is_integer(value: Value) -> bool:
    nano = _nano(value)
    return nano % NANO == 0 and -INT64_MAX - 1 <= nano // NANO <= INT64_MAX


def as_integer(value: Value) -> int:
    if not is_integer(value):
        raise ValueError("cannot convert value to integer")
    return _nano(value) // NANO


def as_approximate_float(value: Value) -> float:
    try:
        return _nano(value) / NANO
    except OverflowError:
        return float("inf") if _nano(value) > 0 else float("-inf")


def sign(value: Value) -> int:
    nano = _nano(value)
    return (nano > 0) - (nano < 0)


def add(value: Value, other: Value) -> Value:
    return _of_nano(_nano(value) + _nano(other))


def add_integer(value: Value, other: int) -> Value:
    return _of_nano(_nano(value) + other * NANO)


def subtract(value: Value, other: Value) -> Value:
    return _of_nano(_nano(value) - _nano(other))


def subtract_integer(value: Value, other: int) -> Value:
    return _of_nano(_nano(value) - other * NANO)


def _of_nano(nano: int) -> Value:
    return {QUANTITY: str(nano)}


def _nano(value: Value) -> int:
    return int(_text(value, QUANTITY))


# --- versions ------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def semver(text: str, normalize: bool = False) -> Value:
    """Returns the version of a text; with `normalize`, a leading `v` and missing numbers are allowed. Raises
    ValueError."""
    found = _SEMVER.fullmatch(_bounded(_normalized(text) if normalize else text))
    if found is None:
        raise ValueError(f"invalid semantic version {truncated(text)!r}")
    release = ".".join(found.group(1, 2, 3))
    return {SEMVER: f"{release}-{found[4]}" if found[4] else release}


def major(value: Value) -> int:
    return _release(value)[0]


def minor(value: Value) -> int:
    return _release(value)[1]


def patch(value: Value) -> int:
    return _release(value)[2]


def _release(value: Value) -> tuple[int, ...]:
    return tuple(map(int, _text(value, SEMVER).partition("-")[0].split(".")))


def _normalized(text: str) -> str:
    parts = [re.sub(r"^0+(?=[0-9])", "", part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "-" in parts[-1] or "+" in parts[-1]:
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _precedence(text: str) -> tuple[tuple[int, ...], bool, list[tuple[bool, int, str]]]:
    """Returns a key in the order of semver.org: a version before its release is smaller, and numbers before texts."""
    release, _, before = text.partition("-")
    parts = [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in before.split(".") if part]
    return tuple(map(int, release.split("."))), not before, parts


# --- comparisons of quantities and versions ------------------------------------------------------------------------


def compare(one: Value, other: Value) -> int:
    (kind,) = one
    left, right = _order(_text(one, kind), kind), _order(_text(other, kind), kind)
    return int(left > right) - int(left < right)


def is_less(one: Value, other: Value) -> bool:
    return compare(one, other) < 0


def is_greater(one: Value, other: Value) -> bool:
    return compare(one, other) > 0


def _order(text: str, kind: str) -> Any:
    if kind == QUANTITY:
        return int(text)
    if kind == SEMVER:
        return _precedence(text)
    raise ValueError("no such overload")


# --- IP addresses and networks -------------------------------------------------------------------------------------


def ip(text: str) -> Value:
    """Returns the IP address of a text. Raises ValueError."""
    return {IP: str(_address(text))}


def is_canonical(text: str) -> bool:
    return str(_address(text)) == text


def family(value: Value) -> int:
    return ipaddress.ip_address(_text(value, IP)).version


def cidr(text: str) -> Value:
    """Returns the network of a text, with its host bits. Raises ValueError."""
    return {CIDR: str(_interface(text))}


def contains_ip(network: Value, address: Value) -> bool:
    held = ipaddress.ip_address(_text(address, IP))
    return held in _network(network)


def contains_ip_text(network: Value, address: str) -> bool:
    return contains_ip(network, ip(address))


def contains_cidr(network: Value, other: Value) -> bool:
    outer, inner = _network(network), _network(other)
    return outer.version == inner.version and outer.prefixlen <= inner.prefixlen and inner.network_address in outer


def contains_cidr_text(network: Value, other: str) -> bool:
    return contains_cidr(network, cidr(other))


def cidr_ip(value: Value) -> Value:
    return {IP: _text(value, CIDR).partition("/")[0]}


def masked(value: Value) -> Value:
    return {CIDR: str(_network(value))}


def prefix_length(value: Value) -> int:
    return _network(value).prefixlen


def ip_test(name: str) -> Callable[[Value], bool]:
    """Returns a function that tests an address for a property of Python's `ipaddress`."""

    def test(value: Value) -> bool:
        return bool(getattr(ipaddress.ip_address(_text(value, IP)), name))

    return test


def is_link_local_multicast(value: Value) -> bool:
    address = ipaddress.ip_address(_text(value, IP))
    return address in (_MULTICAST_4 if address.version == 4 else _MULTICAST_6)


def is_global_unicast(value: Value) -> bool:
    address = ipaddress.ip_address(_text(value, IP))
    excluded = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not excluded and str(address) != "255.255.255.255"


_MULTICAST_4: Final = ipaddress.ip_network("224.0.0.0/24")
_MULTICAST_6: Final = ipaddress.ip_network("ff02::/16")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    found = ipaddress.ip_address(_bounded(text))
    if isinstance(found, ipaddress.IPv6Address) and (found.scope_id or found.ipv4_mapped):
        raise ValueError(f"IP address {text!r} is not allowed")
    return found


def _interface(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    address, slash, length = _bounded(text).partition("/")
    if not slash or not length.isdigit() or (length != "0" and length.startswith("0")):
        raise ValueError("network address parse error during conversion from string")
    _address(address)
    return ipaddress.ip_interface(text)


def _network(value: Value) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_interface(_text(value, CIDR)).network


# --- lists and sets ------------------------------------------------------------------------------------------------


def total(values: Sequence[Any]) -> Any:
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in values):
        raise ValueError("no such overload")
    found = sum(values)
    if isinstance(found, int) and not -INT64_MAX - 1 <= found <= INT64_MAX:
        raise ValueError("integer overflow")
    return found


def smallest(values: Sequence[Any]) -> Any:
    return _extreme(values, "min", min)


def largest(values: Sequence[Any]) -> Any:
    return _extreme(values, "max", max)


def _extreme(values: Sequence[Any], name: str, choose: Callable[[Sequence[Any]], Any]) -> Any:
    if not values:
        raise ValueError(f"{name} called on empty list")
    try:
        return choose(values)
    except TypeError:
        raise ValueError("no such overload") from None


def is_sorted(values: Sequence[Any]) -> bool:
    try:
        return all(one <= other for one, other in itertools.pairwise(values))
    except TypeError:
        raise ValueError("no such overload") from None


def includes(values: Any, element: Any) -> bool:
    return any(_equal(each, element) for each in values) if isinstance(values, list) else _equal(values, element)


def contains_all(values: Sequence[Any], others: Sequence[Any]) -> bool:
    return all(includes(list(values), other) for other in others)


def intersects(values: Sequence[Any], others: Sequence[Any]) -> bool:
    return any(includes(list(values), other) for other in others)


def equivalent(values: Sequence[Any], others: Sequence[Any]) -> bool:
    return contains_all(values, others) and contains_all(others, values)


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are equal in CEL, where true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


# --- all -----------------------------------------------------------------------------------------------------------


def accepts(function: Callable[[str], object], text: str) -> bool:
    """Returns whether a function accepts a text."""
    try:
        function(text)
    except ValueError:
        return False
    return True


def _text(value: Value, kind: str) -> str:
    found = value.get(kind)
    if found is None:
        raise ValueError("no such overload")
    return found


def _bounded(text: str) -> str:
    if len(text) > _LONGEST:
        raise ValueError(f"text of {len(text)} characters is too long")
    return text
