"""Takes a text out of every row: all columns of all tables are read, and written without it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    LargeBinary,
    Row,
    String,
    Table,
    UniqueConstraint,
    and_,
    delete,
    select,
    type_coerce,
    update,
)
from sqlalchemy.types import TypeDecorator

from app.features.erasing.model import Purge, Trail
from app.model.keys import SessionKey
from app.model.record import TEXTS
from app.store.database import Store, write
from app.store.dialects import clear_search, transaction
from app.store.guarding import Kept, Shown, ShownJson, guard_of
from app.store.record import erase
from app.store.sealed import put_sealed
from app.store.tables import (
    agent,
    grant,
    machine,
    memory_day,
    metadata,
    post,
    record,
    sealed,
    surface,
    turn,
)
from app.vault import Known, cross_out

AT_ONCE = 200
"""Rows per commit."""
_PREFIX = "purged:"
_IN_USE = frozenset({agent})
"""Tables whose content the bridge works with: what is in them can only be replaced."""
_BRANCH = "branch"
"""The column that git reads: it gets the name that the branch has on disk by now."""
_ADDRESSES = frozenset({"external", "marker", "remote_id"})
"""Columns by which platforms and other rows are found, in any table."""


@dataclass(frozen=True, slots=True)
class _Hit:
    """A row that holds the text."""

    table: Table
    key: tuple[Any, ...]
    held: tuple[str, ...]
    """The columns that hold it."""
    fixed: tuple[str, ...]
    """Those of them that cannot be changed."""
    session: int | None
    place: int | None
    turn: int | None


class PurgeStore(Store):
    """What was purged, and the rows that a text is taken out of."""

    async def list(self) -> Sequence[Purge]:
        """List all purges, the first one first."""
        return await self._database.read(_purges)

    def texts(self) -> Sequence[str]:
        """List the texts that were purged: they count as secrets."""
        return [each.text for each in self._database.look(_purges)]

    @write
    def keep(self, connection: Connection, purge: Purge) -> None:
        """Store a purge, sealed, in place of what is known of it."""
        stored = {
            "text": purge.text,
            "keys": sorted(str(key) for key in purge.keys),
            "is_done": purge.is_done,
            "sessions": sorted(purge.sessions),
            "away": sorted(purge.away),
        }
        put_kept(connection, f"{_PREFIX}{purge.id}", stored, self._now())

    async def machines(self) -> Mapping[str, str]:
        """Return the hosts of all machines that are or were members, by the member's name."""
        rows = await self._database.all(select(machine))
        return {row.name: row.host for row in rows}

    @write
    def reach(self, connection: Connection, purge: str, member: str) -> None:
        """Note that a member that was away has cleaned its machine."""
        reach_member(connection, f"{_PREFIX}{purge}", member, self._now())

    async def trace(self, vault: Known) -> Trail:
        """Find what the vault knows, in every column of every table."""
        return await self._database.read(lambda connection: _trace(connection, vault))

    async def redact(self, vault: Known, *, only_words: bool = False) -> int:
        """Take what the vault knows out of every row; returns how many were changed.

        With `only_words`, ids, addresses and raw events stay as they are.
        """
        hits = await self._database.read(
            lambda connection: _find_all(connection, vault, only_words=only_words)
        )
        hits = [hit for hit in hits if hit.table not in _IN_USE]

        for start in range(0, len(hits), AT_ONCE):
            some = hits[start : start + AT_ONCE]
            await self._database.writer.run(
                partial(_redact_all, some, vault, only_words, self._now())
            )
        await self._database.writer.run(_forget_index)
        return len(hits)


def _purges(connection: Connection) -> list[Purge]:
    rows = connection.execute(
        select(sealed.c.name, type_coerce(sealed.c.value, Kept).label("value"))
        .where(sealed.c.name.startswith(_PREFIX))
        .order_by(sealed.c.kept_at)
    )
    return [_purge_of(row.name, row.value) for row in rows if row.value.startswith("{")]


def _purge_of(name: str, value: str) -> Purge:
    stored = json.loads(value)
    return Purge(
        name.removeprefix(_PREFIX),
        stored["text"],
        frozenset(map(SessionKey.parse, stored["keys"])),
        stored["is_done"],
        frozenset(stored.get("sessions", ())),
        frozenset(stored.get("away", ())),
    )


def put_kept(connection: Connection, name: str, stored: Any, now: float) -> None:
    """Store what is to be erased, sealed."""
    guard = guard_of(connection)
    assert guard is not None, "a bridge has one"
    put_sealed(connection, name, guard.seal(json.dumps(stored)), now)


def reach_member(connection: Connection, name: str, member: str, now: float) -> list[str]:
    """Note that a member has erased it too; returns those that have not."""
    value = type_coerce(sealed.c.value, Kept)
    kept = connection.execute(select(value).where(sealed.c.name == name)).scalar()
    if kept is None:
        return []
    stored = json.loads(kept)
    stored["away"] = [each for each in stored["away"] if each != member]
    put_kept(connection, name, stored, now)
    return list(stored["away"])


def _forget_index(connection: Connection) -> None:
    """Forget what the search of memory knows: it is read again from the files."""
    connection.execute(delete(memory_day))
    clear_search(connection)


def _trace(connection: Connection, vault: Known) -> Trail:
    hits = _find_all(connection, vault)
    posts = {hit.key[0] for hit in hits if hit.table is post}
    sessions = {hit.session for hit in hits if hit.session is not None}
    turns = {hit.turn for hit in hits if hit.turn is not None}
    of_turns = select(turn.c.session).where(turn.c.id.in_(turns))
    sessions |= set(connection.execute(of_turns).scalars())
    places = {hit.place for hit in hits if hit.place is not None}
    shown = select(surface.c.service, surface.c.external, surface.c.agent).where(
        surface.c.session.in_(sessions) | surface.c.place.in_(places)
    )
    sent = select(post.c.service, post.c.external, post.c.agent).where(post.c.id.in_(posts))
    keys = {SessionKey(*row) for query in (shown, sent) for row in connection.execute(query)}
    return Trail(
        rows=sum(hit.table not in _IN_USE for hit in hits),
        sessions=frozenset(sessions),
        keys=frozenset(keys),
        fixed=tuple(sorted({f"{hit.table}.{name}" for hit in hits for name in hit.fixed})),
        agents=tuple(sorted(str(hit.key[0]) for hit in hits if hit.table is agent)),
    )


def _find_all(connection: Connection, vault: Known, *, only_words: bool = False) -> list[_Hit]:
    # PostgreSQL reads rows bit by bit only in a transaction.
    with transaction(connection):
        return list(_find(connection, vault, only_words=only_words))


def _find(connection: Connection, vault: Known, *, only_words: bool = False) -> Iterator[_Hit]:
    for table in metadata.sorted_tables:
        columns = _columns(table, only_words=only_words)
        if not columns:
            continue
        query = _select(table, columns).execution_options(yield_per=AT_ONCE)
        for row in connection.execute(query):
            held = [column for column in columns if _without(row, column, vault) is not None]
            if held:
                yield _hit(table, row, held)


def _columns(table: Table, *, only_words: bool) -> list[Column[Any]]:
    """List the columns that hold text, or only those for words of people and agents."""
    words = (Shown, ShownJson, Kept)
    if table is record:
        # All else in it is hashes, by which the rest is checked.
        return [table.c[name] for name in TEXTS]
    return [
        column
        for column in table.columns
        if (isinstance(column.type, words) if only_words else _kind(column))
    ]


def _hit(table: Table, row: Row[Any], held: Sequence[Column[Any]]) -> _Hit:
    found = row._mapping  # noqa: SLF001 - its public name
    own = {
        name: found[name]
        for name in ("session", "place", "turn")
        if name in table.c and table.c[name].foreign_keys
    }
    return _Hit(
        table,
        tuple(found[column.name] for column in table.primary_key),
        tuple(column.name for column in held),
        tuple(column.name for column in held if _is_fixed(column)),
        own.get("session"),
        own.get("place"),
        own.get("turn"),
    )


def _redact_all(
    hits: Sequence[_Hit], vault: Known, only_words: bool, now: float, connection: Connection
) -> None:
    chained = {hit.key[0]: hit.held for hit in hits if hit.table is record}
    for hit in hits:
        if hit.table is not record:
            _redact(connection, hit, vault, only_words=only_words)
    erase(connection, chained, "forgotten" if only_words else "purged", now)


def _redact(connection: Connection, hit: _Hit, vault: Known, *, only_words: bool) -> None:
    """Write a row without the text, as it is by now."""
    table = hit.table
    here = and_(
        *(column == value for column, value in zip(table.primary_key, hit.key, strict=True))
    )
    columns = [each for each in _columns(table, only_words=only_words) if not _is_fixed(each)]
    row = connection.execute(_select(table, columns).where(here)).first()
    if row is None:
        return
    new = {column.name: _without(row, column, vault) for column in columns}
    changed = {name: value for name, value in new.items() if value is not None}
    if table is sealed and "value" in changed:
        guard = guard_of(connection)
        assert guard is not None, "only a guard seals"
        changed["value"] = guard.seal(changed["value"])
    if table is grant and changed:
        # People could no longer see what it covers.
        connection.execute(delete(table).where(here))
    elif changed:
        connection.execute(update(table).where(here).values(changed))


def _select(table: Table, columns: Sequence[Column[Any]]) -> Any:
    wanted = dict.fromkeys((*table.primary_key, *columns))
    more = [table.c[name] for name in ("session", "place", "turn") if name in table.c]
    opened = [
        type_coerce(column, Kept).label("value") if column is sealed.c.value else column
        for column in dict.fromkeys((*wanted, *more))
    ]
    query = select(*opened)
    # Purges hold what they are about.
    return query.where(sealed.c.name.not_like(f"{_PREFIX}%")) if table is sealed else query


def _without(row: Row[Any], column: Column[Any], vault: Known) -> Any:
    """Return a value without the text; None if it does not hold it."""
    value = row._mapping[column.name]  # noqa: SLF001 - its public name
    if value is None:
        return None
    match _kind(column):
        case "text" if vault.contains(value):
            return cross_out(vault, value) if column.name == _BRANCH else vault.redact(value)
        case "text":
            return None
        case "bytes":
            text = value.decode(errors="surrogateescape")
            return _encode(vault.redact(text)) if vault.contains(text) else None
        case _:
            new = vault.redact_json(value)
            return None if new == value else new


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


@cache
def _kind(column: Column[Any]) -> str:
    """Tell how a column holds text: as `text`, `bytes` or `json`; empty if it does not."""
    kind = column.type
    inner = kind.impl if isinstance(kind, TypeDecorator) else kind
    for known, name in ((JSON, "json"), (LargeBinary, "bytes"), (String, "text")):
        if isinstance(inner, known):
            return name
    return ""


@cache
def _is_fixed(column: Column[Any]) -> bool:
    """Tell whether rows are found by a column, so that it must stay as it is."""
    unique = [
        each.columns for each in column.table.constraints if isinstance(each, UniqueConstraint)
    ]
    return (
        column.name in _ADDRESSES
        or column.primary_key
        or bool(column.unique)
        or bool(column.foreign_keys)
        or any(column.name in each for each in unique)
    )
