"""What brought each message, and when it was said."""

import sqlalchemy as sa

from alembic import op
from app.store.dialects import NUMBER

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("decision", sa.Column("delivery", NUMBER))
    op.add_column("decision", sa.Column("sent_at", sa.Float))


def downgrade() -> None:
    op.drop_column("decision", "sent_at")
    op.drop_column("decision", "delivery")
