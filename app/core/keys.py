"""How conversations are named: places, and the sessions of agents in them.

A key is a value with fields. Only this module glues the fields into text and takes text apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.errors import NotFound

AGENT_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
SERVICES = ("slack", "github", "linear", "web")


@dataclass(frozen=True, slots=True)
class PlaceKey:
    """Where people talk, without any agent: `slack:C1:1700.1`, `github:o/r:7`, `web:t1`."""

    service: str
    name: str

    @property
    def area(self) -> PlaceKey | None:
        """What holds this place and others like it: a Slack channel, a Linear team; None if none.

        An area is named as places are, but nobody talks in it.
        """
        match self.service:
            case "slack":
                name, _, rest = self.name.partition(":")
                is_within = bool(rest)
            case "linear":
                name, _, number = self.name.partition("-")
                is_within = number.isdecimal()  # where there is no issue, the name is a UUID
            case _:
                return None
        return PlaceKey(self.service, name) if is_within else None

    def __str__(self) -> str:
        return f"{self.service}:{self.name}"


@dataclass(frozen=True, slots=True)
class SessionKey:
    """One agent's conversation as its service names it: `slack:C1:1700.1:codex`."""

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
        """Take a formatted key apart; service and agent never hold a colon, the middle may.

        Raises:
            NotFound: the text is no session key.
        """
        service, first, rest = text.partition(":")
        external, last, agent = rest.rpartition(":")
        if not (
            first and last and external and service in SERVICES and AGENT_NAME.fullmatch(agent)
        ):
            raise NotFound("session", text)
        return cls(service, external, agent)


def adapter_name(service: str, agent: str) -> str:
    """Name one agent's presence on one service."""
    return f"{service}:{agent}"
