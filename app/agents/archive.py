"""Archives what a removed agent leaves: its home, under a date, for the operator alone.

Only that agent itself ever gets it back.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path


def archive_home(data_dir: Path, agent: str, now: float) -> Path | None:
    """Move an agent's own home to the archive; returns where, None if it had none."""
    home = data_dir / "homes" / agent
    if not home.is_dir():
        return None
    folder = data_dir / "archive"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    day = datetime.fromtimestamp(now, UTC).date().isoformat()
    # An id is given once, so there is no other of this name.
    return home.rename(folder / f"{agent}-{day}")


def restore_home(data_dir: Path, agent: str) -> None:
    """Give an agent that is back its own home."""
    home = data_dir / "homes" / agent
    found = sorted((data_dir / "archive").glob(f"{agent}-[0-9][0-9][0-9][0-9]-*"))
    if found and not home.exists():
        found[-1].rename(home)
