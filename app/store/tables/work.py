"""Defines the tables of what agents work on: clones, repositories, delegations and reviews."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from app.store.dialects import NUMBER, where
from app.store.guarding import Shown, ShownJson
from app.store.tables.pipe import metadata

# A clone that a session works in; another repository means another row and another folder.
checkout = Table(
    "checkout",
    metadata,
    Column("session", NUMBER, ForeignKey("session.id"), primary_key=True),
    Column("number", NUMBER, primary_key=True),
    Column("name", String, nullable=False),
    Column("url", String, nullable=False),
    Column("way", String, nullable=False),
    Column("branch", String, nullable=False, server_default=""),
    Column("start", String, nullable=False, server_default=""),
    Column("base", String, nullable=False, server_default=""),
    Column("commit", String, nullable=False, server_default=""),
    Column("sent", String, nullable=False, server_default=""),
    Column("told", String, nullable=False, server_default=""),
    Column("link", Text, nullable=False, server_default=""),
    Column("state", String, nullable=False, server_default="opening"),
    # How often a fix was asked for since the checks last passed.
    Column("tries", NUMBER, nullable=False, server_default="0"),
    # The outcome of its proposal: `merged`, `closed`, or nothing yet.
    Column("outcome", String, nullable=False, server_default=""),
    # The agent's own words for its pull request, if it wrote some.
    Column("title", Shown, nullable=False, server_default=""),
    Column("body", Shown, nullable=False, server_default=""),
    # What others say about it: `running`, `passed` or `failed`; `approved` or `changes`.
    Column("checks", String, nullable=False, server_default=""),
    Column("review", String, nullable=False, server_default=""),
    # How much changed since it was opened; null while that is not known.
    Column("files", NUMBER),
    Column("added", NUMBER, nullable=False, server_default="0"),
    Column("removed", NUMBER, nullable=False, server_default="0"),
    # Not read any more: the name of its saved state.
    Column("saved", String, nullable=False, server_default=""),
    # The disk that holds it.
    Column("machine", String, nullable=False, server_default=""),
)
Index("checkout_branch", checkout.c.url, checkout.c.branch)

# Not read any more: what earlier releases saved of sessions for other machines.
saved_folder = Table(
    "saved_folder",
    metadata,
    Column("session", NUMBER, ForeignKey("session.id"), primary_key=True),
    Column("kind", String, primary_key=True),
    Column("saved", String, nullable=False),
    Column("machine", String, nullable=False),
)

# News of a session's proposal, reported where its work began, so that it is reported once.
told = Table(
    "told",
    metadata,
    Column("session", NUMBER, ForeignKey("session.id"), primary_key=True),
    Column("mark", String, primary_key=True),
)

# The names each repository has and had: `current` in one row per number.
repository = Table(
    "repository",
    metadata,
    Column("host", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("number", NUMBER, nullable=False),
    Column("current", Boolean, nullable=False),
)
Index("repository_number", repository.c.host, repository.c.number)

# What one agent asked another one to do, or a person had agents do together. Its state is that of
# its turn.
delegation = Table(
    "delegation",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("kind", String, nullable=False),
    Column("agent", String, nullable=False),
    # The session and the turn that asked; a command of a person has a session and no turn.
    Column("caller_session", NUMBER, ForeignKey("session.id"), nullable=False),
    Column("caller_turn", NUMBER, ForeignKey("turn.id")),
    # The session and the turn that do it.
    Column("session", NUMBER, ForeignKey("session.id"), nullable=False),
    Column("turn", NUMBER, ForeignKey("turn.id"), nullable=False, unique=True),
    # Where it all began: the place of people, the session there, and the turn, if there is one.
    Column("root_place", NUMBER, ForeignKey("place.id"), nullable=False),
    Column("root_session", NUMBER, ForeignKey("session.id"), nullable=False),
    Column("root_turn", NUMBER, ForeignKey("turn.id")),
    Column("depth", NUMBER, nullable=False),
    Column("task", Shown, nullable=False),
    Column("name", Shown, nullable=False, server_default=""),
    Column("workspace", String, nullable=False, server_default=""),
    # The branch and the folder that it works on, if they were named.
    Column("branch", String, nullable=False, server_default=""),
    Column("folder", String, nullable=False, server_default=""),
    # Several that belong together: a panel, a race, the rounds of a review.
    Column("group", String, nullable=False, server_default=""),
    Column("round", NUMBER, nullable=False, server_default="1"),
    # The person whose rights it needs, as the service of the root place names them.
    Column("person_id", String, nullable=False),
    Column("person_name", String, nullable=False),
    Column("person_number", String, nullable=False, server_default=""),
    # When the agent that asked was given the answer.
    Column("told_at", Float),
    # When people were told the end, where the turn that asked could no longer show it.
    Column("shown_at", Float),
    Column("created_at", Float, nullable=False),
    sqlite_autoincrement=True,
)
Index("delegation_caller", delegation.c.caller_turn)
Index("delegation_caller_session", delegation.c.caller_session, delegation.c.id)
Index("delegation_session", delegation.c.session)
Index("delegation_root", delegation.c.root_place, delegation.c.id)
Index("delegation_root_turn", delegation.c.root_turn)
Index("delegation_group", delegation.c.group)

# The sessions that agents run inside their own, by the agent's ids of them.
subagent = Table(
    "subagent",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("session", NUMBER, ForeignKey("session.id"), nullable=False),
    # The turn that started it; it may go on after that.
    Column("turn", NUMBER, ForeignKey("turn.id"), nullable=False),
    Column("key", String, nullable=False),
    # The key of the one that started it; empty if the agent itself did.
    Column("parent", String, nullable=False, server_default=""),
    Column("title", Shown, nullable=False, server_default=""),
    Column("task", Shown, nullable=False, server_default=""),
    Column("answer", Shown, nullable=False, server_default=""),
    Column("state", String, nullable=False),
    Column("can_stop", Boolean, nullable=False, server_default=false()),
    Column("cost", Float),
    Column("currency", String, nullable=False, server_default=""),
    Column("began_at", Float, nullable=False),
    Column("ended_at", Float),
    UniqueConstraint("session", "key"),
    sqlite_autoincrement=True,
)
SUBAGENT_RUNS = subagent.c.ended_at.is_(None)
Index("subagent_turn", subagent.c.turn)
Index("subagent_running", subagent.c.session, **where(SUBAGENT_RUNS))

# What a reviewer found.
review = Table(
    "review",
    metadata,
    Column("id", NUMBER, primary_key=True),
    # The session and turn of the reviewer, and the session whose work it is, if it is an agent's.
    Column("session", NUMBER, ForeignKey("session.id"), nullable=False),
    Column("turn", NUMBER, ForeignKey("turn.id"), nullable=False, unique=True),
    Column("author_session", NUMBER, ForeignKey("session.id")),
    Column("verdict", String, nullable=False),
    Column("body", Shown, nullable=False),
    # Each with `path`, `line` and `body`.
    Column("findings", ShownJson, nullable=False),
    Column("repository", String, nullable=False, server_default=""),
    Column("branch", String, nullable=False, server_default=""),
    Column("commit", String, nullable=False, server_default=""),
    # Where it can be read, if a platform has it.
    Column("link", Text, nullable=False, server_default=""),
    # What has been done with it: `given`, `sent` to the platform, `passed` on to the author.
    Column("state", String, nullable=False, server_default="given"),
    Column("at", Float, nullable=False),
    sqlite_autoincrement=True,
)
Index("review_author", review.c.author_session, review.c.id)
