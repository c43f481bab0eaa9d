"""Command-line flags, and their effect on the configuration: a flag overrides the file."""

import re
from typing import Any

import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.config import Configuration, InvalidConfiguration
from kubenexus.config.field_errors import FieldPath
from kubenexus.config.v1 import KubeSchedulerConfiguration
from kubenexus.config.validate_document import validate

_LABEL_NAME = re.compile(r"(?=.{1,63}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """The command-line flags. None or "" means that the flag is not given. `leader_election` has the fields of
    `leaderElection` in the configuration that are given as flags."""

    scheduler_name: str = ""
    leader_election: dict[str, Any] = {}
    bind_address: str = "0.0.0.0"
    secure_port: int = 10259
    health_bind_address: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""


def apply_flags(configuration: Configuration, flags: Flags) -> Configuration:
    """Returns the configuration with all flags applied. Raises KubeNexusError if a flag is invalid."""
    if flags.scheduler_name:
        _check_scheduler_name(flags.scheduler_name)
        configuration = _rename_profile(configuration, flags.scheduler_name)
    document = configuration.document
    if flags.leader_election:
        election = msgspec.structs.replace(document.leader_election, **flags.leader_election)
        document = msgspec.structs.replace(document, leader_election=election)
        _validate(document)
    if bool(flags.tls_cert_file) != bool(flags.tls_private_key_file):
        raise KubeNexusError("--tls-cert-file and --tls-private-key-file belong together")
    return msgspec.structs.replace(configuration, document=document)


def _validate(document: KubeSchedulerConfiguration) -> None:
    root = FieldPath()
    validate(document, root)
    if root.found:
        raise InvalidConfiguration(root.found)


def _check_scheduler_name(name: str) -> None:
    """Raises KubeNexusError for a name that the API server does not accept as `reportingController` of events."""
    prefix, slash, last = name.rpartition("/")
    if not _LABEL_NAME.fullmatch(last) or (slash and not _SUBDOMAIN.fullmatch(prefix)):
        raise KubeNexusError(f'--scheduler-name: "{name}" is not a qualified name such as kubenexus-scheduler')


def _rename_profile(configuration: Configuration, name: str) -> Configuration:
    if len(configuration.profiles) != 1:
        raise KubeNexusError(f"--scheduler-name: the configuration has {len(configuration.profiles)} profiles, not one")
    (profile,), document = configuration.profiles, configuration.document
    renamed = msgspec.structs.replace(document.profiles[0], scheduler_name=name)
    return msgspec.structs.replace(
        configuration,
        document=msgspec.structs.replace(document, profiles=[renamed]),
        profiles=(msgspec.structs.replace(profile, name=name),),
        args={name: configuration.args[profile.name]},
    )
