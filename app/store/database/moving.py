"""Moves a store from a SQLite file to PostgreSQL: every row as it is, in batches, then checked.

The file is only read. A move that was cut off goes on where it ended. Until all rows are checked,
no bridge starts on the new database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Engine,
    Insert,
    Table,
    Text,
    bindparam,
    cast,
    column,
    func,
    insert,
    literal_column,
    select,
    table,
    text,
    tuple_,
)
from sqlalchemy.exc import DatabaseError
from sqlalchemy.types import TypeDecorator, TypeEngine

from app.errors import Conflict, StoreUnavailable
from app.model.text import clean_text
from app.store.database import MOVING, Database
from app.store.database.backend import clean_written
from app.store.dialects import MEMORY_TEXT, add_entries, has_table, transaction
from app.store.tables import metadata

AT_ONCE = 1_000
"""Rows per commit: a move that was cut off repeats no more than these."""
_LOCK = "select pg_try_advisory_lock(1652191591, 1)"
"""Two moves never write to one database at the same time."""
_ROW: ColumnElement[int] = literal_column("rowid")

Tell = Callable[[str, int], None]
"""Is told a table's name, and how many rows of it are there and checked."""


@dataclass(frozen=True, slots=True)
class _Copied:
    """A table by its raw values: what is sealed stays sealed, JSON is the text that it is."""

    name: str
    raw: Any
    columns: tuple[Any, ...]
    """What is read, from either database."""
    key: tuple[str, ...]
    texts: frozenset[str]
    """The names of the columns that hold JSON."""
    add: Callable[[Connection, list[dict[str, Any]]], object]

    @property
    def places(self) -> list[int]:
        """The positions of the key among the columns."""
        return [index for index, each in enumerate(self.raw.c) if each.name in self.key]


def move(source: Database, target: Database, owner: str, tell: Tell) -> None:
    """Move all rows of a file to a server, and check each of them.

    `owner` identifies the installation: a move that another one began is not continued.

    Raises:
        Conflict: the target holds other data, or another move runs.
        StoreUnavailable: one of the databases failed; the move can be tried again.
    """
    try:
        target.upgrade()
        with _alone(target.engine):
            _begin(target.engine, owner)
            copied = [*map(_copy_of, metadata.sorted_tables), _entries()]
            _copy_all(source.engine, target.engine, copied)
            if not _check_all(source.engine, target.engine, copied, tell):
                # The file has changed since a move was cut off.
                _clear(target.engine)
                _begin(target.engine, owner)
                _copy_all(source.engine, target.engine, copied)
                if not _check_all(source.engine, target.engine, copied, tell):
                    raise Conflict("the rows of both databases differ; was the file changed?")
            _finish(source.engine, target.engine)
    except DatabaseError as error:
        cause = " ".join(str(error.orig).split())
        raise StoreUnavailable(cause, "Run the same command again: it goes on there.") from error


@contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    with engine.connect() as connection:
        if not connection.exec_driver_sql(_LOCK).scalar():
            raise Conflict("another move to this database is running")
        try:
            yield
        finally:
            connection.invalidate()  # the lock ends with the connection


def _begin(engine: Engine, owner: str) -> None:
    """Begin a move, or go on with the one that the same installation began."""
    with engine.connect() as connection, transaction(connection):
        if has_table(connection, MOVING):
            found = connection.execute(text(f"select owner from {MOVING}")).scalars().first()  # noqa: S608
            if found not in (None, owner):
                raise Conflict("another installation is being moved there; name another database")
            return
        for each in metadata.sorted_tables:
            if connection.execute(select(literal_column("1")).select_from(each)).first():
                raise Conflict("that database already holds data; name an empty one")
        connection.execute(
            text(f"create table {MOVING} (name varchar primary key, last bigint, owner varchar)")
        )
        _note(connection, "", 0, owner)


def _note(connection: Connection, name: str, last: int, owner: str | None = None) -> None:
    statement = text(
        f"insert into {MOVING} (name, last, owner) values (:name, :last, :owner)"  # noqa: S608
        " on conflict (name) do update set last = excluded.last"
    )
    connection.execute(statement, {"name": name, "last": last, "owner": owner})


def _copy_all(source: Engine, target: Engine, copied: Sequence[_Copied]) -> None:
    for each in copied:
        with target.connect() as connection:
            query = text(f"select last from {MOVING} where name = :name")  # noqa: S608
            last = connection.execute(query, {"name": each.name}).scalar() or 0
        for number, rows in _read(source, each, last):
            named = [dict(zip(each.raw.c.keys(), row, strict=True)) for row in rows]
            with target.connect() as connection, transaction(connection):
                each.add(connection, named)
                _note(connection, each.name, number)


def _check_all(source: Engine, target: Engine, copied: Sequence[_Copied], tell: Tell) -> bool:
    """Compare every row of the file with that of the server, and their numbers."""
    for each in copied:
        places, checked = each.places, 0
        with target.connect() as connection:
            for _, rows in _read(source, each, 0):
                keys = [tuple(row[place] for place in places) for row in rows]
                own = tuple_(*(each.raw.c[name] for name in each.key))
                query = select(*each.columns).where(own.in_(keys))
                found = [tuple(row) for row in connection.execute(query)]
                there = {tuple(row[place] for place in places): row for row in found}
                for key, row in zip(keys, rows, strict=True):
                    if there.get(key) != row:
                        return False
                checked += len(rows)
            if connection.execute(select(func.count()).select_from(each.raw)).scalar() != checked:
                return False
        tell(each.name, checked)
    return True


def _read(source: Engine, each: _Copied, last: int) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
    """Read the rows of a file after one of them, in batches; each with the number of its last."""
    with source.connect() as connection:
        while True:
            query = select(_ROW, *each.columns).select_from(each.raw).order_by(_ROW).limit(AT_ONCE)
            rows = connection.execute(query.where(last < _ROW)).all()
            if not rows:
                return
            last = rows[-1][0]
            yield last, [_clean(each, row[1:]) for row in rows]


def _clean(each: _Copied, row: Sequence[Any]) -> tuple[Any, ...]:
    """Replace what a server refuses, which a file takes."""
    return tuple(
        value
        if not isinstance(value, str)
        else clean_text(clean_written(value) if name in each.texts else value)
        for name, value in zip(each.raw.c.keys(), row, strict=True)
    )


def _finish(source: Engine, target: Engine) -> None:
    """Let new rows go on with the numbers of the file, and let bridges start."""
    with source.connect() as connection:
        rows = connection.execute(text("select name, seq from sqlite_sequence"))
        used: dict[str, int] = {row.name: row.seq for row in rows}
        for each in metadata.sorted_tables:
            if (own := each.autoincrement_column) is not None:
                highest = connection.execute(select(func.max(own))).scalar() or 0
                used[each.name] = max(used.get(each.name, 0), highest)
    with target.connect() as connection, transaction(connection):
        for each in metadata.sorted_tables:
            own = each.autoincrement_column
            if own is not None and used[each.name]:
                sequence = func.pg_get_serial_sequence(f'"{each.name}"', own.name)
                connection.execute(select(func.setval(sequence, used[each.name])))
        connection.execute(text(f"drop table {MOVING}"))


def _clear(engine: Engine) -> None:
    names = ", ".join(f'"{each}"' for each in (*metadata.tables, MEMORY_TEXT))
    with engine.connect() as connection, transaction(connection):
        connection.execute(text(f"truncate {names}"))
        connection.execute(text(f"drop table {MOVING}"))


def _copy_of(of: Table) -> _Copied:
    kinds = {each.name: _plain(each.type) for each in of.columns}
    raw = table(of.name, *(column(name, kind) for name, kind in kinds.items()))
    texts = frozenset(name for name, kind in kinds.items() if isinstance(kind, JSON))
    columns = tuple(
        cast(each, Text).label(each.name) if each.name in texts else each for each in raw.c
    )
    given = {
        name: cast(bindparam(name, type_=Text), JSON) if name in texts else bindparam(name)
        for name in kinds
    }
    key = tuple(each.name for each in of.columns if each.primary_key)
    return _Copied(of.name, raw, columns, key, texts, partial(_insert, insert(raw).values(given)))


def _insert(statement: Insert, connection: Connection, rows: list[dict[str, Any]]) -> None:
    connection.execute(statement, rows)


def _entries() -> _Copied:
    names = ("agent", "day", "number", "text")
    raw = table(MEMORY_TEXT, *(column(name, Text) for name in names))
    return _Copied(MEMORY_TEXT, raw, tuple(raw.c), names[:3], frozenset(), add_entries)


def _plain(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    return kind.impl_instance if isinstance(kind, TypeDecorator) else kind
