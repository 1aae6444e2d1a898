"""Defines the tables of the record: its chained rows, and how far what happened is in them.

Rows of `record` refer to no others by a key: they outlive what they tell of.
"""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, Index, String, Table

from app.model.record import TEXTS
from app.store.dialects import NUMBER
from app.store.guarding import Shown
from app.store.tables.pipe import metadata

record = Table(
    "record",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("kind", String, nullable=False),
    Column("outcome", String, nullable=False),
    # What it was read from, so that it is recorded once.
    Column("source", String, nullable=False, unique=True),
    Column("session", NUMBER),
    Column("turn", NUMBER),
    # Null if the row has no such text, or it was erased: then `digests` has it.
    *(Column(name, Shown) for name in TEXTS),
    Column("salts", JSON, nullable=False),
    Column("digests", JSON, nullable=False),
    Column("erases", JSON, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
)
Index("record_turn", record.c.turn)
Index("record_session", record.c.session)
Index("record_ref", record.c.ref)

# How far each source has been read: the number of its last row that was looked at.
record_position = Table(
    "record_position",
    metadata,
    Column("source", String, primary_key=True),
    Column("number", NUMBER, nullable=False),
)

# What was looked at and had not ended yet: calls, posts that are to be sent, grants that hold.
record_pending = Table(
    "record_pending",
    metadata,
    # What its row in the record will name as its source.
    Column("name", String, primary_key=True),
    Column("source", String, nullable=False),
    Column("number", NUMBER, nullable=False),
)
Index("record_pending_source", record_pending.c.source, record_pending.c.number)
