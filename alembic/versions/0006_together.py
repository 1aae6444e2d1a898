"""Agents together: what agents ask of each other, and what reviewers find."""

import sqlalchemy as sa

from alembic import op
from app.store.dialects import NUMBER, where

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "message", sa.Column("speaker_number", sa.String, nullable=False, server_default="")
    )
    op.add_column("ask", sa.Column("host", NUMBER))
    op.add_column("ask", sa.Column("speaker", sa.String, nullable=False, server_default=""))
    op.add_column(
        "session",
        sa.Column("read_others", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.add_column("checkout", sa.Column("title", sa.Text, nullable=False, server_default=""))
    op.add_column("checkout", sa.Column("body", sa.Text, nullable=False, server_default=""))
    op.create_index("ask_host", "ask", ["host", "id"], **where(sa.text("state = 'open'")))
    op.create_table(
        "delegation",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("agent", sa.String, nullable=False),
        sa.Column("caller_session", NUMBER, sa.ForeignKey("session.id"), nullable=False),
        sa.Column("caller_turn", NUMBER, sa.ForeignKey("turn.id")),
        sa.Column("session", NUMBER, sa.ForeignKey("session.id"), nullable=False),
        sa.Column("turn", NUMBER, sa.ForeignKey("turn.id"), nullable=False, unique=True),
        sa.Column("root_place", NUMBER, sa.ForeignKey("place.id"), nullable=False),
        sa.Column("root_session", NUMBER, sa.ForeignKey("session.id"), nullable=False),
        sa.Column("root_turn", NUMBER, sa.ForeignKey("turn.id")),
        sa.Column("depth", NUMBER, nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False, server_default=""),
        sa.Column("workspace", sa.String, nullable=False, server_default=""),
        sa.Column("group", sa.String, nullable=False, server_default=""),
        sa.Column("round", NUMBER, nullable=False, server_default="1"),
        sa.Column("person_id", sa.String, nullable=False),
        sa.Column("person_name", sa.String, nullable=False),
        sa.Column("person_number", sa.String, nullable=False, server_default=""),
        sa.Column("told_at", sa.Float),
        sa.Column("shown_at", sa.Float),
        sa.Column("created_at", sa.Float, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("delegation_caller", "delegation", ["caller_turn"])
    op.create_index("delegation_caller_session", "delegation", ["caller_session", "id"])
    op.create_index("delegation_session", "delegation", ["session"])
    op.create_index("delegation_root", "delegation", ["root_place", "id"])
    op.create_index("delegation_root_turn", "delegation", ["root_turn"])
    op.create_index("delegation_group", "delegation", ["group"])
    op.create_table(
        "review",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("session", NUMBER, sa.ForeignKey("session.id"), nullable=False),
        sa.Column("turn", NUMBER, sa.ForeignKey("turn.id"), nullable=False, unique=True),
        sa.Column("author_session", NUMBER, sa.ForeignKey("session.id")),
        sa.Column("verdict", sa.String, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("findings", sa.JSON, nullable=False),
        sa.Column("repository", sa.String, nullable=False, server_default=""),
        sa.Column("branch", sa.String, nullable=False, server_default=""),
        sa.Column("commit", sa.String, nullable=False, server_default=""),
        sa.Column("link", sa.Text, nullable=False, server_default=""),
        sa.Column("state", sa.String, nullable=False, server_default="given"),
        sa.Column("at", sa.Float, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("review_author", "review", ["author_session", "id"])
