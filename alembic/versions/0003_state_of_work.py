"""Clones keep how much changed in them, and the checks and the review of what they propose."""

import sqlalchemy as sa

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("checkout", sa.Column("checks", sa.String, nullable=False, server_default=""))
    op.add_column("checkout", sa.Column("review", sa.String, nullable=False, server_default=""))
    op.add_column("checkout", sa.Column("files", sa.Integer))
    op.add_column("checkout", sa.Column("added", sa.Integer, nullable=False, server_default="0"))
    op.add_column("checkout", sa.Column("removed", sa.Integer, nullable=False, server_default="0"))
