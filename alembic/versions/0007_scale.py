"""Several bridges on one database, and what operating them needs."""

import sqlalchemy as sa

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "progress",
        sa.Column(
            "post", sa.Integer, sa.ForeignKey("post.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("content", sa.JSON, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("progress")
