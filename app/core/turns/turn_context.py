"""Bundles what every turn needs: stores, agents, the outbox and the operator's settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from app.core.base import Base
from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.files.attachments import Attachments
from app.core.files.outgoing import OutgoingFiles
from app.core.outbox import Outbox
from app.core.repo_provider import RepoProvider
from app.core.roster import Availabilities
from app.core.turns.agents import LiveAgents
from app.core.turns.limits import NO_LIMITS, DailyLimits, Estimate
from app.core.turns.place import ContextFinder, RepositoryChoice
from app.model.keys import PlaceKey
from app.model.posts import Verbosity
from app.store.commits.own_turns import OwnTurnLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext(Base):
    """What every turn needs."""

    live: LiveAgents
    workspaces: RepoProvider
    choice: RepositoryChoice
    attachments: Attachments
    outgoing: OutgoingFiles
    surroundings: ContextFinder
    ledger: Ledger
    outbox: Outbox
    feed: Feed
    check_room: Callable[[], Awaitable[None]]
    """Raises RepositoryError when the disk has no room for more work."""
    verbosity: Verbosity | None
    """How much a place sees by default; None leaves it to the service."""
    place_prompt: Callable[[PlaceKey], str]
    """What the operator adds to the first prompt of a conversation in a place."""
    availability: Availabilities
    """Is told how turns end, so that it is known which agents can work."""
    look: Callable[[int], None] = lambda _session: None
    """Has the state of a session's work read again, after a turn."""
    own_turns: OwnTurnLimits = OwnTurnLimits()  # noqa: RUF009 - frozen
    """How many turns agents may begin by themselves."""
    daily: DailyLimits = NO_LIMITS
    """What a day may cost."""
    estimate: Estimate = lambda _model, _tokens: None
    """Estimates what tokens cost where an agent does not say."""
