"""Opens the unix socket in DATA_DIR through which commands on this machine reach the bridge.

Only the owner of DATA_DIR can place a socket there, so the program that answers is the bridge:
commands send the admin token nowhere else.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from app.errors import ConfigurationError

SOCKET_NAME: Final = "bridge.sock"
SOCKET_HOST: Final = "bridge.invalid"
"""The Host header of requests over the socket: no browser can send it, as the name never resolves
(RFC 6761)."""
_MAX_PATH_BYTES: Final = 100
"""The kernel takes 107 on Linux and 103 on macOS."""
_BACKLOG: Final = 128


@contextmanager
def socket_path(data_dir: Path) -> Iterator[str]:
    """Name the socket of a data folder in a way that fits into a socket address."""
    path = data_dir / SOCKET_NAME
    if len(os.fsencode(path)) <= _MAX_PATH_BYTES:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="agent-bridge-") as folder:
        link = Path(folder) / "data"
        link.symlink_to(data_dir)
        yield str(link / SOCKET_NAME)


def bind_local(data_dir: Path) -> socket.socket:
    """Bind the socket of a data folder, for its owner only; the caller holds the folder's lock.

    Raises:
        ConfigurationError: the file system has no sockets.
    """
    # An old socket is left from a bridge that died: the lock proves that no other one runs.
    (data_dir / SOCKET_NAME).unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(OSError):  # macOS refuses it; there the umask is all that holds meanwhile
            os.fchmod(bound.fileno(), 0o600)  # bind gives the file this mode, so it is never wider
        with socket_path(data_dir) as path:
            bound.bind(path)
            Path(path).chmod(0o600)
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        raise ConfigurationError(
            "DATA_DIR",
            f"cannot hold the socket {SOCKET_NAME}: {error.strerror or error}",
            "Choose a folder on a local file system.",
        ) from error
    return bound
