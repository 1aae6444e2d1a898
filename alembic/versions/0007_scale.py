"""Several bridges on one database, and what operating them needs."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what several bridges on one database need."""
    for name in ("saved", "machine"):
        column = sa.Column(name, sa.String, nullable=False, server_default="")
        op.add_column("checkout", column)


def downgrade() -> None:
    """Go back to one bridge on one database."""
    for name in ("machine", "saved"):
        op.drop_column("checkout", name)
