"""People who sign in, and their tokens."""

import sqlalchemy as sa

from alembic import op
from app.store.dialects import NUMBER

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


_LOGIN = sa.table(
    "login",
    sa.column("person", NUMBER),
    sa.column("used_at", sa.Float),
    sa.column("proved_at", sa.Float),
)


def upgrade() -> None:
    op.create_table(
        "person",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("provider", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("seen_at", sa.Float),
        sa.Column("disabled_at", sa.Float),
        sqlite_autoincrement=True,
    )
    op.create_index("person_subject", "person", ["provider", "subject"], unique=True)
    op.create_table(
        "token",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("person", NUMBER, sa.ForeignKey("person.id"), nullable=False),
        sa.Column("hash", sa.String, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.Column("used_at", sa.Float),
        sa.Column("revoked_at", sa.Float),
    )
    op.create_index("token_person", "token", ["person"])
    op.add_column("login", sa.Column("person", NUMBER))
    op.add_column("login", sa.Column("proved_at", sa.Float))
    op.create_index("login_person", "login", ["person"])
    op.execute(sa.update(_LOGIN).values(proved_at=_LOGIN.c.used_at))


def downgrade() -> None:
    # The release before takes every log-in for that of an admin.
    op.execute(sa.delete(_LOGIN).where(_LOGIN.c.person.is_not(None)))
    op.drop_index("login_person", "login")
    op.drop_column("login", "proved_at")
    op.drop_column("login", "person")
    op.drop_table("token")
    op.drop_table("person")
