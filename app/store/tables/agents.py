"""Defines the tables of agents, of what they remember and repeat, and of the members."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    Index,
    String,
    Table,
    Text,
    false,
)

from app.store.dialects import NUMBER, where
from app.store.guarding import KeptBytes, Shown
from app.store.tables.pipe import metadata

# Secrets, sealed under a name with BRIDGE_SECRET_KEY: those that others gave the bridge, and the
# text of messages that hold one, until an agent got it.
sealed = Table(
    "sealed",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", Text, nullable=False),
    Column("kept_at", Float, nullable=False),
)

# Every agent there is or was. Other rows name its id: another name changes none of them.
agent = Table(
    "agent",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    # What people gave it over the API, the page or the command line; null if only settings do.
    Column("entry", KeptBytes),
    Column("credentials", KeptBytes),
    Column("former", JSON, nullable=False),
    # Its driver, else its command, when the bridge last started with it.
    Column("known_as", JSON, nullable=False),
    # What people called it when the bridge last started with it, or when it was removed.
    Column("title", String, nullable=False, server_default=""),
    # Where its entry was and how it was isolated when the bridge was last seen with it, and how
    # it was isolated before that changed, until a person has seen the change.
    Column("source", String, nullable=False, server_default=""),
    Column("isolation", String, nullable=False, server_default=""),
    Column("isolation_was", String, nullable=False, server_default=""),
    Column("is_default", Boolean, nullable=False, server_default=false()),
    Column("created_at", Float, nullable=False),
    Column("removed_at", Float),
)
Index("agent_name", agent.c.name, unique=True, **where(agent.c.removed_at.is_(None)))

# What an agent is asked again and again; each run is a delivery of its own.
schedule = Table(
    "schedule",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("agent", String, nullable=False),
    # The key of the session and the place where it runs.
    Column("service", String, nullable=False),
    Column("external", String, nullable=False),
    Column("place", String, nullable=False),
    Column("expression", String, nullable=False),
    Column("zone", String, nullable=False),
    Column("words", Shown, nullable=False),
    Column("creator_id", String, nullable=False),
    Column("creator_name", String, nullable=False),
    Column("creator_number", String, nullable=False, server_default=""),
    Column("state", String, nullable=False, server_default="active"),
    # Why it is paused.
    Column("reason", Shown, nullable=False, server_default=""),
    Column("due_at", Float, nullable=False),
    # How many runs failed in a row.
    Column("failures", NUMBER, nullable=False, server_default="0"),
    # The message that asked for it.
    Column("origin", String, nullable=False, unique=True),
    Column("created_at", Float, nullable=False),
    sqlite_autoincrement=True,
)
Index("schedule_due", schedule.c.state, schedule.c.due_at)

# What an agent wants to remember: proposed to people, or kept and not yet in its file.
memory_note = Table(
    "memory_note",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("agent", String, nullable=False),
    Column("session", NUMBER, nullable=False),
    Column("text", Shown, nullable=False),
    # `proposed`, then `kept` or gone; a kept one goes once it is in the file.
    Column("state", String, nullable=False),
    Column("ask", NUMBER),
    Column("at", Float, nullable=False),
    sqlite_autoincrement=True,
)
Index("memory_note_state", memory_note.c.state, memory_note.c.id)
Index("memory_note_ask", memory_note.c.ask)

# Which version of an agent's daily logs the search knows; their entries are in `memory_text`.
memory_day = Table(
    "memory_day",
    metadata,
    Column("agent", String, primary_key=True),
    Column("day", String, primary_key=True),
    Column("version", String, nullable=False),
)

# The bridges on one PostgreSQL. Procrastinate has its own tables for wake-ups.
member = Table(
    "member",
    metadata,
    Column("name", String, primary_key=True),
    # Tells this start from all others under its name.
    Column("epoch", NUMBER, nullable=False),
    Column("role", String, nullable=False),
    Column("slots", NUMBER, nullable=False),
    # How many turns it runs, by agent.
    Column("load", JSON, nullable=False),
    Column("beats", NUMBER, nullable=False),
    # How many commits it made: the last one is there if it is counted.
    Column("commits", NUMBER, nullable=False, server_default="0"),
    # Of releases whose jobs lasted as long as turns; not used any more.
    Column("engine", NUMBER),
    Column("seen_at", Float, nullable=False),
)

# The machines that were members once, whose disks hold what sessions left there.
machine = Table(
    "machine",
    metadata,
    Column("name", String, primary_key=True),
    Column("host", String, nullable=False),
    Column("seen_at", Float, nullable=False),
)

# Work that one member does for all.
duty = Table(
    "duty",
    metadata,
    Column("name", String, primary_key=True),
    Column("member", String, nullable=False),
)
