"""What was found late, how far platforms were compared, and when events did not arrive."""

import sqlalchemy as sa

from alembic import op
from app.store.dialects import NUMBER

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("delivery", sa.Column("sent_at", sa.Float))
    op.add_column("message", sa.Column("sent_at", sa.Float))
    op.create_table(
        "position",
        sa.Column("adapter", sa.String, primary_key=True),
        sa.Column("source", sa.String, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "gap",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("adapter", sa.String, nullable=False),
        sa.Column("began", sa.Float, nullable=False),
        sa.Column("ended", sa.Float, nullable=False),
        sa.Column("cause", sa.String, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("gap_ended", "gap", ["ended", "adapter"])


def downgrade() -> None:
    op.drop_table("gap")
    op.drop_table("position")
    op.drop_column("message", "sent_at")
    op.drop_column("delivery", "sent_at")
