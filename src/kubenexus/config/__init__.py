"""`KubeSchedulerConfiguration` as it is: read, checked with all problems at once, and turned into profiles as data.

This room holds no rules of scheduling. It knows the names of plugins, their points and their arguments, so that a file
made for kube-scheduler loads here; what is built is told by the registry that is handed in.
"""

from kubenexus.config.field_errors import FieldError, InvalidConfiguration
from kubenexus.config.load import Configuration, defaults, load, to_yaml, validate

__all__ = ["Configuration", "FieldError", "InvalidConfiguration", "defaults", "load", "to_yaml", "validate"]
