"""Agents as people: hand-over, managed conversations, schedules, and what agents remember."""

import sqlalchemy as sa

from alembic import op
from app.store.dialects import NUMBER, build_search

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("place", sa.Column("holder", sa.String))
    op.add_column("place", sa.Column("predecessor", sa.String))
    op.add_column("place", sa.Column("named", sa.Text))
    op.add_column("place", sa.Column("pinned_at", sa.Float))
    op.add_column("place", sa.Column("archived_at", sa.Float))
    op.add_column("place", sa.Column("forked_from", sa.String))
    op.add_column("place", sa.Column("deleted_at", sa.Float))
    op.create_table(
        "forgotten",
        sa.Column("mark", sa.String, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("forgotten_at", "forgotten", ["at"])
    op.add_column("session", sa.Column("standing", sa.JSON))
    op.add_column("turn", sa.Column("system", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "schedule",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("agent", sa.String, nullable=False),
        sa.Column("service", sa.String, nullable=False),
        sa.Column("external", sa.String, nullable=False),
        sa.Column("place", sa.String, nullable=False),
        sa.Column("expression", sa.String, nullable=False),
        sa.Column("zone", sa.String, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("creator_id", sa.String, nullable=False),
        sa.Column("creator_name", sa.String, nullable=False),
        sa.Column("creator_number", sa.String, nullable=False, server_default=""),
        sa.Column("state", sa.String, nullable=False, server_default="active"),
        sa.Column("reason", sa.Text, nullable=False, server_default=""),
        sa.Column("due_at", sa.Float, nullable=False),
        sa.Column("failures", NUMBER, nullable=False, server_default="0"),
        sa.Column("origin", sa.String, nullable=False, unique=True),
        sa.Column("created_at", sa.Float, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("schedule_due", "schedule", ["state", "due_at"])
    op.create_table(
        "memory_note",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("agent", sa.String, nullable=False),
        sa.Column("session", NUMBER, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("ask", NUMBER),
        sa.Column("at", sa.Float, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("memory_note_state", "memory_note", ["state", "id"])
    op.create_index("memory_note_ask", "memory_note", ["ask"])
    op.create_table(
        "memory_day",
        sa.Column("agent", sa.String, primary_key=True),
        sa.Column("day", sa.String, primary_key=True),
        sa.Column("version", sa.String, nullable=False),
    )
    for statement in build_search(op.get_bind().dialect):
        op.execute(statement)
