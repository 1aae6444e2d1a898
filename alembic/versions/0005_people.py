"""Agents as people: whose turn it is in a place, conversations that are managed, schedules."""

import sqlalchemy as sa

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("place", sa.Column("holder", sa.String))
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
    op.create_table(
        "schedule",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("agent", sa.String, nullable=False),
        sa.Column("service", sa.String, nullable=False),
        sa.Column("external", sa.String, nullable=False),
        sa.Column("place", sa.String, nullable=False),
        sa.Column("expression", sa.String, nullable=False),
        sa.Column("zone", sa.String, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("creator_id", sa.String, nullable=False),
        sa.Column("creator_name", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False, server_default="active"),
        sa.Column("reason", sa.Text, nullable=False, server_default=""),
        sa.Column("due_at", sa.Float, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
        sa.Column("created_at", sa.Float, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("schedule_due", "schedule", ["state", "due_at"])
