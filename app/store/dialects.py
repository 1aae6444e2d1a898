"""Spells SQL for the database in use, where SQLite and PostgreSQL differ.

No other module of the store spells SQL by database: it takes its words from here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnClause,
    ColumnElement,
    Connection,
    Delete,
    Dialect,
    Executable,
    Integer,
    Select,
    String,
    Table,
    column,
    delete,
    func,
    literal,
    literal_column,
    select,
    table,
    text,
)
from sqlalchemy.dialects.postgresql import dml
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

POSTGRESQL = "postgresql"

insert = dml.insert
"""An insert that may say `on conflict`: PostgreSQL's clause has all that SQLite spells of it."""

NUMBER = BigInteger().with_variant(Integer(), "sqlite")
"""A number of 64 bits: that is what SQLite's integers have, and PostgreSQL's own have 32."""

MEMORY_TEXT = "memory_text"
"""The table of the full-text search over daily logs, which `metadata` cannot describe."""
_entries = table(
    MEMORY_TEXT,
    *(column(name) for name in ("agent", "day", "number", "text", "rank", "words")),
)


def is_postgresql(dialect: Dialect) -> bool:
    """Tell whether a dialect is that of PostgreSQL."""
    return dialect.name == POSTGRESQL


def transaction(connection: Connection) -> AbstractContextManager[object]:
    """Run several statements as one; PostgreSQL's connections are in no transaction otherwise."""
    if is_postgresql(connection.dialect):
        connection.execution_options(isolation_level="READ COMMITTED")
    return connection.begin()


def where(condition: Any) -> dict[str, Any]:
    """Give the condition of a partial index to both databases."""
    return {"sqlite_where": condition, "postgresql_where": condition}


def has_table(connection: Connection, name: str) -> bool:
    """Tell whether a table is there, in any schema that is searched."""
    query = (
        text("select to_regclass(:name)")
        if is_postgresql(connection.dialect)
        else text("select name from sqlite_master where type = 'table' and name = :name")
    )
    return connection.execute(query, {"name": name}).scalar() is not None


def list_names(connection: Connection) -> frozenset[tuple[str, str, str]]:
    """List the columns and the indexes: the kind, the table, the name."""
    query = (
        "select 'column', table_name::text, column_name::text from information_schema.columns"
        " where table_schema = any(current_schemas(false)) union all"
        " select 'index', tablename::text, indexname::text from pg_indexes"
        " where schemaname = any(current_schemas(false))"
        if is_postgresql(connection.dialect)
        # What the database or its search made by itself comes and goes with what it is for.
        else "select 'column', m.name, c.name from sqlite_master m join pragma_table_info(m.name) c"
        " where m.type = 'table' and m.name not glob 'memory_text_*'"
        " and m.name not glob 'sqlite_*' union all"
        " select 'index', tbl_name, name from sqlite_master"
        " where type = 'index' and sql is not null"
    )
    return frozenset((kind, of, name) for kind, of, name in connection.exec_driver_sql(query))


def measure(connection: Connection) -> int:
    """Return how many bytes the database takes."""
    query = (
        "select pg_database_size(current_database())"
        if is_postgresql(connection.dialect)
        else "select page_count * page_size from pragma_page_count(), pragma_page_size()"
    )
    return int(connection.exec_driver_sql(query).scalar_one())


def find_next_number(connection: Connection, of: Table) -> int:
    """Return the number of a table's next row: none is used twice, not even after a deletion."""
    if is_postgresql(connection.dialect):
        query = f"select last_value + is_called::int from {of.name}_id_seq"  # noqa: S608 - our own name
        return int(connection.exec_driver_sql(query).scalar_one())
    used = text("select seq from sqlite_sequence where name = :name")
    return int(connection.execute(used, {"name": of.name}).scalar() or 0) + 1


class JsonField(FunctionElement[str]):
    """A field of a JSON column as text; on PostgreSQL null in a row whose texts it cannot read.

    Earlier versions stored NUL and halves of surrogate pairs: one such row must not fail a query.
    """

    type = String()
    name = "field"
    inherit_cache = True

    def __init__(self, within: ColumnElement[Any], name: str) -> None:
        super().__init__(within, literal(name))


@compiles(JsonField)
def _compile_field(element: JsonField, compiler: SQLCompiler, **options: Any) -> str:
    within, name = (compiler.process(each, **options) for each in element.clauses)
    return f"json_extract({within}, '$.' || {name})"


@compiles(JsonField, POSTGRESQL)
def _compile_field_on_server(element: JsonField, compiler: SQLCompiler, **options: Any) -> str:
    within, name = (compiler.process(each, **options) for each in element.clauses)
    # Without backslashes that are themselves escaped: these begin no character.
    escapes = rf"replace({within}::text, '\\', '')"
    refused = r"'\\u(0000|[dD][89a-fA-F])'"
    return f"(case when {escapes} !~ {refused} then {within} ->> {name} end)"


def delete_some(dialect: Dialect, of: Table, *which: ColumnElement[bool], limit: int) -> Delete:
    """Delete at most so many of these rows."""
    name = "ctid" if is_postgresql(dialect) else "rowid"
    address: ColumnClause[int] = literal_column(name)
    rows = select(address).select_from(of).where(*which).limit(limit)
    return delete(of).where(address.in_(rows.scalar_subquery()))


def hold_words(
    dialect: Dialect, within: ColumnElement[str], words: Sequence[str]
) -> list[ColumnElement[bool]]:
    """Require every word, in any case, with any collation of the database."""
    if is_postgresql(dialect):
        return [within.op("~", is_comparison=True)(_match_any_case(word)) for word in words]
    return [
        # SQLite's LIKE ignores the case of ASCII letters alone.
        within.contains(word, autoescape=True)
        if word.isascii()
        else within.op("GLOB", is_comparison=True)(f"*{''.join(map(_glob_any_case, word))}*")
        for word in words
    ]


def _cases_of(letter: str) -> str:
    forms = {letter, letter.lower(), letter.upper(), letter.upper().lower()}
    return "".join(sorted(form for form in forms if len(form) == 1))


def _match_any_case(word: str) -> str:
    """Write a word as a regular expression of sets of letters."""
    return "".join(
        f"[{cases}]" if len(cases := _cases_of(letter)) > 1 else re.escape(letter)
        for letter in word
    )


def _glob_any_case(letter: str) -> str:
    """Write a letter as a set of its forms; a sign that GLOB reads as more is one of a set too."""
    cases = _cases_of(letter)
    return f"[{cases}]" if len(cases) > 1 or letter in "*?[" else letter


def build_search(dialect: Dialect) -> Sequence[str]:
    """List the statements that build the full-text search."""
    if is_postgresql(dialect):
        return (
            f"create table {MEMORY_TEXT} (agent varchar not null, day varchar not null,"
            " number varchar not null, text text not null, words tsvector not null)",
            f"create index memory_text_words on {MEMORY_TEXT} using gin (words)",
            f"create index memory_text_day on {MEMORY_TEXT} (agent, day)",
        )
    return (
        f"create virtual table {MEMORY_TEXT} using fts5"
        "(agent unindexed, day unindexed, number unindexed, text,"
        " tokenize = 'unicode61 remove_diacritics 2')",
    )


def add_entries(connection: Connection, entries: Sequence[Mapping[str, str]]) -> None:
    """Let the search know entries, each with `agent`, `day`, `number` and `text`."""
    rows = [{**each, "folded": _fold(each["text"])} for each in entries]
    statement = (
        "insert into memory_text (agent, day, number, text, words)"
        " values (:agent, :day, :number, :text, to_tsvector('simple', :folded))"
        if is_postgresql(connection.dialect)
        else "insert into memory_text (agent, day, number, text)"
        " values (:agent, :day, :number, :text)"
    )
    connection.execute(text(statement), rows)


def remove_entries(agent: str, day: str | None = None) -> Delete:
    """Let the search forget a day of an agent, or all its days."""
    which = [_entries.c.agent == agent] + ([] if day is None else [_entries.c.day == day])
    return delete(_entries).where(*which)


def clear_search(connection: Connection) -> None:
    """Let the search forget everything, and leave no word of it in its index."""
    connection.execute(delete(_entries))
    if not is_postgresql(connection.dialect):
        # Else the words of deleted entries stay there.
        rebuild = table(MEMORY_TEXT, column(MEMORY_TEXT))
        connection.execute(insert(rebuild), {MEMORY_TEXT: "rebuild"})


def find_entries(
    dialect: Dialect, agent: str, words: Sequence[str], *, every: bool, limit: int
) -> Executable:
    """Find entries with any or with every word, best first."""
    found: Select[Any] = (
        select(_entries.c.day, _entries.c.number).where(_entries.c.agent == agent).limit(limit)
    )
    if is_postgresql(dialect):
        each = [func.phraseto_tsquery(text("'simple'"), _fold(word)) for word in words]
        wanted: Any = each[0]
        for one in each[1:]:
            wanted = wanted.op("&&" if every else "||")(one)
        rank = func.ts_rank(_entries.c.words, wanted)
        return found.where(_entries.c.words.op("@@")(wanted)).order_by(rank.desc())
    quoted = ('"' + word.replace('"', '""') + '"' for word in words)
    match = "text : (" + (" AND " if every else " OR ").join(quoted) + ")"
    matches = text(f"{MEMORY_TEXT} match :wanted").bindparams(wanted=match)
    return found.where(matches).order_by(_entries.c.rank)


def _fold(said: str) -> str:
    """Reduce a text to its words, without case and accents, as SQLite's search does by itself."""
    plain = unicodedata.normalize("NFKD", said)
    letters = (each for each in plain if not unicodedata.combining(each))
    return "".join(each if each.isalnum() else " " for each in letters).casefold()
