"""Facts about why a turn failed, kept with its last row; each surface words them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from app.errors import (
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

LOG_CHARACTERS = 8_000
"""What is kept of an agent's stderr: the end of a long traceback."""
MESSAGE_CHARACTERS = 2_000

FailureKind = Literal[
    "crashed",
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
    (AgentRefused, "refused"),
    (AgentTimedOut, "timed_out"),
    (AgentMisbehaved, "misbehaved"),
    (AgentNotStarted, "not_started"),
    (AgentStopped, "over_limits"),
    (RepositoryError, "repository"),
)


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
    )
