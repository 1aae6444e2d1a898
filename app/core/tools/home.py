"""Finds where an agent may read and speak: in the place where people asked for its work.

That is one place, never a further one of the same session. What an agent does for another one
began where a person asked the first: that person talks there and sees what is said there.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.core.tools import wording
from app.model.agents import Caller, ToolRefused
from app.model.delegation import SERVICE
from app.model.keys import SessionKey
from app.store.delegations import DelegationStore
from app.store.sessions import SessionStore
from app.store.turns import TurnStore


@dataclass(frozen=True, slots=True)
class HomePlace:
    """Where people asked for what an agent does now."""

    session: int
    turn: int | None
    surface: SessionKey
    is_own: bool
    """Whether people asked the agent itself."""


class Homes:
    """Finds the home of each call."""

    def __init__(
        self, delegations: DelegationStore, sessions: SessionStore, turns: TurnStore
    ) -> None:
        self._delegations = delegations
        self._sessions = sessions
        self._turns = turns

    def find(self, caller: Caller) -> HomePlace:
        """Tell where people asked for what an agent does now.

        Raises:
            ToolRefused: there is no such place any more.
        """
        session, turn = caller.session, caller.turn
        if turn.surface.service != SERVICE:
            return HomePlace(session.id, turn.id, turn.surface, is_own=True)
        delegation = self._delegations.of_turn(turn.id)
        root = None if delegation is None else self._sessions.session(delegation.root_session)
        if delegation is None or root is None:
            raise ToolRefused(wording.NO_PLACE)
        asked = None if delegation.root_turn is None else self._turns.turn(delegation.root_turn)
        surface = root.key if asked is None else asked.surface
        return HomePlace(root.id, delegation.root_turn, surface, is_own=False)
