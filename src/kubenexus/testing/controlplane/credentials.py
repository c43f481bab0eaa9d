"""Credentials of a test control plane: tokens, a key for service accounts, kubeconfigs."""

import base64
import json
import secrets
from collections.abc import Mapping, Sequence

ADMIN = "admin"
# This group may do everything, regardless of roles.
MASTERS = "system:masters"

# An EC private key (RFC 5915) on the curve P-256 is its 32 bytes between two constants: version 1, and the curve's
# name. The public half may be left out; Go computes it. So a key needs no library.
_KEY_HEAD = bytes.fromhex("303102010104 20".replace(" ", ""))
_KEY_TAIL = bytes.fromhex("a00a06082a8648ce3d030107")


def signing_key() -> str:
    """Returns a fresh private key, as PEM."""
    # The first byte is 0: the number has to be below the order of the curve, and a test's key needs no 256 bits.
    number = b"\0" + secrets.token_bytes(31)
    text = base64.encodebytes(_KEY_HEAD + number + _KEY_TAIL).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{text}-----END EC PRIVATE KEY-----\n"


def token_file(tokens: Mapping[str, str], groups: Mapping[str, Sequence[str]]) -> str:
    """Returns the file for kube-apiserver's --token-auth-file: token, user, uid, groups."""
    return "".join(f'{token},{user},{user},"{",".join(groups[user])}"\n' for user, token in tokens.items())


def kubeconfig(server: str, authority: bytes, user: Mapping[str, object], name: str = ADMIN) -> str:
    """Returns a kubeconfig with one context. JSON is valid YAML."""
    inline = base64.b64encode(authority).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority-data": inline}}],
        "users": [{"name": name, "user": dict(user)}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": name}}],
        "current-context": "e2e",
    }
    return json.dumps(content, indent=2) + "\n"
