"""CEL expressions that select devices, as in DeviceClasses and ResourceClaims.

The language itself is a library (ADR 16). This package adds what Kubernetes adds to it: the variable `device`, and the
functions of quantities, versions and IP addresses. It also bounds the work of an expression before it runs.
"""
