"""Decides by name and port what an agent may connect to; pure.

Addresses are checked later, once a name is resolved: a name that is not allowed is never looked up,
since a lookup alone can leak data.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from app.config.network import HostPattern, is_address

Mode = Literal["open", "restricted", "none"]

MAIL_PORT: Final = 25
"""Closed unless listed: it is for mail servers, and a machine that sends spam is blocked."""


class Reach(Enum):
    """How far a connection may go."""

    INTERNET = "internet"
    """To public addresses."""
    ANYWHERE = "anywhere"
    """To private addresses as well: the operator listed this host with this port."""


class Refused(Exception):
    """A destination is not allowed; carries the reason."""

    def __init__(self, reason: str, *, can_be_asked: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.can_be_asked = can_be_asked


@dataclass(frozen=True, slots=True)
class Rules:
    """What one agent may connect to."""

    mode: Mode
    hosts: tuple[HostPattern, ...] = ()

    def reach(self, host: str, port: int) -> Reach:
        """Return how far a connection may go.

        Raises:
            Refused: it may not be made.
        """
        listed = [pattern for pattern in self.hosts if pattern.covers(host, port)]
        if any(pattern.port is not None for pattern in listed):
            return Reach.ANYWHERE
        if port == MAIL_PORT:
            raise Refused("agents cannot send mail")
        if self.mode == "open" or listed:
            return Reach.INTERNET
        raise Refused("not on this agent's list", can_be_asked=not is_address(host))
