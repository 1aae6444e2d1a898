"""Names this process among the bridges that share a database."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

NAME_FILE = "member"
HOST_CHARACTERS = 24
"""Of a member's name: with the rest it fits into the name of a channel of PostgreSQL."""


def read_name(data_dir: Path) -> str:
    """Return the name of the member that works in a DATA_DIR; it stays the same for good."""
    file = data_dir / NAME_FILE
    name = file.read_text().strip() if file.exists() else ""
    if not name:
        name = f"{socket.gethostname()[:HOST_CHARACTERS]}-{secrets.token_hex(4)}"
        file.write_text(name)
    return name
