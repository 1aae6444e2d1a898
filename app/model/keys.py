"""Keys of conversations: places, and the sessions of agents in them.

A key is a value with fields. Only this module formats the fields as text and parses text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from app.errors import NotFound

AGENT_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
SERVICE_NAME = re.compile(r"[a-z][a-z0-9]*")


@dataclass(frozen=True, slots=True)
class PlaceKey:
    """Where people talk, without any agent: `web:t1`, `chat:C1:1700.1`."""

    service: str
    name: str

    def __str__(self) -> str:
        return f"{self.service}:{self.name}"


AreaOf = Callable[[PlaceKey], PlaceKey | None]
"""Names what holds a place and others like it, such as the channel of a thread; None if nothing.

An area is named like a place, but holds no conversation.
"""


def no_area(_place: PlaceKey) -> None:
    """Give no place an area."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """One agent's conversation as its service names it: `chat:C1:1700.1:codex`."""

    service: str
    external: str
    agent: str

    @property
    def adapter(self) -> str:
        """The agent-qualified name of the adapter that reaches this conversation."""
        return adapter_name(self.service, self.agent)

    def __str__(self) -> str:
        return f"{self.service}:{self.external}:{self.agent}"

    @classmethod
    def parse(cls, text: str) -> SessionKey:
        """Parse a formatted key; service and agent never hold a colon, the middle may.

        Raises:
            NotFound: the text is not a session key.
        """
        service, first, rest = text.partition(":")
        external, last, agent = rest.rpartition(":")
        parts = first and last and external
        if not (parts and SERVICE_NAME.fullmatch(service) and AGENT_NAME.fullmatch(agent)):
            raise NotFound("session", text)
        return cls(service, external, agent)


def adapter_name(service: str, agent: str) -> str:
    """Name one agent's presence on one service."""
    return f"{service}:{agent}"
