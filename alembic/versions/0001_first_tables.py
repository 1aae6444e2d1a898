"""The first tables."""

import sqlalchemy as sa

from alembic import op
from app.store.dialects import NUMBER, where

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "delivery",
        sa.Column("seq", NUMBER, nullable=False),
        sa.Column("adapter", sa.String(), nullable=False),
        sa.Column("delivery_id", sa.String(), nullable=False),
        sa.Column("signature", sa.String(), nullable=True),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", sa.Float(), nullable=False),
        sa.Column("state", sa.String(), server_default="new", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("adapter", "delivery_id"),
        sa.UniqueConstraint("adapter", "signature"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "delivery_pending",
        "delivery",
        ["adapter", "seq"],
        unique=False,
        **where(sa.text("state = 'new'")),
    )
    op.create_index("delivery_received", "delivery", ["received_at"], unique=False)
    op.create_table(
        "login",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("link_hash", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.Column("used_at", sa.Float(), nullable=True),
        sa.Column("revoked_at", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("link_hash"),
    )
    op.create_table(
        "repository",
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("current", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("host", "name"),
    )
    op.create_index("repository_number", "repository", ["host", "number"], unique=False)
    op.create_table(
        "sealed",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("kept_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "place",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("service", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("link", sa.Text(), server_default="", nullable=False),
        sa.Column("latest", sa.String(), nullable=True),
        sa.Column("listen", sa.String(), nullable=True),
        sa.Column("verbosity", sa.String(), nullable=True),
        sa.Column("repository", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("service", "name"),
    )
    op.create_table(
        "decision",
        sa.Column("place", NUMBER, nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("agents", sa.JSON(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["place"],
            ["place.id"],
        ),
        sa.PrimaryKeyConstraint("place", "message_id"),
    )
    op.create_index("decision_at", "decision", ["at"], unique=False)
    op.create_table(
        "session",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("place", NUMBER, nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("acp_session_id", sa.String(), nullable=True),
        sa.Column("generation", NUMBER, server_default="1", nullable=False),
        sa.Column("began_after", NUMBER, server_default="0", nullable=False),
        sa.Column("mode", sa.String(), nullable=True),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("closed", sa.String(), nullable=True),
        sa.Column("spent", sa.Float(), server_default="0", nullable=False),
        sa.Column("reported", sa.Float(), server_default="0", nullable=False),
        sa.Column("cleared", sa.Float(), server_default="0", nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("updated_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["place"],
            ["place.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("session_place", "session", ["place", "agent"], unique=False)
    op.create_index("session_updated", "session", ["updated_at"], unique=False)
    op.create_table(
        "process",
        sa.Column("marker", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("session", NUMBER, nullable=False),
        sa.Column("group", NUMBER, nullable=False),
        sa.Column("started", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session"],
            ["session.id"],
        ),
        sa.PrimaryKeyConstraint("marker"),
    )
    op.create_index("process_session", "process", ["session"], unique=False)
    op.create_table(
        "surface",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("service", sa.String(), nullable=False),
        sa.Column("external", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("session", NUMBER, nullable=False),
        sa.Column("place", NUMBER, nullable=False),
        sa.Column("reachable", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["place"],
            ["place.id"],
        ),
        sa.ForeignKeyConstraint(
            ["session"],
            ["session.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("service", "external", "agent"),
    )
    op.create_index("surface_place", "surface", ["place"], unique=False)
    op.create_index("surface_session", "surface", ["session"], unique=False)
    op.create_table(
        "turn",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("session", NUMBER, nullable=False),
        sa.Column("surface", NUMBER, nullable=False),
        sa.Column("state", sa.String(), server_default="queued", nullable=False),
        sa.Column("cuts", NUMBER, server_default="0", nullable=False),
        sa.Column("continued", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("held", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("stopped", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("paused", sa.String(), nullable=True),
        sa.Column("successor", NUMBER, nullable=True),
        sa.Column("prompt", sa.Text(), server_default="", nullable=False),
        sa.Column("told", NUMBER, nullable=True),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["session"],
            ["session.id"],
        ),
        sa.ForeignKeyConstraint(
            ["surface"],
            ["surface.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("turn_session", "turn", ["session", "id"], unique=False)
    op.create_index("turn_state", "turn", ["state", "session", "id"], unique=False)
    op.create_table(
        "ask",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("session", NUMBER, nullable=False),
        sa.Column("turn", NUMBER, nullable=False),
        sa.Column("generation", NUMBER, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("call", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), server_default="", nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("free_text", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("tool_kind", sa.String(), server_default="", nullable=False),
        sa.Column("arguments_hash", sa.String(), server_default="", nullable=False),
        sa.Column("deadline", sa.Float(), nullable=False),
        sa.Column("resume_at", sa.Float(), nullable=True),
        sa.Column("adrift", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("state", sa.String(), server_default="open", nullable=False),
        sa.Column("answer", sa.String(), nullable=True),
        sa.Column("answered_by", sa.String(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("closed_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["session"],
            ["session.id"],
        ),
        sa.ForeignKeyConstraint(
            ["turn"],
            ["turn.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ask_open", "ask", ["session", "id"], unique=False, **where(sa.text("state = 'open'"))
    )
    op.create_index("ask_turn", "ask", ["turn"], unique=False)
    op.create_index("ask_session", "ask", ["session", "answer"], unique=False)
    op.create_table(
        "post",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("service", sa.String(), nullable=False),
        sa.Column("external", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("session", NUMBER, nullable=True),
        sa.Column("turn", NUMBER, nullable=True),
        sa.Column("marker", sa.String(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), server_default="new", nullable=False),
        sa.Column("remote_id", sa.String(), nullable=True),
        sa.Column("consumed", NUMBER, server_default="0", nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session"],
            ["session.id"],
        ),
        sa.ForeignKeyConstraint(
            ["turn"],
            ["turn.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key"),
        sqlite_autoincrement=True,
    )
    op.create_index("post_created", "post", ["created_at"], unique=False)
    op.create_index("post_state", "post", ["state", "id"], unique=False)
    op.create_index("post_turn", "post", ["turn"], unique=False)
    op.create_table(
        "transcript",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("place", NUMBER, nullable=False),
        sa.Column("session", NUMBER, nullable=True),
        sa.Column("turn", NUMBER, nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("speaker", sa.String(), server_default="", nullable=False),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["place"],
            ["place.id"],
        ),
        sa.ForeignKeyConstraint(
            ["session"],
            ["session.id"],
        ),
        sa.ForeignKeyConstraint(
            ["turn"],
            ["turn.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("transcript_place", "transcript", ["place", "id"], unique=False)
    op.create_index("transcript_session", "transcript", ["session", "id"], unique=False)
    op.create_table(
        "checkout",
        sa.Column("session", NUMBER, nullable=False),
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("way", sa.String(), nullable=False),
        sa.Column("branch", sa.String(), server_default="", nullable=False),
        sa.Column("start", sa.String(), server_default="", nullable=False),
        sa.Column("base", sa.String(), server_default="", nullable=False),
        sa.Column("commit", sa.String(), server_default="", nullable=False),
        sa.Column("sent", sa.String(), server_default="", nullable=False),
        sa.Column("told", sa.String(), server_default="", nullable=False),
        sa.Column("link", sa.Text(), server_default="", nullable=False),
        sa.Column("state", sa.String(), server_default="opening", nullable=False),
        sa.Column("tries", NUMBER, server_default="0", nullable=False),
        sa.Column("outcome", sa.String(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["session"],
            ["session.id"],
        ),
        sa.PrimaryKeyConstraint("session", "number"),
    )
    op.create_index("checkout_branch", "checkout", ["url", "branch"], unique=False)
    op.create_table(
        "told",
        sa.Column("session", NUMBER, nullable=False),
        sa.Column("mark", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session"],
            ["session.id"],
        ),
        sa.PrimaryKeyConstraint("session", "mark"),
    )
    op.create_table(
        "message",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("place", NUMBER, nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("speaker_id", sa.String(), nullable=False),
        sa.Column("speaker_kind", sa.String(), nullable=False),
        sa.Column("link", sa.Text(), server_default="", nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.Column("pointed", sa.Text(), server_default="", nullable=False),
        sa.Column("context", sa.Text(), server_default="", nullable=False),
        sa.Column("edited", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["id"],
            ["transcript.id"],
        ),
        sa.ForeignKeyConstraint(
            ["place"],
            ["place.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("place", "message_id"),
    )
    op.create_table(
        "heard",
        sa.Column("message", NUMBER, nullable=False),
        sa.Column("session", NUMBER, nullable=False),
        sa.Column("turn", NUMBER, nullable=True),
        sa.ForeignKeyConstraint(
            ["message"],
            ["message.id"],
        ),
        sa.ForeignKeyConstraint(
            ["session"],
            ["session.id"],
        ),
        sa.ForeignKeyConstraint(
            ["turn"],
            ["turn.id"],
        ),
        sa.PrimaryKeyConstraint("message", "session"),
    )
    op.create_index("heard_session", "heard", ["session", "message"], unique=False)
    op.create_index("heard_turn", "heard", ["turn"], unique=False)
