"""The record: a chain of what was decided, run, pushed and posted."""

import sqlalchemy as sa

from alembic import op
from app.store.dialects import NUMBER

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TEXTS = (
    "agent",
    "place",
    "repository",
    "asked_by",
    "asked_id",
    "decided_by",
    "decided_id",
    "rule",
    "what",
    "ref",
)


def upgrade() -> None:
    op.create_table(
        "record",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("outcome", sa.String, nullable=False),
        sa.Column("source", sa.String, nullable=False, unique=True),
        sa.Column("session", NUMBER),
        sa.Column("turn", NUMBER),
        *(sa.Column(name, sa.Text) for name in TEXTS),
        sa.Column("salts", sa.JSON, nullable=False),
        sa.Column("digests", sa.JSON, nullable=False),
        sa.Column("erases", sa.JSON, nullable=False),
        sa.Column("previous", sa.String, nullable=False),
        sa.Column("hash", sa.String, nullable=False),
    )
    op.create_index("record_turn", "record", ["turn"])
    op.create_index("record_session", "record", ["session"])
    op.create_index("record_ref", "record", ["ref"])
    op.create_table(
        "record_position",
        sa.Column("source", sa.String, primary_key=True),
        sa.Column("number", NUMBER, nullable=False),
    )
    op.create_table(
        "record_pending",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("number", NUMBER, nullable=False),
    )
    op.create_index("record_pending_source", "record_pending", ["source", "number"])


def downgrade() -> None:
    for name in ("record_pending", "record_position", "record"):
        op.drop_table(name)
