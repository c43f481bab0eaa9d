"""The parameters of a workload, which operations refer to as `$name`."""

from typing import Any

import yaml

from kubenexus.config.durations import Duration
from kubenexus.sim.perf.files import InvalidWorkload


class Params:
    """`where` is the prefix of error messages. Raises InvalidWorkload."""

    def __init__(self, values: dict[str, Any], where: str) -> None:
        self._values, self.where = values, where

    def number(self, said: int | None, named: str, default: int = 0) -> int:
        """Returns the value of the parameter if `named` is set, otherwise `said`."""
        if not named:
            return default if said is None else said
        value = self._value(named)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidWorkload(
                f"{self.where}: parameter {named} is {value!r}; expected a number that is not negative"
            )
        return value

    def truth(self, said: bool, named: str) -> bool:
        return bool(self._value(named)) if named else said

    def seconds(self, said: str, named: str) -> float:
        """Returns a duration, which is written as in Go: `10s`, `1m30s`."""
        text = str(self._value(named)) if named else said
        try:
            return Duration.of(text).seconds
        except ValueError as error:
            raise InvalidWorkload(f"{self.where}: {error}") from None

    def template(self, said: dict[str, Any]) -> dict[str, Any]:
        """Returns the values for a template; `$name|default` may have a default, which is YAML."""
        return {key: self._resolved(value) for key, value in said.items()}

    def _resolved(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        name, bar, default = value[1:].partition("|")
        if name in self._values:
            return self._values[name]
        if not bar:
            raise InvalidWorkload(f"{self.where}: parameter {value} is not among the workload's params")
        return yaml.load(default, yaml.CSafeLoader)

    def _value(self, named: str) -> Any:
        name = named.removeprefix("$")
        if name not in self._values:
            raise InvalidWorkload(f"{self.where}: parameter {named} is not among the workload's params")
        return self._values[name]
