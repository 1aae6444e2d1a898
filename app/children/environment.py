"""The environment of a child: an allow-list of the bridge's own, plus what is the agent's.

A name that is not listed here is never handed on, however harmless it looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

MARKER: Final = "AGENT_BRIDGE_PROCESS"
"""Inherited by every descendant: by it a process is known that left its group."""

_PLAIN: Final = frozenset({"PATH", "LANG", "TZ", "TERM", "USER", "LOGNAME", "SHELL"})
_CERTIFICATES: Final = frozenset({"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"})
_PROXIES: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})
_ALLOWED: Final = _PLAIN | _CERTIFICATES | _PROXIES | {name.lower() for name in _PROXIES}

# They point into the person's HOME, so they are right only for an agent that lives there.
_FOLDERS: Final = frozenset(
    {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"}
)


def agent_environment(
    base: Mapping[str, str], *, home: Path, own: Mapping[str, str], marker: str
) -> dict[str, str]:
    """Return all that a child of the bridge may know; `own` wins, but not over HOME and marker.

    TMPDIR is left out: inside the sandbox `/tmp` is the agent's own, and any other folder is
    read-only or missing.
    """
    lives_with_person = base.get("HOME") == str(home)
    allowed = _ALLOWED | _FOLDERS if lives_with_person else _ALLOWED
    chosen = {
        name: value for name, value in base.items() if name in allowed or name.startswith("LC_")
    }
    return chosen | dict(own) | {"HOME": str(home), MARKER: marker}
