"""Stores the text of messages that hold a secret, sealed, until no turn needs it.

The transcript has it without the secret; the agent gets it unchanged.
"""

from __future__ import annotations

from sqlalchemy import Connection, Integer, String, cast, delete, func, insert, literal, select

from app.store.guarding import guard_of
from app.store.tables import OPEN_TURN, heard, message, sealed, turn

_PREFIX = "message:"
OF_MESSAGE = sealed.c.name == literal(_PREFIX) + cast(message.c.id, String)
"""Joins a message with its sealed text."""

_number = cast(func.substr(sealed.c.name, len(_PREFIX) + 1), Integer)
_NEEDED = select(heard.c.message).join(turn, turn.c.id == heard.c.turn).where(OPEN_TURN)
_FORGET = delete(sealed).where(sealed.c.name.startswith(_PREFIX), _number.not_in(_NEEDED))


def keep_words(connection: Connection, number: int, text: str, now: float) -> None:
    """Seal a message's text inside the caller's commit, if it holds a secret."""
    guard = guard_of(connection)
    if guard is not None and guard.must_seal(text):
        row = {"name": f"{_PREFIX}{number}", "value": guard.seal(text), "kept_at": now}
        connection.execute(insert(sealed), row)


def forget_words(connection: Connection) -> None:
    """Delete sealed text that no open turn needs, inside the caller's commit."""
    connection.execute(_FORGET)
