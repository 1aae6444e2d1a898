"""Defines the tables of people who sign in, of their log-ins and of their tokens."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Index, String, Table

from app.store.dialects import NUMBER
from app.store.guarding import Shown
from app.store.tables.pipe import metadata

person = Table(
    "person",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("name", Shown, nullable=False),
    Column("role", String, nullable=False),
    # Who vouches for the person, and by which id.
    Column("provider", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("seen_at", Float),
    Column("disabled_at", Float),
    # Messages name the id: it is never given to another.
    sqlite_autoincrement=True,
)
Index("person_subject", person.c.provider, person.c.subject, unique=True)

login = Table(
    "login",
    metadata,
    Column("id", String, primary_key=True),
    Column("link_hash", String, nullable=False, unique=True),
    Column("created_at", Float, nullable=False),
    # Until when the link can be used; once used, until when the login lasts.
    Column("expires_at", Float, nullable=False),
    Column("used_at", Float),
    Column("revoked_at", Float),
    # Null for the operator, who has given no name.
    Column("person", NUMBER),
    # When the person proved who they are.
    Column("proved_at", Float),
)
Index("login_person", login.c.person)

token = Table(
    "token",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("person", NUMBER, ForeignKey("person.id"), nullable=False),
    Column("hash", String, nullable=False, unique=True),
    Column("name", Shown, nullable=False),
    Column("role", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("used_at", Float),
    Column("revoked_at", Float),
)
Index("token_person", token.c.person)
