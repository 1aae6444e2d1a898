"""Writes what an agent is told at the beginning of a turn, from all that is known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.clock import persist
from app.core.turns.agents import LiveAgent
from app.core.turns.prompt import Asked, compose
from app.core.turns.workshop import Workshop
from app.core.types import Attachment, Entry, Session, Turn

HISTORY_ENTRIES = 60
"""What an agent is told of a conversation it lost: some thirty exchanges."""
BEGINNINGS = {"new", "lost"}
"""How a conversation came about that does not know yet where it is."""
MEMORY_LOST = (
    "The agent could not bring its conversation back, so it was given the transcript instead."
)


@dataclass(frozen=True, slots=True)
class Briefing:
    """What an agent is told."""

    prompt: str
    files: tuple[Attachment, ...]
    told: int
    """The last row of the transcript that it takes in."""
    note: str
    """What the place should know of it, if anything."""


async def brief(shop: Workshop, session: Session, turn: Turn, live: LiveAgent) -> Briefing:
    """Gather what a turn is about and write its prompt."""
    history = await _lost_history(shop, session, turn) if live.how == "lost" else ()
    messages = shop.turns.messages(turn.id)
    around = await shop.surroundings.gather(session, turn, messages)
    named = [*around.files, *(file for message in messages for file in message.files)]
    files = await shop.attachments.fetched(session, named)
    paths = await shop.workspaces.bring(session, files) if files else ()
    begins = live.how in BEGINNINGS
    prompt = compose(
        Asked(
            surface=turn.surface,
            messages=messages,
            files=paths,
            link=session.link,
            said=around.said,
            workspace=shop.workspaces.describe(session) if begins else None,
            outgoing=shop.workspaces.outgoing(session) if begins else None,
            place_prompt=shop.place_prompt(session.place) if begins else "",
            history=history,
            continued=turn.continued,
            answers=shop.ledger.late(turn.id),
        )
    )
    return Briefing(
        prompt=prompt,
        files=tuple(
            Attachment(path, file.media_type) for path, file in zip(paths, files, strict=True)
        ),
        told=around.upto,
        note=MEMORY_LOST if live.how == "lost" else "",
    )


async def _lost_history(shop: Workshop, session: Session, turn: Turn) -> tuple[Entry, ...]:
    """Read what was said in a conversation that its agent has lost, and say that it has."""
    notice = Entry("notice", MEMORY_LOST, session=session.id, turn=turn.id)
    await persist(shop.clock, shop.transcript.append, [notice])
    said = await shop.transcript.history(session.id, before_turn=turn.id, limit=HISTORY_ENTRIES)
    # What a tool call had cut in two stands together here for the first time.
    return tuple(replace(each, text=shop.vault.redact(each.text)) for each in said)
