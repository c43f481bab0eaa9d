"""Checks of what plugins return.

A plugin from outside may raise or return anything. Each function of this module returns a result that keeps the
contract, or raises a `PluginError` that names the plugin. `queue.queue_profile` checks `pre_enqueue` and `sort_key`,
`cycle.plugin_output` and `plan` the rest.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import msgspec

from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.extension_points import PreFilterResult
from kubenexus.framework.job import Assignment
from kubenexus.framework.verdict import SKIP, Code, Skip, Verdict
from kubenexus.state.volumes.pod_volumes import VolumeChoice

# All that a plugin can raise: a SystemExit would end the process, and asyncio's CancelledError the task, because of one
# pod. Callers that catch it call `plugin_error`, which raises a KeyboardInterrupt again: that comes from the user.
FAILURES: Final = BaseException
# The codes of a Verdict that refuses. There is no WAIT at these points.
_REFUSING: Final = frozenset({Code.ERROR, Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})
_SHOWN: Final = 60  # characters of a wrong result in a message
_PLAIN: Final = msgspec.json.Encoder(order="deterministic").encode


class PluginError(KubeNexusError):
    """A plugin raised, or broke its contract. The attempt fails with an error that names the plugin."""

    def __init__(self, plugin: str, problem: str) -> None:
        self.plugin = plugin
        self.problem = problem
        super().__init__(f"plugin {plugin!r}: {problem}")

    @property
    def sentence(self) -> str:
        """The text in kube-scheduler's events."""
        return f'running "{self.plugin}" plugin: {self.problem}'


def plugin_error(plugin: Any, error: BaseException) -> PluginError:
    """Returns the error with the plugin's name. Raises a KeyboardInterrupt again."""
    reraise_interrupts(error)
    if isinstance(error, PluginError):
        return error
    return PluginError(plugin.name, f"{type(error).__name__}: {error}")


def reraise_interrupts(error: BaseException) -> None:
    """Raises a KeyboardInterrupt again, which does not come from a plugin."""
    if isinstance(error, KeyboardInterrupt):
        raise error


def call_plugin(plugin: Any, method: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a method of a plugin. Raises PluginError for anything that the method raises."""
    try:
        return method(*arguments)
    except FAILURES as error:
        raise plugin_error(plugin, error) from error


def checked_verdict(answer: Any, plugin: str, point: str) -> Verdict | None:
    """Returns the Verdict with the plugin's name; None for SUCCESS, which plugins ported from Go return."""
    if not isinstance(answer, Verdict):
        raise_contract_error(plugin, point, answer, "a Verdict")
    if not isinstance(answer.code, Code) or not _texts(answer.reasons):
        raise_contract_error(plugin, point, answer, "a Verdict with a Code and texts")
    if answer.code is Code.SUCCESS:
        return None
    if answer.code not in _REFUSING:
        raise_contract_error(plugin, point, answer, "a Verdict that refuses")
    return Verdict(answer.code, tuple(answer.reasons), plugin)


def checked_pre_enqueue(answer: Any, plugin: str) -> Verdict | None:
    """Checks a result of `pre_enqueue`."""
    return None if answer is None else checked_verdict(answer, plugin, "pre_enqueue")


def checked_node_names(answer: Any, plugin: str) -> frozenset[str] | Verdict | None:
    """Checks a result of `node_names`."""
    if answer is None:
        return None
    return (
        checked_verdict(answer, plugin, "node_names")
        if isinstance(answer, Verdict)
        else _names(answer, plugin, "node_names")
    )


def checked_pre_filter(answer: Any, plugin: str) -> Skip | PreFilterResult | Verdict | None:
    """Checks a result of `pre_filter`."""
    if answer is None or isinstance(answer, Skip):
        return answer
    if isinstance(answer, PreFilterResult):
        return PreFilterResult(_names(answer.names, plugin, "pre_filter"))
    if isinstance(answer, Verdict) and answer.code is Code.SKIP:
        return SKIP
    return checked_verdict(answer, plugin, "pre_filter")


def checked_assignment(answer: Any, plugin: str) -> Assignment | Verdict:
    """Checks a result of `assign`."""
    if isinstance(answer, Verdict):
        found = checked_verdict(answer, plugin, "assign")
        if found is not None:
            return found
        raise_contract_error(plugin, "assign", answer, "an Assignment")
    if not isinstance(answer, Assignment):
        raise_contract_error(plugin, "assign", answer, "an Assignment")
    takes = all(
        isinstance(each, DeviceShare) and isinstance(each.device, str) and _whole(each.share, each.memory)
        for each in _tuple(answer.device_shares)
    )
    picks = all(
        isinstance(each, VolumeChoice) and _whole(each.position) and isinstance(each.volume, str)
        for each in _tuple(answer.volumes)
    )
    notes = all(isinstance(each, tuple) and len(each) == 2 and _texts(each) for each in _tuple(answer.annotations))
    if not (takes and picks and notes):
        wanted = "an Assignment of tuples of DeviceShare, VolumeChoice and pairs of texts"
        raise_contract_error(plugin, "assign", answer, wanted)
    return answer


def checked_signature(answer: Any, plugin: str) -> Any:
    """Checks a result of `sign`: it must be encodable as JSON, since it becomes part of a signature."""
    try:
        _PLAIN(answer)
    except Exception:
        raise_contract_error(plugin, "sign", answer, "plain data")
    return answer


def checked_amounts(answer: Any, plugin: str) -> Mapping[str, int]:
    """Checks a result of `amounts`."""
    plain = isinstance(answer, Mapping) and _texts(tuple(answer))
    if not plain or not all(isinstance(each, int) and each >= 0 for each in answer.values()):
        raise_contract_error(plugin, "amounts", answer, "an amount for each resource by name")
    found: Mapping[str, int] = answer
    return found


def checked_sort_key(answer: Any, plugin: str) -> tuple[float, ...]:
    """Checks a result of `sort_key`: numbers, none of them NaN, so that all keys can be compared."""
    if not isinstance(answer, tuple) or not all(isinstance(each, (int, float)) and each == each for each in answer):  # noqa: PLR0124 - NaN
        raise_contract_error(plugin, "sort_key", answer, "a tuple of numbers")
    return answer


def raise_contract_error(plugin: str, point: str, answer: Any, wanted: str) -> NoReturn:
    """Raises a PluginError: the plugin returned `answer` where the contract wants `wanted`."""
    raise PluginError(plugin, f"`{point}` returned {describe_result(answer)}, not {wanted}")


def describe_result(answer: Any) -> str:
    """Returns a result as part of a message; if its `repr` fails, its type."""
    try:
        text = repr(answer)
    except Exception:
        text = f"something of type {type(answer).__name__}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _names(answer: Any, plugin: str, point: str) -> frozenset[str]:
    if not isinstance(answer, (set, frozenset)) or not _texts(tuple(answer)):
        raise_contract_error(plugin, point, answer, "a set of node names")
    return frozenset(answer)


def _texts(answer: Any) -> bool:
    return isinstance(answer, (tuple, list)) and all(isinstance(each, str) for each in answer)


def _whole(*numbers: Any) -> bool:
    return all(isinstance(each, int) and abs(each) < 2**62 for each in numbers)


def _tuple(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (None,)
