"""What brought each message and when it was said, and copies of asks."""

import sqlalchemy as sa

from alembic import op
from app.store.database.schema import write_out_notes
from app.store.dialects import NUMBER

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

NEW_NOTES = {"ask_waits": "This has been waiting for an answer."}
"""Codes that the release before does not know, as plain words."""

_POST = sa.table("post", sa.column("id", sa.Integer), sa.column("content", sa.JSON))


def _forget_mentions(connection: sa.Connection) -> None:
    """Take out of posts what the release before does not read."""
    for row in connection.execute(sa.select(_POST)).all():
        if "mentions" in row.content:
            content = {key: row.content[key] for key in row.content if key != "mentions"}
            connection.execute(sa.update(_POST).where(_POST.c.id == row.id).values(content=content))


def upgrade() -> None:
    op.add_column("decision", sa.Column("delivery", NUMBER))
    op.add_column("decision", sa.Column("sent_at", sa.Float))


def downgrade() -> None:
    write_out_notes(op.get_bind(), NEW_NOTES)
    _forget_mentions(op.get_bind())
    op.drop_column("decision", "sent_at")
    op.drop_column("decision", "delivery")
