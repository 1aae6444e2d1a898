"""Says that a turn answers words that were found late, and asks whether old ones still count."""

from __future__ import annotations

from app.core.turns.turn_context import TurnContext
from app.model import wording
from app.model.asks import LATE, LATE_OPTIONS
from app.model.inbound import OLD_SECONDS
from app.model.types import Turn
from app.model.updates import AskRequest


async def find_lateness(
    context: TurnContext, turn: Turn, name: str
) -> tuple[str, AskRequest | None]:
    """Return what to say of words that were found late, or the question whether they count.

    `name` is what people call the agent.
    """
    messages = context.stores.turns.messages(turn.id)
    late = [each for each in messages if each.sent_at is not None]
    if not late:
        return "", None
    sent_at, found_at = late[0].at - late[0].delay, late[0].at
    cause = await context.stores.gaps.cause(turn.surface.adapter, sent_at)
    words = wording.found_late(sent_at, found_at, cause or "")
    is_settled = turn.continued or await context.stores.asks.is_confirmed(turn.id, LATE)
    if is_settled or not all(each.delay > OLD_SECONDS for each in messages):
        return words, None
    asked = wording.STILL_WANTED.format(late=words)
    return "", AskRequest(LATE, asked, LATE_OPTIONS, kind="pause", agent=name)
