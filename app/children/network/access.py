"""Decides on each destination of one child, asks people, and tells them what was refused.

A host that people allow stays allowed for the session; they are asked about each host once.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, Protocol

from app.config.network import HostPattern, is_address
from app.tasks import Tasks

Mode = Literal["open", "restricted", "none"]

MAIL_PORT: Final = 25
"""Closed unless listed: it is for mail servers, and a machine that sends spam is blocked."""
logger = logging.getLogger(__name__)

_HOLD_SECONDS: Final = 60.0
"""How long a connection waits for a person: clients time out after one or two minutes."""
_OPEN_ASKS: Final = 3
"""More questions at a time would bury the conversation."""
_NOTES: Final = 40
"""Refused hosts shown per process; the log has more."""
_LOGGED: Final = 1_000
"""Refused hosts logged per session: an agent can make up any number of names."""


class NetworkReach(Enum):
    """How far a connection may go."""

    INTERNET = "internet"
    """To public addresses."""
    ANYWHERE = "anywhere"
    """To private addresses as well: the operator listed this host with this port."""


class DestinationRefused(Exception):
    """A destination is not allowed; carries the reason."""

    def __init__(self, reason: str, *, can_be_asked: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.can_be_asked = can_be_asked


@dataclass(frozen=True, slots=True)
class NetworkRules:
    """What one agent may connect to."""

    mode: Mode
    hosts: tuple[HostPattern, ...] = ()

    def reach(self, host: str, port: int) -> NetworkReach:
        """Return how far a connection may go.

        Raises:
            Refused: it may not be made.
        """
        listed = [pattern for pattern in self.hosts if pattern.covers(host, port)]
        if any(pattern.port is not None for pattern in listed):
            return NetworkReach.ANYWHERE
        if port == MAIL_PORT:
            raise DestinationRefused("agents cannot send mail")
        if self.mode == "open" or listed:
            return NetworkReach.INTERNET
        raise DestinationRefused("not on this agent's list", can_be_asked=not is_address(host))


@dataclass(frozen=True, slots=True)
class SessionHosts:
    """Hosts that one session tried, kept while its process comes and goes."""

    granted: set[str] = field(default_factory=set)
    """People allowed them."""
    refused: set[tuple[str, str]] = field(default_factory=set)
    """They are in the log, each with the reason."""


class Witness(Protocol):
    """Tells people about one agent's network."""

    async def note(self, words: str) -> None:
        """Add a note to the transcript."""
        ...

    async def ask(self, host: str, port: int) -> bool | None:
        """Let a person decide on a host; None if there is no one to ask or no decision."""
        ...


class NoWitness:
    """Says nothing: refusals are only logged."""

    async def note(self, words: str) -> None:
        """Do nothing."""

    async def ask(self, host: str, port: int) -> bool | None:  # noqa: ARG002
        """Return no decision."""
        return None


class NetworkAccess:
    """What one child may connect to."""

    def __init__(self, rules: NetworkRules, hosts: SessionHosts, tasks: Tasks) -> None:
        self._rules = rules
        self._hosts = hosts
        self._tasks = tasks
        self._rejected: set[str] = set()
        self._noted: set[tuple[str, str]] = set()
        self._asks: dict[str, asyncio.Task[None]] = {}
        self.witness: Witness = NoWitness()

    async def reach(self, host: str, port: int) -> NetworkReach:
        """Return how far a connection may go; wait for a person if one may allow it.

        Raises:
            Refused: it may not be made.
        """
        try:
            return self._rules.reach(host, port)
        except DestinationRefused as refusal:
            if refusal.can_be_asked and (
                host in self._hosts.granted or await self._ask(host, port)
            ):
                return NetworkReach.INTERNET
            raise

    async def refused(self, host: str, port: int, reason: str) -> None:
        """Log a refusal and tell people, once per host and reason."""
        self._log(host, port, reason)
        if (host, reason) in self._noted or len(self._noted) >= _NOTES:
            return
        self._noted.add((host, reason))
        await self.witness.note(f"Network: refused {host}:{port}, {reason}.")

    def _log(self, host: str, port: int, reason: str) -> None:
        logged = self._hosts.refused
        if (host, reason) in logged or len(logged) >= _LOGGED:
            return
        logged.add((host, reason))
        logger.info("network: refused %s:%d, %s", host, port, reason)
        if len(logged) == _LOGGED:
            logger.warning(
                "network: too many refused hosts; no longer logging them for this session"
            )

    async def _ask(self, host: str, port: int) -> bool:
        if host in self._rejected:
            return False
        if host not in self._asks:
            if len(self._asks) >= _OPEN_ASKS:
                return False
            self._asks[host] = self._tasks.start(self._decide(host, port), name=f"ask {host}")
        decided, _ = await asyncio.wait([self._asks[host]], timeout=_HOLD_SECONDS)
        return bool(decided) and host in self._hosts.granted

    async def _decide(self, host: str, port: int) -> None:
        """Keep a person's answer, even if the connection no longer waits for it."""
        try:
            answer = await self.witness.ask(host, port)
        finally:
            del self._asks[host]
        if answer is not None:
            (self._hosts.granted if answer else self._rejected).add(host)
