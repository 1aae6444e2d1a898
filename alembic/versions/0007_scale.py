"""Several bridges on one database, and what operating them needs."""

import sqlalchemy as sa

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "suspension",
        sa.Column("scope", sa.String, primary_key=True),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("suspension")
