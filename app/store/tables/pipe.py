"""Defines the tables of the pipe: deliveries, places, sessions, turns, transcript and posts.

`transcript.id` numbers everything the page shows, messages included: the ids of
the event stream.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    Index,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    literal_column,
    true,
)

from app.model.keys import PlaceKey
from app.store.dialects import NUMBER, where
from app.store.guarding import Kept, KeptBytes, Shown, ShownJson

metadata = MetaData()

delivery = Table(
    "delivery",
    metadata,
    Column("seq", NUMBER, primary_key=True),
    Column("adapter", String, nullable=False),
    Column("delivery_id", String, nullable=False),
    Column("signature", String),
    Column("headers", JSON, nullable=False),
    Column("body", KeptBytes, nullable=False),
    Column("received_at", Float, nullable=False),
    # When it was sent, if the bridge had to look for it: it did not arrive by itself.
    Column("sent_at", Float),
    Column("state", String, nullable=False, server_default="new"),
    Column("reason", Shown, nullable=False, server_default=""),
    UniqueConstraint("adapter", "delivery_id"),
    # Equal bytes give an equal signature: a replay under a new id stops here.
    UniqueConstraint("adapter", "signature"),
    sqlite_autoincrement=True,
)
# The condition of a partial index is written out, here and in its queries: a bound value there
# makes SQLite prepare the statement again at every execution.
DELIVERY_IS_NEW = delivery.c.state == literal_column("'new'")
Index("delivery_pending", delivery.c.adapter, delivery.c.seq, **where(DELIVERY_IS_NEW))

Index("delivery_received", delivery.c.received_at)

# How far each conversation of an adapter was compared with what its platform has; the empty name
# stands for those that are not known yet.
position = Table(
    "position",
    metadata,
    Column("adapter", String, primary_key=True),
    Column("source", String, primary_key=True),
    Column("at", Float, nullable=False),
)

# When events of an adapter may not have arrived, and what was not there: `bridge`, `socket`, `hook`
# or `access`.
gap = Table(
    "gap",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("adapter", String, nullable=False),
    Column("began", Float, nullable=False),
    Column("ended", Float, nullable=False),
    Column("cause", String, nullable=False),
    sqlite_autoincrement=True,
)
Index("gap_ended", gap.c.ended, gap.c.adapter)

place = Table(
    "place",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("service", String, nullable=False),
    Column("name", String, nullable=False),
    Column("title", Shown, nullable=False, server_default=""),
    Column("link", Text, nullable=False, server_default=""),
    Column("latest", String),
    Column("listen", String),
    Column("verbosity", String),
    Column("repository", String),
    # The agent that the place was handed over to: it answers what names no agent.
    Column("holder", String),
    # The agent whose work the holder goes on with.
    Column("predecessor", String),
    # The title that a person gave it; it stays when agents name their conversations.
    Column("named", Shown),
    Column("pinned_at", Float),
    Column("archived_at", Float),
    # The place that this one was forked from.
    Column("forked_from", String),
    # Since when it is being deleted; a start finishes what a crash left of that.
    Column("deleted_at", Float),
    UniqueConstraint("service", "name"),
)


def is_place(where: PlaceKey) -> ColumnElement[bool]:
    """Match the row of a place."""
    return (place.c.service == where.service) & (place.c.name == where.name)


session = Table(
    "session",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("agent", String, nullable=False),
    Column("place", NUMBER, ForeignKey("place.id"), nullable=False),
    Column("title", Shown, nullable=False, server_default=""),
    Column("acp_session_id", String),
    Column("generation", NUMBER, nullable=False, server_default="1"),
    # The last row of the transcript before the current conversation began.
    Column("began_after", NUMBER, nullable=False, server_default="0"),
    Column("mode", String),
    Column("model", String),
    Column("closed", String),
    # Dollars: the total spent, what its agent last reported, and how far people let it continue.
    Column("spent", Float, nullable=False, server_default="0"),
    Column("reported", Float, nullable=False, server_default="0"),
    Column("cleared", Float, nullable=False, server_default="0"),
    # What the agent was told of itself, and in which of its conversations: a hash per part.
    Column("standing", JSON),
    # Whether a tool brought words of others into the conversation.
    Column("read_others", Boolean, nullable=False, server_default=false()),
    # The member that served it last: it has the clone, and maybe a live process.
    Column("served_by", String),
    # What its agent sent and no one can be shown: how often, by what it is.
    Column("unshown", ShownJson),
    # What plug-ins and other programs keep with it.
    Column("attributes", ShownJson),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    sqlite_autoincrement=True,
)
Index("session_place", session.c.place, session.c.agent)
Index("session_updated", session.c.updated_at)

surface = Table(
    "surface",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("service", String, nullable=False),
    Column("external", String, nullable=False),
    Column("agent", String, nullable=False),
    Column("session", NUMBER, ForeignKey("session.id"), nullable=False),
    Column("place", NUMBER, ForeignKey("place.id"), nullable=False),
    Column("reachable", Boolean, nullable=False, server_default=true()),
    UniqueConstraint("service", "external", "agent"),
)
Index("surface_session", surface.c.session)
Index("surface_place", surface.c.place)

turn = Table(
    "turn",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("session", NUMBER, ForeignKey("session.id"), nullable=False),
    Column("surface", NUMBER, ForeignKey("surface.id"), nullable=False),
    Column("state", String, nullable=False, server_default="queued"),
    Column("cuts", NUMBER, nullable=False, server_default="0"),
    Column("continued", Boolean, nullable=False, server_default=false()),
    Column("held", Boolean, nullable=False, server_default=false()),
    Column("stopped", Boolean, nullable=False, server_default=false()),
    # Whether words go into it while it runs.
    Column("steerable", Boolean, nullable=False, server_default=false()),
    # Why it waits for someone to continue it: `limited`, `login`, `budget` or `late`.
    Column("paused", String),
    # What woke the agent, if it began the turn by itself; what that is, and which turn began it.
    Column("woken_by", String),
    Column("about", Shown, nullable=False, server_default=""),
    Column("origin", NUMBER),
    # The turn that continues its work, if it was parked and then answered.
    Column("successor", NUMBER),
    Column("prompt", Shown, nullable=False, server_default=""),
    # The system prompt that its agent was started with for this turn.
    Column("system", Shown, nullable=False, server_default=""),
    # The last row of the transcript that the prompt included; null before there was a prompt.
    Column("told", NUMBER),
    Column("error", Shown, nullable=False, server_default=""),
    Column("created_at", Float, nullable=False),
    Column("ended_at", Float),
    sqlite_autoincrement=True,
)
OPEN_TURN = turn.c.state.in_(("queued", "starting", "prompted", "parked"))
Index("turn_session", turn.c.session, turn.c.id)
Index("turn_state", turn.c.state, turn.c.session, turn.c.id)

transcript = Table(
    "transcript",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("place", NUMBER, ForeignKey("place.id"), nullable=False),
    Column("session", NUMBER, ForeignKey("session.id")),
    Column("turn", NUMBER, ForeignKey("turn.id")),
    Column("kind", String, nullable=False),
    Column("speaker", String, nullable=False, server_default=""),
    Column("text", Shown, nullable=False, server_default=""),
    Column("data", ShownJson, nullable=False),
    Column("at", Float, nullable=False),
    sqlite_autoincrement=True,
)
Index("transcript_session", transcript.c.session, transcript.c.id)
Index("transcript_place", transcript.c.place, transcript.c.id)

message = Table(
    "message",
    metadata,
    # The number of its row in the transcript, where its text is.
    Column("id", NUMBER, ForeignKey("transcript.id"), primary_key=True, autoincrement=False),
    Column("place", NUMBER, ForeignKey("place.id"), nullable=False),
    Column("message_id", String, nullable=False),
    Column("speaker_id", String, nullable=False),
    Column("speaker_kind", String, nullable=False),
    # A stable id where `speaker_id` is a name that can change hands.
    Column("speaker_number", String, nullable=False, server_default=""),
    Column("link", Text, nullable=False, server_default=""),
    Column("files", JSON, nullable=False),
    Column("pointed", Kept, nullable=False, server_default=""),
    Column("context", Kept, nullable=False, server_default=""),
    # Its text since it was edited, empty if it was deleted. The transcript row stays unchanged, for
    # those who have read it.
    Column("edited", Kept),
    # When it was said, if it was found late.
    Column("sent_at", Float),
    UniqueConstraint("place", "message_id"),
)

# Which session was told of a message, and the turn it became part of.
heard = Table(
    "heard",
    metadata,
    Column("message", NUMBER, ForeignKey("message.id"), primary_key=True),
    Column("session", NUMBER, ForeignKey("session.id"), primary_key=True),
    Column("turn", NUMBER, ForeignKey("turn.id")),
    # Where it is if it was said to a working agent: `sent`, `taken` or `read`.
    Column("steered", String),
)
Index("heard_turn", heard.c.turn)
Index("heard_session", heard.c.session, heard.c.message)

decision = Table(
    "decision",
    metadata,
    Column("place", NUMBER, ForeignKey("place.id"), primary_key=True),
    Column("message_id", String, primary_key=True),
    Column("outcome", String, nullable=False),
    Column("reason", Shown, nullable=False),
    Column("agents", JSON, nullable=False),
    Column("at", Float, nullable=False),
    # The delivery that brought it; deliveries are deleted sooner.
    Column("delivery", NUMBER),
    # When it was said, as its platform tells.
    Column("sent_at", Float),
)

Index("decision_at", decision.c.at)

post = Table(
    "post",
    metadata,
    Column("id", NUMBER, primary_key=True),
    Column("key", String, nullable=False, unique=True),
    Column("service", String, nullable=False),
    Column("external", String, nullable=False),
    Column("agent", String, nullable=False),
    Column("session", NUMBER, ForeignKey("session.id")),
    Column("turn", NUMBER, ForeignKey("turn.id")),
    Column("marker", String, nullable=False),
    Column("content", ShownJson, nullable=False),
    Column("state", String, nullable=False, server_default="new"),
    Column("remote_id", String),
    Column("consumed", NUMBER, nullable=False, server_default="0"),
    Column("error", Shown, nullable=False, server_default=""),
    Column("created_at", Float, nullable=False),
    sqlite_autoincrement=True,
)
Index("post_state", post.c.state, post.c.id)
Index("post_turn", post.c.turn)
Index("post_created", post.c.created_at)

progress = Table(
    "progress",
    metadata,
    Column("post", NUMBER, ForeignKey("post.id", ondelete="CASCADE"), primary_key=True),
    Column("content", ShownJson, nullable=False),
)

process = Table(
    "process",
    metadata,
    Column("marker", String, primary_key=True),
    Column("agent", String, nullable=False),
    Column("session", NUMBER, ForeignKey("session.id"), nullable=False),
    Column("group", NUMBER, nullable=False),
    Column("started", String, nullable=False),
)
Index("process_session", process.c.session)

# What goes on between the turns of a session; lost: its process is gone, and no one was told.
background_work = Table(
    "background_work",
    metadata,
    Column("session", NUMBER, ForeignKey("session.id"), primary_key=True),
    Column("name", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("about", Shown, nullable=False, server_default=""),
    Column("turn", NUMBER),
    Column("began_at", Float, nullable=False),
    Column("lost", Boolean, nullable=False, server_default=false()),
)

# Messages of deleted and cleared conversations, as hashes: an event that comes again is known.
forgotten = Table(
    "forgotten",
    metadata,
    Column("mark", String, primary_key=True),
    Column("at", Float, nullable=False),
)
Index("forgotten_at", forgotten.c.at)
