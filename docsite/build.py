"""`make docs-site`: builds the site with strict links while no connection can be made, so that a build that needs the
network fails here and not on a machine without one.

python -m docsite.build
"""

import os
import socket
from typing import NoReturn

CONFIG = "mkdocs.yml"


class NoNetwork(OSError):
    """Something wanted to connect to another host while the site was built."""


def refuse(*arguments: object, **_: object) -> NoReturn:
    raise NoNetwork(f"the site is built without network, and something wants to reach {arguments[1:] or arguments}")


def cut_off() -> None:
    """Makes every connection and every look-up of a name in this process an error."""
    socket.socket.connect = refuse  # type: ignore[method-assign]
    socket.socket.connect_ex = refuse  # type: ignore[method-assign]
    socket.getaddrinfo = refuse
    socket.create_connection = refuse


def main() -> None:
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    from mkdocs.__main__ import cli

    cut_off()
    cli(["build", "--strict", "--quiet", f"--config-file={CONFIG}"])


if __name__ == "__main__":
    main()
