"""Turns that agents begin, the work that goes on between turns, and what could not be shown."""

import sqlalchemy as sa

from alembic import op
from app.store.database.schema import write_out_notes
from app.store.dialects import NUMBER

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


NEW_NOTES = {
    "woken": "The agent began this turn by itself.",
    "own_turn_cut": "The bridge restarted while the agent worked by itself.",
    "own_turns_limit": "The agent began more turns by itself than it may.",
    "work_lost": "Work in the background was lost.",
    "work_ended": "Work in the background was ended.",
}
"""Codes that the release before does not know, as plain words."""


def upgrade() -> None:
    op.add_column("turn", sa.Column("woken_by", sa.String))
    op.add_column("turn", sa.Column("about", sa.Text, nullable=False, server_default=""))
    op.add_column("turn", sa.Column("origin", NUMBER))
    op.add_column("session", sa.Column("unshown", sa.JSON))
    op.create_table(
        "background_work",
        sa.Column("session", NUMBER, sa.ForeignKey("session.id"), primary_key=True),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("about", sa.Text, nullable=False, server_default=""),
        sa.Column("turn", NUMBER),
        sa.Column("began_at", sa.Float, nullable=False),
        sa.Column("lost", sa.Boolean, nullable=False, server_default=sa.false()),
    )


def downgrade() -> None:
    connection = op.get_bind()
    write_out_notes(connection, NEW_NOTES)
    turn = sa.table("turn", sa.column("state"), sa.column("woken_by"), sa.column("ended_at"))
    # The release before would prompt them, with nothing to say.
    connection.execute(
        sa.update(turn)
        .where(turn.c.woken_by.is_not(None), turn.c.ended_at.is_(None))
        .values(state="failed", ended_at=0.0)
    )
    op.drop_table("background_work")
    op.drop_column("session", "unshown")
    for name in ("origin", "about", "woken_by"):
        op.drop_column("turn", name)
