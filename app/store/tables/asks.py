"""Defines the tables of what people decide: asks, grants, pauses and what was spent."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    String,
    Table,
    and_,
    false,
    literal_column,
)

from app.model.updates import ASK_PERSON
from app.store.dialects import NUMBER, where
from app.store.guarding import Shown, ShownJson
from app.store.tables.pipe import metadata

ask = Table(
    "ask",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("session", NUMBER, ForeignKey("session.id"), nullable=False),
    Column("turn", NUMBER, ForeignKey("turn.id"), nullable=False),
    Column("generation", NUMBER, nullable=False),
    Column("kind", String, nullable=False),
    Column("call", String, nullable=False),
    Column("title", Shown, nullable=False),
    Column("subject", Shown, nullable=False, server_default=""),
    Column("options", JSON, nullable=False),
    Column("free_text", Boolean, nullable=False, server_default=false()),
    Column("tool_kind", String, nullable=False, server_default=""),
    Column("arguments_hash", String, nullable=False, server_default=""),
    Column("deadline", Float, nullable=False),
    # When it answers itself with its first option.
    Column("resume_at", Float),
    # No process waits for the answer; once answered or expired, its agent does not know that yet.
    Column("adrift", Boolean, nullable=False, server_default=false()),
    Column("state", String, nullable=False, server_default="open"),
    Column("answer", String),
    Column("answered_by", String),
    # The platform's id of the person who answered, where it is known.
    Column("speaker", String, nullable=False, server_default=""),
    # The session in whose place it is shown, if its own is not where people talk.
    Column("host", NUMBER),
    # What an answer allows from then on, by option.
    Column("scopes", ShownJson),
    Column("created_at", Float, nullable=False),
    Column("closed_at", Float),
    sqlite_autoincrement=True,
)
OFFER = "offer-"
"""Starts the message id of an accepted offer; no platform's ids start like this."""
ANSWER = "answer-"
"""Starts the message id of a late answer; no platform's ids start like this."""
ASK_IS_OPEN = ask.c.state == literal_column("'open'")
ASK_HOLDS = and_(
    ask.c.kind != literal_column("'offer'"),
    ask.c.kind != literal_column("'memory'"),
    ask.c.kind != literal_column("'schedule'"),
    ask.c.kind != literal_column("'race'"),
)
"""A turn waits for the answer. Nothing waits for the others: they outlive their turn."""
ASK_STAYS = ask.c.tool_kind == literal_column(f"'{ASK_PERSON}'")
"""A tool asked it: a turn that is done leaves it open, and its answer begins another one."""
Index("ask_open", ask.c.session, ask.c.id, **where(ASK_IS_OPEN))
Index("ask_turn", ask.c.turn)
Index("ask_host", ask.c.host, ask.c.id, **where(ASK_IS_OPEN))
Index("ask_session", ask.c.session, ask.c.answer)

# What a person lets an agent do in a place without being asked each time.
grant = Table(
    "grant",
    metadata,
    Column("id", NUMBER, primary_key=True),
    # One agent in one place; a grant ends when the conversation starts over.
    Column("session", NUMBER, ForeignKey("session.id"), nullable=False),
    Column("generation", NUMBER, nullable=False),
    # The kind of call, and how far it goes: one command, some files, all files, or one call.
    Column("kind", String, nullable=False),
    Column("extent", String, nullable=False),
    # What people saw; a known secret in it is not stored, so calls are compared by the hash.
    Column("subject", Shown, nullable=False),
    Column("digest", String, nullable=False),
    Column("granted_by", String, nullable=False),
    # The platform's id of the person, where it is known.
    Column("speaker", String, nullable=False, server_default=""),
    Column("ask", NUMBER),
    Column("granted_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("ended_by", String, nullable=False, server_default=""),
    sqlite_autoincrement=True,
)
Index("grant_session", grant.c.session, grant.c.digest)

# What the operator paused: no turn in its scope begins. `all`, `agent:<id>` or `place:<place>`.
suspension = Table(
    "suspension",
    metadata,
    Column("scope", String, primary_key=True),
    # `operator`, or `restored`: the database comes from a backup, and nothing is sent either.
    Column("reason", String, nullable=False),
    Column("since", Float, nullable=False),
)

# What each day has cost, where agents report it and a daily budget is set.
spending = Table(
    "spending",
    metadata,
    Column("day", String, primary_key=True),
    # `person`, `place`, `agent`, or `day` for all together, and its name.
    Column("share", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("usd", Float, nullable=False),
)
