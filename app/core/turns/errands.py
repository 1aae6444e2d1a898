"""Tells an agent what became of what it asked of others, and for whom it works itself."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.delegation import wording
from app.core.delegation.delegations import cut
from app.core.turns.turn_context import TurnContext
from app.model.types import OPEN_TURN_STATES, Session, Turn


@dataclass(frozen=True, slots=True)
class Errands:
    """What an agent is told about delegations before its turn."""

    notes: tuple[str, ...] = ()
    """Lines by the bridge."""
    data: tuple[tuple[str, str], ...] = ()
    """Answers of other agents, each with its origin."""
    told: tuple[int, ...] = ()
    """The delegations whose end it knows then."""


def recall_errands(context: TurnContext, session: Session, turn: Turn) -> Errands:
    """Gather what a turn has to be told: answers that its agent does not know yet.

    A turn that was cut off is told of all its calls, so that it repeats none.
    """
    notes: list[str] = []
    data: list[tuple[str, str]] = []
    told: list[int] = []
    if (cause := context.stores.delegations.of_turn(turn.id)) is not None:
        caller = context.stores.sessions.session(cause.caller_session)
        if cause.caller_turn is not None and caller is not None:
            agent = context.name_of(caller.key.agent)
            notes.append(wording.FOR.format(agent=agent, person=cause.person.name))
    for each in context.stores.delegations.untold(session.id, turn.id):
        what = {"agent": context.name_of(each.agent), "id": each.id, "task": wording.brief(each)}
        if each.state in OPEN_TURN_STATES:
            notes.append(wording.STILL_WORKS.format(**what))
            continue
        answer = context.stores.delegations.answer(each)
        told.append(each.id)
        notes.append(wording.ENDS[each.state].format(**what))
        text = context.vault.redact("\n".join(filter(None, (answer.text, answer.problem))))
        if text:
            data.append((wording.ANSWER_OF.format(**what), cut(text)))
    return Errands(tuple(notes), tuple(data), tuple(told))
