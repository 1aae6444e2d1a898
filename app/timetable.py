"""Works out the times of cron expressions, in the local time of a zone.

Around a change of the clocks it does what Debian's cron does: a fixed time that the clocks skip
runs right after the gap, one that they repeat runs once, and rules for every hour or every few
minutes follow the time that passes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from app.errors import Conflict

FIELDS: Final = 5
LOCALTIME: Final = Path("/etc/localtime")
UTC: Final = "UTC"


class CronTimetable:
    """The timetable port on cronsim."""

    def times(self, expression: str, zone: str, after: float) -> Iterator[float]:
        """Yield the times after a moment, strictly increasing.

        Raises:
            Conflict: the expression or the zone makes no sense.
        """
        if len(expression.split()) != FIELDS:
            raise Conflict(
                f"{expression!r} is not a cron expression: minute, hour, day of the month, month "
                "and day of the week"
            )
        begin = datetime.fromtimestamp(after, find_zone(zone))
        try:
            found = CronSim(expression, begin)
        except CronSimError as error:
            field = str(error).removeprefix("Bad ")
            raise Conflict(f"{expression!r} is not a cron expression: check the {field}") from None
        return _increase(found, after)


def _increase(found: CronSim, after: float) -> Iterator[float]:
    """Leave out what is not later: an hour that the clocks repeat has each local time twice."""
    last = after
    for moment in found:
        at = moment.timestamp()
        if at > last:
            yield at
            last = at


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
