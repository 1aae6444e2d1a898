"""Gathers what is known of a turn and writes its prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from app.core.repositories.joint_work import SharedWork
from app.core.turns.agents import LiveAgent
from app.core.turns.prompt import SystemPrompt, TurnPrompt, compose, write_for_prompt
from app.core.turns.turn_context import TurnContext
from app.model import wording
from app.model.steering import Steered
from app.model.types import Attachment, Entry, Message, Session, Turn
from app.model.workspaces import Target
from app.retry import persist

HISTORY_ENTRIES = 60
"""Rows of the transcript for an agent that lost its conversation: some thirty exchanges."""
BEGINNINGS = {"new", "lost"}
"""The agent does not know yet where it is when its conversation came about like this."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """What an agent is told."""

    prompt: str
    files: tuple[Attachment, ...]
    messages: Sequence[Message]
    """What people said, but for what the agent knows already."""
    told: int
    """The last row of the transcript that the prompt covers."""
    note: str
    """What people in the place should know, if anything."""
    on_sent: Sequence[Callable[[], Awaitable[None]]] = ()
    """Are called once the prompt is committed."""


async def brief(
    context: TurnContext,
    session: Session,
    turn: Turn,
    live: LiveAgent,
    target: Target,
    system_prompt: SystemPrompt,
    joined: SharedWork,
    *,
    is_fork: bool,
) -> Briefing:
    """Gather what a turn is about and write its prompt; a fork brings what was said before it."""
    history: tuple[Entry, ...] = ()
    if live.how == "lost":
        await _note_loss(context, session, turn)
    if live.how == "lost" or (live.how == "new" and is_fork):
        history = await _read_history(context, session, turn)
    messages = [
        each
        for each in context.stores.turns.messages(turn.id)
        if each.number not in live.known and each.steered is not Steered.READ
    ]
    around = await context.surroundings.gather(session, turn, messages)
    named = [*around.files, *(file for message in messages for file in message.files)]
    files = await context.attachments.fetched(session, named)
    paths = await context.workspaces.bring(session, files) if files else ()
    begins = live.how in BEGINNINGS
    added = await context.hooks.prompt_parts(session, turn, messages, begins=begins)
    prompt = compose(
        TurnPrompt(
            surface=turn.surface,
            messages=messages,
            files=live.workspace.show(paths),
            link=session.link,
            said=around.said,
            notes=[*(note for part in added for note in part.notes), *joined.notes],
            data=[*(each for part in added for each in part.data), *joined.data],
            workspace=context.workspaces.view(session, target) if begins else None,
            outgoing=live.workspace.outgoing if begins else None,
            own=[each for part in added for each in part.own],
            system_prompt=write_for_prompt(system_prompt, live.told),
            place_prompt=context.place_prompt(session.place) if begins else "",
            history=history,
            continued=turn.continued,
            answers=context.ledger.late(turn.id),
        )
    )
    return Briefing(
        prompt=prompt,
        files=tuple(
            Attachment(path, file.media_type) for path, file in zip(paths, files, strict=True)
        ),
        messages=messages,
        told=around.upto,
        note=_lost(context, session) if live.how == "lost" else "",
        on_sent=[part.on_sent for part in added if part.on_sent is not None],
    )


async def _note_loss(context: TurnContext, session: Session, turn: Turn) -> None:
    """Note in the transcript that the agent has lost its conversation."""
    notice = Entry("notice", _lost(context, session), session=session.id, turn=turn.id)
    await persist(context.clock, context.stores.transcript.append, [notice])


async def _read_history(context: TurnContext, session: Session, turn: Turn) -> tuple[Entry, ...]:
    """Read the conversation that the agent has lost, or that was forked without it."""
    said = await context.stores.transcript.history(
        session.id, before_turn=turn.id, limit=HISTORY_ENTRIES
    )
    # Redacted again: text that a tool call had cut in two is joined here for the first time.
    return tuple(replace(each, text=context.vault.redact(each.text)) for each in said)


def _lost(context: TurnContext, session: Session) -> str:
    return wording.FROM_TRANSCRIPT.format(agent=context.name_of(session.key.agent))
