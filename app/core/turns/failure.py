"""Says why a turn failed, or what keeps its agent from working though nothing is broken; pure.

Only what agents were seen to say is recognised: an error that is taken for a limit hides a failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from app.errors import (
    AgentCutOff,
    AgentDied,
    AgentError,
    AgentMisbehaved,
    AgentNotStarted,
    AgentRefused,
    AgentStopped,
    AgentTimedOut,
    BridgeError,
    RepositoryError,
)
from app.model import wording
from app.model.asks import PAUSE_OPTIONS
from app.model.updates import AskRequest

LOG_CHARACTERS = 8_000
"""What is kept of an agent's stderr: the end of a long traceback."""
MESSAGE_CHARACTERS = 2_000

FailureKind = Literal[
    "crashed",
    "cut_off",
    "refused",
    "timed_out",
    "misbehaved",
    "not_started",
    "over_limits",
    "overdue",
    "unasked",
    "repository",
    "bridge",
]

_KINDS: tuple[tuple[type[BridgeError], FailureKind], ...] = (
    (AgentDied, "crashed"),
    (AgentCutOff, "cut_off"),
    (AgentRefused, "refused"),
    (AgentTimedOut, "timed_out"),
    (AgentMisbehaved, "misbehaved"),
    (AgentNotStarted, "not_started"),
    (AgentStopped, "over_limits"),
    (RepositoryError, "repository"),
)
LONGEST_WORDS = 600
"""A longer answer, in characters, is not just an error: agents explain limits in one line."""
LONGEST_WAIT_SECONDS = 32 * 86400.0
"""Limits reset at least once a month; a longer time is not a reset time."""
AUTH_REQUIRED = -32000
"""ACP's error code for it."""
TOO_MANY_REQUESTS = 429
"""Some agents pass on the HTTP status."""
_LIMIT_KINDS = ("rate_limit", "usage_limit", "rate_limit_error", "overloaded", "quota_exceeded")
_LOGIN_KINDS = ("authentication_failed", "auth_required", "authentication_error", "oauth_expired")
_LIMIT = re.compile(
    r"(usage|rate|session|weekly|request|token)[ _-]limit (is |was |has been )?"
    r"(reached|exceeded|hit)|(hit|reached|exceeded) your [\w ]*\blimit\b|rate limited|too many"
    r" requests|quota (is |was |has been )?(exceeded|exhausted|reached)|exceeded your"
    r" (current )?quota|resource has been exhausted|limit reached",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"authentication required|please run /login|not logged in|please (log|sign) in\b|invalid api"
    r" key|(oauth|access) token (has )?expired|log-?in required|no api key",
    re.IGNORECASE,
)
_SPOKEN_ERROR = re.compile(
    r"\W*(error\b|you'?ve (hit|reached)|claude ai usage limit)", re.IGNORECASE
)
_EPOCH = re.compile(r"\|(\d{10})\b")
_SPAN = re.compile(
    r"(?:in|after|retry-after:?)\s+((?:\d+(?:\.\d+)?\s*"
    r"(?:days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:resets?|again)\s+(?:at\s+|on\s+)?"
    r"(?:(?P<month>[a-z]{3})[a-z]*\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+"
    r"(?:(?P<year>\d{4}),?\s+)?(?:at\s+)?)?"
    r"(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>[0-5]\d))?\s*(?P<half>[ap])\.?m\b\.?"
    r"(?:\s*\((?P<zone>[\w/+-]{2,40})\))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])", re.IGNORECASE)
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a turn failed."""

    kind: FailureKind
    message: str = ""
    """The cause in its own words, without the name of the agent or a code."""
    status: int | None = None
    """How the process ended; a signal is negative."""
    code: int | None = None
    """The code of the agent's own error."""
    log: str = ""
    """The end of what the agent wrote to stderr."""
    reason: str = ""
    """The kind of error that the agent names."""

    def data(self, redact: Callable[[str], str]) -> dict[str, Any]:
        """Write it for the transcript: without secrets, and no longer than it may be."""
        kept = asdict(self)
        kept["message"] = redact(self.message)[:MESSAGE_CHARACTERS]
        # Redacted before it is cut: half a secret would not be recognised.
        kept["log"] = redact(self.log)[-LOG_CHARACTERS:]
        return {name: value for name, value in kept.items() if value not in {None, ""}}


def failure_of(error: Exception) -> Failure:
    """Read the facts from an error."""
    known = [kind for cls, kind in _KINDS if isinstance(error, cls)]
    message = error.message if isinstance(error, AgentRefused) else str(error)
    return Failure(
        kind=known[0] if known else "bridge",
        message="" if isinstance(error, AgentDied) else message or type(error).__name__,
        status=error.status if isinstance(error, AgentDied) else None,
        code=error.code if isinstance(error, AgentRefused) else None,
        log=error.log if isinstance(error, AgentError) else "",
        reason=reason_of(error.data) if isinstance(error, AgentRefused) else "",
    )


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why an agent cannot work now, though nothing is broken."""

    kind: Literal["limited", "login"]
    until: float | None = None
    """When it is over, in seconds since 1970; None if unknown."""


def obstacle(code: int, message: str, data: object, now: float) -> Obstacle | None:
    """Recognise an agent's error that is not about its work."""
    facts: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    reason = reason_of(data)
    said = "" if reason else message  # words are only read where there is no field
    if reason in _LIMIT_KINDS or code == TOO_MANY_REQUESTS or _LIMIT.search(said):
        return Obstacle("limited", _until(message, facts, now))
    if reason in _LOGIN_KINDS or code == AUTH_REQUIRED or _LOGIN.search(said):
        return Obstacle("login")
    return None


def reason_of(data: object) -> str:
    """Return the kind of error that an agent names; empty if it names none."""
    kind = data.get("errorKind") if isinstance(data, Mapping) else None
    return kind if isinstance(kind, str) and kind != "unknown" else ""


def spoken_obstacle(words: str, now: float) -> Obstacle | None:
    """Recognise an answer that is nothing but such an error."""
    words = words.strip()
    if len(words) > LONGEST_WORDS or not _SPOKEN_ERROR.match(words):
        return None
    return obstacle(0, words, None, now)


def pause(agent: str, found: Obstacle, now: float, *, resumes: bool, name: str = "") -> AskRequest:
    """Ask whether a turn that its provider stopped should go on; people call the agent `name`."""
    if found.kind == "login":
        words = wording.NOT_SIGNED_IN.format(agent=name or agent, name=agent)
    else:
        until = wording.limit_reset(found.until, now, resumes=resumes)
        words = wording.LIMITED.format(agent=name or agent, until=until)
    return AskRequest(found.kind, words, PAUSE_OPTIONS, kind="pause", until=found.until)


def _until(message: str, facts: Mapping[str, Any], now: float) -> float | None:
    found = [
        _moment(facts.get("resetsAt")),
        _after(facts.get("retryAfterSeconds"), now),
        _after(facts.get("retryAfter"), now),
        _moment(match[1]) if (match := _EPOCH.search(message)) else None,
        _after(_seconds(match[1]), now) if (match := _SPAN.search(message)) else None,
        _on_the_clock(match, now) if (match := _CLOCK.search(message)) else None,
    ]
    return next(
        (at for at in found if at is not None and now <= at <= now + LONGEST_WAIT_SECONDS), None
    )


def _moment(value: object) -> float | None:
    if isinstance(value, str) and not value.isdecimal():
        try:
            return datetime.fromisoformat(value).astimezone(UTC).timestamp()
        except (ValueError, OverflowError):
            return None
    number = _number(value)
    # Milliseconds, as JavaScript counts.
    return number / 1000 if number is not None and number > 1e11 else number


def _on_the_clock(said: re.Match[str], now: float) -> float | None:
    """Read a time of day, with or without its date: the next one to come.

    Agents mean the clock of the machine they run on unless they name a time zone.
    """
    try:
        zone = ZoneInfo(said["zone"]) if said["zone"] else None
        here = datetime.fromtimestamp(now, UTC).astimezone(zone)
        moment = here.replace(
            hour=int(said["hour"]) % 12 + 12 * (said["half"].lower() == "p"),
            minute=int(said["minute"] or 0),
            second=0,
            microsecond=0,
        )
        if said["month"] is None:
            return (moment if moment >= here else moment + timedelta(days=1)).timestamp()
        dated = moment.replace(
            year=int(said["year"] or here.year),
            month=_MONTHS.index(said["month"].lower()) + 1,
            day=int(said["day"]),
        )
        if said["year"] is None and dated < here:
            dated = dated.replace(year=here.year + 1)
        return dated.timestamp()
    except (ValueError, OverflowError, LookupError):
        return None  # no such time, or no such zone


def _after(value: object, now: float) -> float | None:
    number = _number(value)
    return None if number is None else now + number


def _number(value: object) -> float | None:
    if isinstance(value, str) and value.isdecimal():
        value = int(value[:20])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e15 else None


def _seconds(span: str) -> float:
    return sum(float(count) * _UNITS[unit.lower()] for count, unit in _PART.findall(span))
