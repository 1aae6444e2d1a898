"""Sub-agents of agents, and asks that agents take back."""

import sqlalchemy as sa

from alembic import op
from app.store.database.schema import write_out_notes
from app.store.dialects import NUMBER, where

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


NEW_NOTES = {"withdrawn": "The agent took this back."}
"""Codes that the release before does not know, as plain words."""

_POST = sa.table("post", sa.column("id", sa.Integer), sa.column("content", sa.JSON))
_ASK = sa.table("ask", sa.column("state", sa.String))


def _forget_lines(connection: sa.Connection) -> None:
    """Take the lines of sub-agents out of posts, which the release before does not read."""
    for row in connection.execute(sa.select(_POST)).all():
        lines = row.content.get("delegated", ())
        if any("is_subagent" in line for line in lines):
            kept = [
                {name: line[name] for name in line if name != "is_subagent"}
                for line in lines
                if not line.get("is_subagent")
            ]
            content = {**row.content, "delegated": kept}
            connection.execute(sa.update(_POST).where(_POST.c.id == row.id).values(content=content))


def upgrade() -> None:
    op.create_table(
        "subagent",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("session", NUMBER, sa.ForeignKey("session.id"), nullable=False),
        sa.Column("turn", NUMBER, sa.ForeignKey("turn.id"), nullable=False),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("parent", sa.String, nullable=False, server_default=""),
        sa.Column("title", sa.Text, nullable=False, server_default=""),
        sa.Column("task", sa.Text, nullable=False, server_default=""),
        sa.Column("answer", sa.Text, nullable=False, server_default=""),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("can_stop", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("cost", sa.Float),
        sa.Column("currency", sa.String, nullable=False, server_default=""),
        sa.Column("began_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
        sa.UniqueConstraint("session", "key"),
        sqlite_autoincrement=True,
    )
    op.create_index("subagent_turn", "subagent", ["turn"])
    op.create_index(
        "subagent_running", "subagent", ["session"], **where(sa.text("ended_at IS NULL"))
    )


def downgrade() -> None:
    connection = op.get_bind()
    write_out_notes(connection, NEW_NOTES)
    _forget_lines(connection)
    connection.execute(sa.update(_ASK).where(_ASK.c.state == "withdrawn").values(state="cancelled"))
    op.drop_table("subagent")
