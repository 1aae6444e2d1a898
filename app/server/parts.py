"""What the API works on, handed in by whoever joins the parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.intake.reader import Intake
from app.core.ports import (
    Clock,
    DeliveryStore,
    PostStore,
    SessionStore,
    TranscriptStore,
    TurnStore,
)
from app.core.session_manager import SessionManager
from app.server.metrics import Metrics


@dataclass(frozen=True, slots=True)
class AgentCard:
    """What the API tells of an agent."""

    name: str
    display_name: str
    description: str
    default: bool
    command: str
    isolation: str
    """How it is kept apart, in the words of the start-up probe."""
    services: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One part of being ready."""

    name: str
    ok: bool
    words: str = ""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a bridge that people reach over HTTP."""

    agents: Mapping[str, AgentCard]
    intake: Intake
    manager: SessionManager
    ledger: Ledger
    feed: Feed
    sessions: SessionStore
    turns: TurnStore
    transcript: TranscriptStore
    deliveries: DeliveryStore
    posts: PostStore
    clock: Clock
    metrics: Metrics
    admin_token: str
    ready: Callable[[], Awaitable[Sequence[Check]]]
