"""Several bridges on one database, and what operating them needs."""

import sqlalchemy as sa

from alembic import op
from app.store.dialects import NUMBER
from app.store.rollback import write_out_notes

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "member",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("epoch", NUMBER, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("slots", NUMBER, nullable=False),
        sa.Column("load", sa.JSON, nullable=False),
        sa.Column("beats", NUMBER, nullable=False),
        sa.Column("commits", NUMBER, nullable=False, server_default="0"),
        sa.Column("engine", NUMBER),
        sa.Column("seen_at", sa.Float, nullable=False),
    )
    op.create_table(
        "machine",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("seen_at", sa.Float, nullable=False),
    )
    op.create_table(
        "duty",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("member", sa.String, nullable=False),
    )
    op.add_column("session", sa.Column("served_by", sa.String))
    op.create_table(
        "progress",
        sa.Column("post", NUMBER, sa.ForeignKey("post.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("content", sa.JSON, nullable=False),
    )
    op.create_table(
        "suspension",
        sa.Column("scope", sa.String, primary_key=True),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
    )
    for name in ("saved", "machine"):
        column = sa.Column(name, sa.String, nullable=False, server_default="")
        op.add_column("checkout", column)
    op.create_table(
        "saved_folder",
        sa.Column("session", NUMBER, sa.ForeignKey("session.id"), primary_key=True),
        sa.Column("kind", sa.String, primary_key=True),
        sa.Column("saved", sa.String, nullable=False),
        sa.Column("machine", sa.String, nullable=False),
    )
    op.create_table(
        "spending",
        sa.Column("day", sa.String, primary_key=True),
        sa.Column("share", sa.String, primary_key=True),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("usd", sa.Float, nullable=False),
    )
    if op.get_bind().dialect.name == "postgresql":
        _run(_schema_of_jobs())


def downgrade() -> None:
    write_out_notes(op.get_bind(), NEW_NOTES)
    if op.get_bind().dialect.name == "postgresql":
        _run(_DROP_JOBS)
    op.drop_table("saved_folder")
    for name in ("machine", "saved"):
        op.drop_column("checkout", name)
    op.drop_table("spending")
    op.drop_table("suspension")
    op.drop_table("progress")
    op.drop_column("session", "served_by")
    op.drop_table("duty")
    op.drop_table("machine")
    op.drop_table("member")


NEW_NOTES = {
    "suspended": "The operator had paused the work here.",
}
"""Codes that the release before does not know, as plain words."""


_DROP_JOBS = """
drop table procrastinate_events, procrastinate_periodic_defers, procrastinate_jobs,
    procrastinate_workers cascade;
do $$ declare each record; begin
    for each in select p.oid::regprocedure as name from pg_proc p
        where proname like 'procrastinate\\_%' and pronamespace = current_schema()::regnamespace
    loop execute 'drop function ' || each.name || ' cascade'; end loop;
end $$;
drop type procrastinate_job_to_defer_v1, procrastinate_job_event_type, procrastinate_job_status;
"""


def _schema_of_jobs() -> str:
    from procrastinate.schema import SchemaManager  # noqa: PLC0415 - only PostgreSQL needs it

    return SchemaManager.get_schema()


def _run(script: str) -> None:
    """Run several statements as they are: `%` in them is no placeholder."""
    with op.get_bind().connection.cursor() as cursor:
        cursor.execute(script)
