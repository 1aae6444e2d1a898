"""Agents have an id of their own; entries that people add are kept here, sealed."""

import sqlalchemy as sa

from alembic import op
from app.store.dialects import where

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agent",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("entry", sa.LargeBinary),
        sa.Column("credentials", sa.LargeBinary),
        sa.Column("former", sa.JSON, nullable=False),
        sa.Column("known_as", sa.JSON, nullable=False),
        sa.Column("is_default", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("removed_at", sa.Float),
    )
    op.create_index(
        "agent_name", "agent", ["name"], unique=True, **where(sa.text("removed_at IS NULL"))
    )
    # Until now the name was what rows referred to, so it is the id of every agent that there is.
    op.execute(
        "insert into agent (id, name, former, known_as, created_at)"
        " select agent, agent, '[]', '[]', min(created_at) from session group by agent"
    )
