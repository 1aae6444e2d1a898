"""Grants that the bridge keeps itself, how agents were isolated, and attributes of sessions."""

import sqlalchemy as sa

from alembic import op
from app.store.database.schema import write_out_notes
from app.store.dialects import NUMBER

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


NEW_NOTES: dict[str, str] = {}
"""Codes that the release before does not know, as plain words."""


def upgrade() -> None:
    op.create_table(
        "grant",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("session", NUMBER, sa.ForeignKey("session.id"), nullable=False),
        sa.Column("generation", NUMBER, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("extent", sa.String, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("granted_by", sa.String, nullable=False),
        sa.Column("speaker", sa.String, nullable=False, server_default=""),
        sa.Column("ask", NUMBER),
        sa.Column("granted_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
        sa.Column("ended_by", sa.String, nullable=False, server_default=""),
        sqlite_autoincrement=True,
    )
    op.create_index("grant_session", "grant", ["session", "digest"])
    op.add_column("ask", sa.Column("scopes", sa.JSON))
    for name in ("title", "source", "isolation", "isolation_was"):
        op.add_column("agent", sa.Column(name, sa.String, nullable=False, server_default=""))
    op.add_column("session", sa.Column("attributes", sa.JSON))
    for name in ("branch", "folder"):
        op.add_column("delegation", sa.Column(name, sa.String, nullable=False, server_default=""))


def downgrade() -> None:
    write_out_notes(op.get_bind(), NEW_NOTES)
    for name in ("folder", "branch"):
        op.drop_column("delegation", name)
    op.drop_column("session", "attributes")
    for name in ("isolation_was", "isolation", "source", "title"):
        op.drop_column("agent", name)
    op.drop_column("ask", "scopes")
    op.drop_table("grant")
