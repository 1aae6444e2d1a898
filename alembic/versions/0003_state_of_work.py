"""Clones keep how much changed in them, and the checks and the review of what they propose."""

import sqlalchemy as sa

from alembic import op
from app.store.dialects import NUMBER

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("checkout", sa.Column("checks", sa.String, nullable=False, server_default=""))
    op.add_column("checkout", sa.Column("review", sa.String, nullable=False, server_default=""))
    op.add_column("checkout", sa.Column("files", NUMBER))
    op.add_column("checkout", sa.Column("added", NUMBER, nullable=False, server_default="0"))
    op.add_column("checkout", sa.Column("removed", NUMBER, nullable=False, server_default="0"))
