"""Tells the time; tests replace the clock to skip hours."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.errors import Conflict

LOCALTIME: Final = Path("/etc/localtime")
UTC: Final = "UTC"


class Clock(Protocol):
    """Time, so that a test can skip hours."""

    def now(self) -> float:
        """Tell the wall clock, in seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Tell a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """Tells the time of this machine."""

    def now(self) -> float:
        """Tell the wall clock, in seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Tell a clock that never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def find_zone(name: str) -> ZoneInfo:
    """Return a time zone.

    Raises:
        Conflict: there is none of this name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Conflict(f"there is no time zone {name!r}; one is Europe/Berlin") from None


def machine_zone(environment: Mapping[str, str]) -> str:
    """Return the time zone of this machine, UTC if it does not name one."""
    linked = os.path.realpath(LOCALTIME).partition("zoneinfo/")[2]
    for name in filter(None, (environment.get("TZ", "").removeprefix(":"), linked)):
        with suppress(Conflict):
            return find_zone(name).key
    return UTC
