"""Words that go into running turns."""

import sqlalchemy as sa

from alembic import op
from app.store.database.schema import write_out_notes

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


NEW_NOTES = {
    "ask_waits": "This question still waits for an answer.",
    "steered": "Taken into the running turn.",
}
"""Codes that the release before does not know, as plain words."""
POST_BEFORE = frozenset(
    {
        *("kind", "state", "text", "note", "reason", "plan", "tools", "thought", "narrated"),
        *("outcome", "facts", "agent", "ask", "options", "free_text", "url", "view", "verbosity"),
        *("asker", "message_id", "files", "delegated"),
    }
)
"""What the release before reads of a post's content; it refuses more."""

_POST = sa.table("post", sa.column("id", sa.Integer), sa.column("content", sa.JSON))


def _cut_posts(connection: sa.Connection) -> None:
    """Take out of posts what the release before does not read."""
    for row in connection.execute(sa.select(_POST)).all():
        if not row.content.keys() <= POST_BEFORE:
            content = {key: row.content[key] for key in row.content if key in POST_BEFORE}
            connection.execute(sa.update(_POST).where(_POST.c.id == row.id).values(content=content))


def upgrade() -> None:
    op.add_column("heard", sa.Column("steered", sa.String))
    op.add_column(
        "turn", sa.Column("steerable", sa.Boolean, nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    write_out_notes(op.get_bind(), NEW_NOTES)
    _cut_posts(op.get_bind())
    op.drop_column("turn", "steerable")
    op.drop_column("heard", "steered")
