"""Defines the tables for SQLAlchemy Core; alembic builds the same ones.

`transcript.id` numbers everything the page shows, messages included: the ids of
the event stream.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
    false,
    literal_column,
    true,
)

from app.model.updates import ASK_PERSON
from app.store.dialects import NUMBER, where
from app.store.guarding import Kept, KeptBytes, Shown, ShownJson

metadata = MetaData()

FALSE = false()

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
    Column("read_others", Boolean, nullable=False, server_default=FALSE),
    # The member that served it last: it has the clone, and maybe a live process.
    Column("served_by", String),
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
    Column("continued", Boolean, nullable=False, server_default=FALSE),
    Column("held", Boolean, nullable=False, server_default=FALSE),
    Column("stopped", Boolean, nullable=False, server_default=FALSE),
    # Whether words go into it while it runs.
    Column("steerable", Boolean, nullable=False, server_default=FALSE),
    # Why it waits for someone to continue it: `limited`, `login` or `budget`.
    Column("paused", String),
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
)

Index("decision_at", decision.c.at)

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
    Column("free_text", Boolean, nullable=False, server_default=FALSE),
    Column("tool_kind", String, nullable=False, server_default=""),
    Column("arguments_hash", String, nullable=False, server_default=""),
    Column("deadline", Float, nullable=False),
    # When it answers itself with its first option.
    Column("resume_at", Float),
    # No process waits for the answer; once answered, the answer has not been used yet.
    Column("adrift", Boolean, nullable=False, server_default=FALSE),
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
)

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
    Column("is_default", Boolean, nullable=False, server_default=FALSE),
    Column("created_at", Float, nullable=False),
    Column("removed_at", Float),
)
Index("agent_name", agent.c.name, unique=True, **where(agent.c.removed_at.is_(None)))

# Messages of deleted and cleared conversations, as hashes: an event that comes again is known.
forgotten = Table(
    "forgotten",
    metadata,
    Column("mark", String, primary_key=True),
    Column("at", Float, nullable=False),
)
Index("forgotten_at", forgotten.c.at)

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
