"""What the API works on, handed in by whoever joins the parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.intake.reader import Intake
from app.core.intake.reception import Reception
from app.core.ports import Clock
from app.core.repo_provider import RepoProvider
from app.core.session_manager import SessionManager
from app.core.stores.inbox import DeliveryStore
from app.core.stores.sessions import PostStore, SessionStore, TranscriptStore, TurnStore
from app.server.door import Door
from app.server.installations import Installations
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
    checkout: str = ""
    """What settings in a checkout can do to it."""
    services: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    """What a newcomer may say to it."""


@dataclass(frozen=True, slots=True)
class MissingAgent:
    """A known agent that is not on this machine."""

    title: str
    install: str
    """The command that installs it."""


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
    reception: Reception
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
    door: Door
    uploads: Path
    """Where attachments are kept."""
    admin_token: str
    ready: Callable[[], Awaitable[Sequence[Check]]]
    installs: Installations
    missing: Sequence[MissingAgent] = ()
    workspaces: RepoProvider | None = None
    troubles: Callable[[], Mapping[str, str]] = dict
    """Says of each adapter that listens what is wrong with it; nothing, if nothing is."""


def parts_of(request: Request) -> Parts:
    """Find the parts of the bridge that serves a request."""
    parts: Parts = request.app.state.parts
    return parts


PartsOf = Annotated[Parts, Depends(parts_of)]
