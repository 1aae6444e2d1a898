"""Words that go into running turns."""

import sqlalchemy as sa

from alembic import op
from app.store.database.schema import write_out_notes

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


NEW_NOTES = {"steered": "Taken into the running turn."}
"""Codes that the release before does not know, as plain words."""


def upgrade() -> None:
    op.add_column("heard", sa.Column("steered", sa.String))
    op.add_column(
        "turn", sa.Column("steerable", sa.Boolean, nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    write_out_notes(op.get_bind(), NEW_NOTES)
    op.drop_column("turn", "steerable")
    op.drop_column("heard", "steered")
