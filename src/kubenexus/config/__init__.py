"""`KubeSchedulerConfiguration`: decoded, checked with all problems reported at once, and turned into profiles.

This package has no rules of scheduling. It knows the names of plugins, their extension points and their arguments, so
that a file made for kube-scheduler loads. The caller passes the registry of plugins that are built.
"""

from kubenexus.config.field_errors import FieldError, InvalidConfiguration
from kubenexus.config.load import Configuration, defaults, load, to_yaml, validate

__all__ = ["Configuration", "FieldError", "InvalidConfiguration", "defaults", "load", "to_yaml", "validate"]
