"""Archives what a removed agent leaves: its home and its files, for the operator alone.

Only that agent itself ever gets them back.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

_KINDS: Final = {"homes": "", "agents": ".files"}
"""Folders that have one for each agent, and how its name ends in the archive."""
_DAY: Final = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"


def archive(shared_dir: Path, agent: str, now: float) -> None:
    """Move an agent's home and its files to the archive; safe to repeat."""
    folder = shared_dir / "archive"
    day = datetime.fromtimestamp(now, UTC).date().isoformat()
    for kind, ending in _KINDS.items():
        own = shared_dir / kind / agent
        if own.is_dir() and not own.is_symlink():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # An id is given once, so there is no other of this name.
            own.rename(folder / f"{agent}-{day}{ending}")


def restore(shared_dir: Path, agent: str) -> None:
    """Give an agent that is back its own home and files."""
    for kind, ending in _KINDS.items():
        own = shared_dir / kind / agent
        found = sorted((shared_dir / "archive").glob(f"{agent}-{_DAY}{ending}"))
        if found and not own.exists():
            own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            found[-1].rename(own)
