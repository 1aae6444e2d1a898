"""Builds a child's environment: an allow-list of the bridge's own, plus the agent's variables.

A name that is not listed here is never passed on, however harmless it looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from app.config.network import AUTHORITIES

MARKER: Final = "AGENT_BRIDGE_PROCESS"
"""Inherited by every descendant: it identifies a process that left its group."""

_PLAIN: Final = frozenset({"PATH", "LANG", "TZ", "TERM", "USER", "LOGNAME", "SHELL"})
CERTIFICATES: Final = frozenset({*AUTHORITIES, "SSL_CERT_DIR"})
_PROXY_NAMES: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})
PROXIES: Final = _PROXY_NAMES | {name.lower() for name in _PROXY_NAMES}
_ALLOWED: Final = _PLAIN | CERTIFICATES | PROXIES

# They point into the user's HOME, so they are right only for an agent with that HOME.
_FOLDERS: Final = frozenset(
    {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"}
)


def agent_environment(
    base: Mapping[str, str], *, home: Path, own: Mapping[str, str], marker: str
) -> dict[str, str]:
    """Return a child's whole environment; `own` wins, but not over HOME and the marker.

    TMPDIR is left out: inside the sandbox `/tmp` is the agent's own, and any other folder is
    read-only or missing.
    """
    lives_with_person = base.get("HOME") == str(home)
    allowed = _ALLOWED | _FOLDERS if lives_with_person else _ALLOWED
    chosen = {
        name: value for name, value in base.items() if name in allowed or name.startswith("LC_")
    }
    return chosen | dict(own) | {"HOME": str(home), MARKER: marker}
