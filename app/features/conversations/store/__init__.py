"""Stores what people change of conversations: titles, pins and archives, copies, deletions."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, func, select, update

from app.features.conversations.store import erasing
from app.features.conversations.store.forking import fork
from app.model.conversations import Copied, Holdings
from app.model.delegation import SERVICE
from app.model.keys import PlaceKey
from app.model.posts import Note
from app.model.types import Entry
from app.store.database import Store, write
from app.store.tables import is_place, place, session
from app.store.transcript import insert_in_place


class ConversationChanges(Store):
    """The changes of conversations, each in one commit."""

    @write
    def rename(self, connection: Connection, where: PlaceKey, title: str, note: Note) -> None:
        """Store a person's title for a place; this counts as something that happened there."""
        now = self._now()
        here = _place_id(connection, where)
        connection.execute(update(place).where(place.c.id == here).values(named=title))
        connection.execute(update(session).where(session.c.place == here).values(updated_at=now))
        insert_in_place(connection, here, Entry("notice", note=note), now)

    async def pin(self, where: PlaceKey, *, pinned: bool) -> None:
        """Keep a place on top of the list, or no longer."""
        await self._set(where, pinned_at=self._now() if pinned else None)

    async def archive(self, where: PlaceKey, *, archived: bool) -> None:
        """Take a place out of the list, or put it back."""
        await self._set(where, archived_at=self._now() if archived else None)

    async def holdings(self, where: PlaceKey) -> Holdings | None:
        """Tell what is stored of a conversation."""
        return await self._database.read(lambda connection: erasing.holdings(connection, where))

    @write
    def clear(self, connection: Connection, where: PlaceKey, note: Note) -> Sequence[int] | None:
        """Delete what was said in a place, unless a turn is open."""
        return erasing.clear(connection, where, note, self._now())

    @write
    def fork(
        self,
        connection: Connection,
        where: PlaceKey,
        new: PlaceKey,
        *,
        after: int | None,
        title: str,
    ) -> Sequence[Copied] | None:
        """Copy a conversation up to a row into a new place."""
        return fork(connection, where, new, after, title, self._now())

    @write
    def say(self, connection: Connection, where: PlaceKey, note: Note) -> None:
        """Note in a place what happened to it."""
        entry = Entry("notice", note=note)
        insert_in_place(connection, _place_id(connection, where), entry, self._now())

    @write
    def adopt(self, connection: Connection, session_id: int, acp_session_id: str) -> None:
        """Let a session that has not begun continue with an agent's conversation."""
        change = (
            update(session)
            .where(session.c.id == session_id, session.c.acp_session_id.is_(None))
            .values(acp_session_id=acp_session_id)
        )
        connection.execute(change)

    async def doom(self, where: PlaceKey) -> None:
        """Mark a conversation as being deleted."""
        await self._set(where, deleted_at=self._now())

    async def unused(self, before: float, *, limit: int) -> Sequence[PlaceKey]:
        """List conversations of people in which nothing happened since a time; not pinned ones."""
        query = (
            select(place.c.service, place.c.name)
            .join(session, session.c.place == place.c.id)
            .where(
                place.c.pinned_at.is_(None),
                place.c.deleted_at.is_(None),
                place.c.service != SERVICE,
            )
            .group_by(place.c.id, place.c.service, place.c.name)
            .having(func.max(session.c.updated_at) < before)
            .order_by(func.max(session.c.updated_at))
            .limit(limit)
        )
        return [PlaceKey(row.service, row.name) for row in await self._database.all(query)]

    async def doomed(self) -> Sequence[PlaceKey]:
        """List the conversations whose deletion has not been finished."""
        query = select(place.c.service, place.c.name).where(place.c.deleted_at.is_not(None))
        return [PlaceKey(row.service, row.name) for row in await self._database.all(query)]

    @write
    def erase(self, connection: Connection, where: PlaceKey) -> bool:
        """Delete everything that is stored of a conversation, unless a turn is open."""
        return erasing.erase(connection, where, self._now())

    @write
    def _set(self, connection: Connection, /, where: PlaceKey, **values: float | None) -> None:
        connection.execute(update(place).where(is_place(where)).values(**values))


def _place_id(connection: Connection, where: PlaceKey) -> int:
    """Return the number of a place that is stored."""
    return int(connection.execute(select(place.c.id).where(is_place(where))).scalar_one())
