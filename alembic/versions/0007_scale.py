"""Several bridges on one database, and what operating them needs."""

import sqlalchemy as sa

from alembic import op
from app.store.database.schema import write_out_notes
from app.store.dialects import NUMBER

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "member",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("epoch", NUMBER, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("slots", NUMBER, nullable=False),
        sa.Column("load", sa.JSON, nullable=False),
        sa.Column("beats", NUMBER, nullable=False),
        sa.Column("commits", NUMBER, nullable=False, server_default="0"),
        sa.Column("engine", NUMBER),
        sa.Column("seen_at", sa.Float, nullable=False),
    )
    op.create_table(
        "machine",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("seen_at", sa.Float, nullable=False),
    )
    op.create_table(
        "duty",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("member", sa.String, nullable=False),
    )
    op.add_column("session", sa.Column("served_by", sa.String))
    op.create_table(
        "progress",
        sa.Column("post", NUMBER, sa.ForeignKey("post.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("content", sa.JSON, nullable=False),
    )
    op.create_table(
        "suspension",
        sa.Column("scope", sa.String, primary_key=True),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
    )
    for name in ("saved", "machine"):
        column = sa.Column(name, sa.String, nullable=False, server_default="")
        op.add_column("checkout", column)
    op.create_table(
        "saved_folder",
        sa.Column("session", NUMBER, sa.ForeignKey("session.id"), primary_key=True),
        sa.Column("kind", sa.String, primary_key=True),
        sa.Column("saved", sa.String, nullable=False),
        sa.Column("machine", sa.String, nullable=False),
    )
    op.create_table(
        "spending",
        sa.Column("day", sa.String, primary_key=True),
        sa.Column("share", sa.String, primary_key=True),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("usd", sa.Float, nullable=False),
    )


def downgrade() -> None:
    write_out_notes(op.get_bind(), NEW_NOTES)
    op.drop_table("saved_folder")
    for name in ("machine", "saved"):
        op.drop_column("checkout", name)
    op.drop_table("spending")
    op.drop_table("suspension")
    op.drop_table("progress")
    op.drop_column("session", "served_by")
    op.drop_table("duty")
    op.drop_table("machine")
    op.drop_table("member")


NEW_NOTES = {
    "suspended": "The operator had paused the work here.",
}
"""Codes that the release before does not know, as plain words."""
