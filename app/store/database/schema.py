"""Brings a database to a migration, whole or not at all, and compares its tables with its version.

All migrations of an upgrade are one transaction, with the version: a process that is killed leaves
the database of the release before, which both releases can open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from sqlalchemy import (
    JSON,
    URL,
    Connection,
    Select,
    Text,
    cast,
    column,
    create_engine,
    inspect,
    literal_column,
    select,
    table,
    update,
)
from sqlalchemy.exc import OperationalError

from app.errors import SchemaUnfit, StoreUnavailable
from app.store.database.backend import Backend
from app.store.dialects import (
    MEMORY_TEXT,
    POSTGRESQL,
    has_table,
    is_postgresql,
    list_names,
    transaction,
)
from app.store.tables import metadata

HEAD_REVISION = "0015"
"""The newest migration; tested against the files, so that alembic need not be imported."""
REVISION_BEFORE = "0008"
"""The migration of the release before this one."""
NAMED = 5
"""How many missing names are told: a few show the cause."""

Names: TypeAlias = frozenset[tuple[str, str, str]]
"""What a schema has: the kind (`column` or `index`), the table, the name."""

_HEAD: Names = frozenset(
    [("column", of.name, each.name) for of in metadata.sorted_tables for each in of.columns]
    + [("column", MEMORY_TEXT, name) for name in ("agent", "day", "number", "text")]
)


def migrate(backend: Backend) -> None:
    """Apply missing migrations; alembic is imported only if there are any.

    Raises:
        StoreUnavailable: a newer release migrated it, or its tables do not fit its version.
    """
    with backend.engine.connect() as connection:
        found = revision_of(connection)
        if found == HEAD_REVISION:
            check_fit(connection)
            return
    if found is not None and found > HEAD_REVISION:
        raise StoreUnavailable(
            f"it is at migration {found}, and this release knows {HEAD_REVISION}. Start the newer "
            "release, or run its `agent-bridge migrate --back`"
        )
    migrate_to("head", backend)


def migrate_to(revision: str, backend: Backend, *, back: bool = False) -> None:
    """Bring the schema to a migration: forward, or `back` to an earlier one.

    Raises:
        StoreUnavailable: its tables do not fit its version.
    """
    # A server ends a transaction that is idle for long, and this takes 0.6 s or more.
    import alembic.command  # noqa: F401, PLC0415

    if not backend.is_file and not back:
        _prepare_jobs(backend.engine.url.set(drivername=POSTGRESQL))
    with backend.engine.connect() as connection, transaction(connection):
        backend.prepare_migration(connection)
        if backend.is_file and not back:
            for statement in plan_undo(connection):
                connection.exec_driver_sql(statement)
        _run(connection, revision, back=back)
        if revision == "head":
            check_fit(connection)


def _prepare_jobs(address: URL) -> None:
    """Have Procrastinate make its tables, unless a release before this one has made them."""
    from procrastinate import App, SyncPsycopgConnector  # noqa: PLC0415 - only PostgreSQL needs it
    from procrastinate.exceptions import ConnectorException  # noqa: PLC0415

    where = address.render_as_string(hide_password=False)
    with App(connector=SyncPsycopgConnector(conninfo=where, min_size=1, max_size=1)).open() as jobs:
        if jobs.check_connection():
            return
        try:
            jobs.schema_manager.apply_schema()
        except ConnectorException as error:
            if not jobs.check_connection():  # else another bridge that starts was first
                raise OperationalError("its jobs", None, error.__cause__ or error) from error


def _run(connection: Connection, revision: str, *, back: bool = False) -> None:
    # The import is needed only at the first start of a new version.
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    from alembic import command  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    config.attributes["connection"] = connection
    try:
        (command.downgrade if back else command.upgrade)(config, revision)
    except CommandError as error:
        raise SchemaUnfit(f"no release knows its migration: {error}") from error


def migrations_folder() -> Path:
    """Find the migrations: inside the installed package, else next to it in a checkout."""
    store = Path(__file__).parents[1]
    installed = store / "migrations"
    return installed if installed.is_dir() else store.parents[1] / "alembic"


def revision_of(connection: Connection) -> str | None:
    """Return the migration of a database; None if it has no tables yet."""
    if not has_table(connection, "alembic_version"):
        return None
    row = connection.exec_driver_sql("select version_num from alembic_version").first()
    return row[0] if row else None


def check_fit(connection: Connection) -> None:
    """Check that a database of the newest migration has all its tables and columns.

    Raises:
        StoreUnavailable: names those that are missing.
    """
    there = list_names(connection)
    if missing := _HEAD - there:
        _refuse_missing(HEAD_REVISION, missing, there)


def plan_undo(connection: Connection) -> list[str]:
    """List the statements that undo what a migration had done when it was cut off.

    Releases up to migration 0007 ran each statement by itself on SQLite, the version last. What
    one of them had made holds no data: it is removed, and the migration can run as a whole.

    Raises:
        StoreUnavailable: more is missing, or there, than such a migration leaves.
    """
    found, there = revision_of(connection), list_names(connection)
    if found == HEAD_REVISION or not there & _HEAD:
        return []
    before, after = _build(found)
    lost = {each for each in before - there if each[0] == "column"}
    if missing := lost & after:
        _refuse_missing(found, missing, there)
    if is_postgresql(connection.dialect):
        return []
    quote = connection.dialect.identifier_preparer.quote
    made = (after - before) & there
    new = _tables_of(made) - _tables_of(before)
    undo = []
    for name in sorted(new):
        if _holds_data(connection, name):
            _refuse(found, f"the table {name} has rows and belongs to a later migration")
        undo.append(f"drop table {quote(name)}")
    # Backwards: an index goes before the column that it is on.
    for kind, of, name in sorted(each for each in made if each[1] not in new)[::-1]:
        if kind == "index":
            undo.append(f"drop index {quote(name)}")
        elif _holds_data(connection, of, name):
            _refuse(found, f"the column {of}.{name} has values and belongs to a later migration")
        else:
            undo.append(f"alter table {quote(of)} drop column {quote(name)}")
    # Their migration drops them again, so no type is needed.
    return undo + [f"alter table {quote(of)} add column {quote(name)}" for _, of, name in lost]


def _build(revision: str | None) -> tuple[Names, Names]:
    """Build what a migration makes, and what the next one does; without a version, all of them."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        if revision is not None:
            _run(connection, revision)
        before = list_names(connection)
        _run(connection, "head" if revision is None else "+1")
        return before, list_names(connection)


def _tables_of(names: Iterable[tuple[str, str, str]]) -> set[str]:
    return {of for _, of, _ in names}


def _holds_data(connection: Connection, of: str, name: str | None = None) -> bool:
    """Tell whether a table has rows, or a column other values than its default."""
    query: Select[Any] = select(literal_column("1")).select_from(table(of)).limit(1)
    if name is not None:
        (default,) = (
            each["default"] for each in inspect(connection).get_columns(of) if each["name"] == name
        )
        query = query.where(column(name).is_distinct_from(literal_column(default or "null")))
    return connection.execute(query).first() is not None


def _refuse_missing(
    found: str | None, missing: Iterable[tuple[str, str, str]], there: Names
) -> NoReturn:
    tables = _tables_of(missing) - _tables_of(there)
    columns = {f"{of}.{name}" for _, of, name in missing if of not in tables}
    names = [*sorted(tables), *sorted(columns)]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    _refuse(found, f"missing is {', '.join(names[:NAMED])}{more}")


def _refuse(found: str | None, why: str) -> NoReturn:
    version = "it has tables and no version" if found is None else f"it is at migration {found}"
    raise SchemaUnfit(f"{version}, and its tables do not fit that: {why}")


def write_out_notes(connection: Connection, words_of: Mapping[str, str]) -> None:
    """Give rows plain words where the release before could not read the code of their note."""
    for name, kept, place in (("transcript", "data", "note"), ("post", "content", "reason")):
        rows = table(name, column("id"), column("text"), column(kept, JSON))
        stored = rows.c[kept]
        for code, words in words_of.items():
            found = select(rows.c.id, stored).where(cast(stored, Text).contains(code))
            for number, value in connection.execute(found).all():
                if (value.get(place) or {}).get("code") != code:
                    continue
                value[place] = None
                new = {"text": words} if place == "note" else {}
                value |= {} if place == "note" else {"note": words}
                change = update(rows).where(rows.c.id == number)
                connection.execute(change.values({kept: value, **new}))
