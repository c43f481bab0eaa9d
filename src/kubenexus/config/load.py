"""Loads a `Configuration` from a file: parses, decodes, validates, adds defaults and makes the profiles."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kubenexus.base.errors import KubeNexusError
from kubenexus.config import validate_document, validate_profiles
from kubenexus.config.args import as_data, as_plugin_args
from kubenexus.config.catalogue import Catalogue
from kubenexus.config.decode import decode_struct
from kubenexus.config.effective_profiles import EffectiveProfile, effective_profiles, to_profile, with_defaults
from kubenexus.config.field_errors import FieldError, FieldPath, InvalidConfiguration
from kubenexus.config.parse_yaml import MAX_BYTES, parse_yaml
from kubenexus.config.v1 import KIND, VERSION, KubeSchedulerConfiguration
from kubenexus.framework.profile import Factory, Profile

Source = str | bytes | Path


class Configuration(msgspec.Struct, frozen=True):
    """A valid configuration.

    `document` is the file with all defaults. `profiles` name only plugins that are built; a `ProfilePlugins` is made
    from each. `args` has the complete arguments by profile and name, including those of the planner and of plugins that
    are not built. `notes` need no repair; the caller reports them once, at start-up.
    """

    document: KubeSchedulerConfiguration
    profiles: tuple[Profile, ...]
    args: dict[str, dict[str, dict[str, Any]]]
    notes: tuple[FieldError, ...] = ()

    def profile(self, name: str) -> Profile | None:
        """Returns the profile for pods with this `schedulerName`, or None if they are another scheduler's."""
        return next((profile for profile in self.profiles if profile.name == name), None)


def load(source: Source, plugins: Mapping[str, Factory]) -> Configuration:
    """Loads a configuration from a file (a Path) or from text. `plugins` are those that are built or installed.

    Raises InvalidConfiguration with all problems.
    """
    file = str(source) if isinstance(source, Path) else ""
    try:
        document, settled, catalogue, problems = _examined(source, plugins)
    except InvalidConfiguration as error:  # it could not be read as a configuration at all
        raise InvalidConfiguration(error.problems, file) from None
    if problems:
        raise InvalidConfiguration(problems, file)
    notes = FieldPath()
    validate_document.warn(document, notes)
    validate_profiles.warn(settled, catalogue, notes["profiles"])
    return Configuration(
        document=with_defaults(document, settled),
        profiles=tuple(to_profile(draft, catalogue) for draft in settled),
        args={draft.name: {name: as_plugin_args(args) for name, args in draft.args.items()} for draft in settled},
        notes=tuple(notes.found),
    )


def validate(source: Source, plugins: Mapping[str, Factory]) -> list[FieldError]:
    """Returns all problems of a configuration; none if it can be used."""
    try:
        load(source, plugins)
    except InvalidConfiguration as error:
        return list(error.problems)
    return []


def defaults(plugins: Mapping[str, Factory]) -> Configuration:
    """Returns the default configuration."""
    return load(f"apiVersion: {VERSION}\nkind: {KIND}\n", plugins)


def to_yaml(document: KubeSchedulerConfiguration) -> str:
    """Returns a document as YAML, without empty values."""
    data = _without_empty(as_data(document))
    return str(yaml.safe_dump(data, sort_keys=False, default_flow_style=False, allow_unicode=True, width=120))


def _examined(
    source: Source, plugins: Mapping[str, Factory]
) -> tuple[KubeSchedulerConfiguration, list[EffectiveProfile], Catalogue, list[FieldError]]:
    shape, judged, catalogue = FieldPath(), FieldPath(), Catalogue(plugins)
    data = _identified(parse_yaml(_text(source), shape))
    document = decode_struct(data, KubeSchedulerConfiguration, shape)
    settled = effective_profiles(document, catalogue, shape)
    validate_document.validate(document, judged)
    validate_profiles.validate(settled, catalogue, judged["profiles"])
    misfits = {problem.path for problem in shape.found}
    return (
        document,
        settled,
        catalogue,
        [*shape.found, *(each for each in judged.found if not _is_echo(each.path, misfits))],
    )


def _text(source: Source) -> str | bytes:
    if not isinstance(source, Path):
        return source
    try:
        with source.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise KubeNexusError(f"cannot read {source}: {error.strerror}") from error


def _identified(data: Any) -> dict[str, Any]:
    """Returns the data if it claims to be a configuration. Raises otherwise: every line of another document would be
    wrong."""
    place = FieldPath()
    if not isinstance(data, dict):
        place.report("the file is empty" if data is None else "must be a map")
    else:
        for field, expected in (("apiVersion", VERSION), ("kind", KIND)):
            if not data.get(field):
                place[field].required(f'must be "{expected}"')
            elif data[field] != expected:
                place[field].unsupported(data[field], [expected])
    if place.found:
        raise InvalidConfiguration(place.found)
    return dict(data)


def _is_echo(path: str, misfits: set[str]) -> bool:
    """Returns whether a problem concerns the default that replaces a mismatch, there or further out."""
    while path and path not in misfits:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return bool(path)


def _without_empty(data: Any) -> Any:
    """Returns data without empty sets and texts; arguments of plugins stay as they are."""
    if isinstance(data, dict):
        kept = {key: value if key == "args" else _without_empty(value) for key, value in data.items()}
        return {key: value for key, value in kept.items() if value not in ({}, [], "")}
    return [_without_empty(value) for value in data] if isinstance(data, list) else data
