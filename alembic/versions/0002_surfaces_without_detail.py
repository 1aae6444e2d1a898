"""Surfaces keep no detail: nothing ever read or wrote it."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("surface", "detail")
