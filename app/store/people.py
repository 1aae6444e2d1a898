"""Stores people who sign in, their log-ins and their tokens.

Only hashes of links and tokens are stored. If several people open a link at once, one gets in; what
belongs to a person who was disabled counts for nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Update, and_, delete, or_, select
from sqlalchemy import update as change

from app.model.people import LINK, Person, Role, Token
from app.store.database import Store, write
from app.store.dialects import insert
from app.store.tables import login, person, token

NAME_BYTES = 16
"""Random, not counted: a new database never reuses a name that an old cookie still has."""

_ENABLED = person.c.disabled_at.is_(None)
_PERSON = tuple(each.name for each in fields(Person))
_TOKEN = tuple(each.name for each in fields(Token))
_OWNER = "owner_"


@dataclass(frozen=True, slots=True)
class Login:
    """A log-in that counts: whose it is, and when they proved who they are."""

    id: str
    person: Person | None
    """None for the operator, who has given no name."""
    proved_at: float | None


class LoginStore(Store):
    """The login port."""

    @write
    def offer(
        self,
        connection: Connection,
        link_hash: str,
        *,
        until: float,
        person_id: int | None = None,
    ) -> None:
        """Store a link by the hash of its secret part, and delete expired ones."""
        now = self._now()
        connection.execute(delete(login).where(login.c.expires_at <= now))
        connection.execute(insert(login), _login_row(link_hash, now, until, person_id))

    def offered_to(self, link_hash: str) -> Person | None:
        """Return the person that an open link is for; None if it is for anyone."""
        found = select(person).join(login, login.c.person == person.c.id)
        row = self._database.one(found.where(self._open(link_hash)))
        return None if row is None else _person(row)

    def is_open(self, link_hash: str) -> bool:
        """Tell whether a link can be used, without using it."""
        return self._database.one(select(login.c.id).where(self._open(link_hash))) is not None

    @write
    def begin(
        self,
        connection: Connection,
        link_hash: str,
        *,
        until: float,
        person_id: int | None = None,
    ) -> str | None:
        """Use up a link; return the name of the login, None if the link is not valid.

        The login is that of `person_id`, unless the link was made for someone.
        """
        now = self._now()
        row = connection.execute(select(login).where(self._open(link_hash))).first()
        if row is None:
            return None
        whose = person_id if row.person is None else row.person
        used = change(login).where(login.c.id == row.id)
        values = {"used_at": now, "expires_at": until, "person": whose, "proved_at": now}
        connection.execute(used.values(**values))
        _saw(connection, whose, now)
        return str(row.id)

    def find(self, login_id: str) -> Login | None:
        """Return a login that was started and has neither expired nor been revoked."""
        row = self._database.one(
            select(login.c.id.label("login_id"), login.c.proved_at, person)
            .join_from(login, person, login.c.person == person.c.id, isouter=True)
            .where(
                login.c.id == login_id,
                login.c.used_at.is_not(None),
                login.c.revoked_at.is_(None),
                login.c.expires_at > self._now(),
                # Also where its person is gone.
                or_(login.c.person.is_(None), and_(person.c.id.is_not(None), _ENABLED)),
            )
        )
        if row is None:
            return None
        return Login(row.login_id, None if row.id is None else _person(row), row.proved_at)

    def lasts(self, login_id: str) -> bool:
        """Tell whether a login was started and has neither expired nor been revoked."""
        return self.find(login_id) is not None

    async def revoke(self, login_id: str) -> None:
        """End a login."""
        await self._revoke(change(login).where(login.c.id == login_id))

    async def revoke_of(self, person_id: int) -> None:
        """End every login of a person, and every link for them."""
        await self._revoke(change(login).where(login.c.person == person_id))

    async def revoke_all(self) -> None:
        """End every login and every link."""
        await self._revoke(change(login))

    @write
    def name_operator(self, connection: Connection, login_id: str, person_id: int) -> None:
        """Give a login that has no person the one that the operator named."""
        whose = change(login).where(login.c.id == login_id, login.c.person.is_(None))
        connection.execute(whose.values(person=person_id))
        _saw(connection, person_id, self._now())

    def _open(self, link_hash: str) -> ColumnElement[bool]:
        return and_(
            login.c.link_hash == link_hash,
            login.c.used_at.is_(None),
            login.c.revoked_at.is_(None),
            login.c.expires_at > self._now(),
        )

    @write
    def _revoke(self, connection: Connection, which: Update) -> None:
        revoked = which.where(login.c.revoked_at.is_(None))
        connection.execute(revoked.values(revoked_at=self._now()))


class PersonStore(Store):
    """The person port."""

    def get(self, person_id: int) -> Person | None:
        """Read one person."""
        row = self._database.one(select(person).where(person.c.id == person_id))
        return None if row is None else _person(row)

    async def all(self) -> Sequence[Person]:
        """List everyone, by name; those without a role last."""
        found = await self._database.all(select(person).order_by(person.c.id))
        people = map(_person, found)
        return sorted(people, key=lambda each: (each.role is Role.NONE, each.name.casefold()))

    async def admins(self) -> Sequence[str]:
        """Name those who can give roles."""
        wanted = select(person.c.name).where(person.c.role == Role.ADMIN, _ENABLED)
        return [row.name for row in await self._database.all(wanted.order_by(person.c.id))]

    @write
    def ensure_named(
        self,
        connection: Connection,
        name: str,
        role: Role | None = None,
        *,
        first: Role | None = None,
    ) -> Person:
        """Find or make the person of a name given with a link; `role` also changes theirs.

        Someone new gets the role `first`, else admin: links come from the bridge's machine.
        """
        subject = name.casefold()
        row = {
            "name": name,
            "role": role or first or Role.ADMIN,
            "provider": LINK,
            "subject": subject,
            "created_at": self._now(),
        }
        made = insert(person).values(row)
        new = {"role": role} if role is not None else {"name": person.c.name}
        keys = [person.c.provider, person.c.subject]
        kept = made.on_conflict_do_update(index_elements=keys, set_=new).returning(person)
        return _person(connection.execute(kept).one())

    @write
    def give_role(self, connection: Connection, person_id: int, role: Role) -> Person | None:
        """Give a person another role; None if there is no such person."""
        given = change(person).where(person.c.id == person_id).values(role=role)
        row = connection.execute(given.returning(person)).first()
        return None if row is None else _person(row)

    @write
    def rename(self, connection: Connection, person_id: int, name: str) -> None:
        """Give a person another name."""
        connection.execute(change(person).where(person.c.id == person_id).values(name=name))

    @write
    def disable(self, connection: Connection, person_id: int, *, disabled: bool) -> Person | None:
        """Keep a person out from now on, or let them in again; their log-ins end."""
        now = self._now()
        made = change(person).where(person.c.id == person_id).returning(person)
        row = connection.execute(made.values(disabled_at=now if disabled else None)).first()
        ended = change(login).where(login.c.person == person_id, login.c.revoked_at.is_(None))
        connection.execute(ended.values(revoked_at=now))
        return None if row is None else _person(row)


class TokenStore(Store):
    """The token port."""

    @write
    def add(
        self,
        connection: Connection,
        person_id: int,
        token_hash: str,
        *,
        name: str,
        role: Role,
        until: float,
    ) -> Token:
        """Store a token by its hash."""
        row = {
            "person": person_id,
            "hash": token_hash,
            "name": name,
            "role": role,
            "created_at": self._now(),
            "expires_at": until,
        }
        return _token(connection.execute(insert(token).values(row).returning(token)).one())

    def find(self, token_hash: str) -> tuple[Token, Person] | None:
        """Return a token that counts, and whose it is."""
        row = self._database.one(self._counting().where(token.c.hash == token_hash))
        return None if row is None else (_token(row), _person(row, _OWNER))

    def lasts(self, token_id: int) -> bool:
        """Tell whether a token has neither expired nor been revoked."""
        return self._database.one(self._counting().where(token.c.id == token_id)) is not None

    @write
    def note_use(self, connection: Connection, token_id: int) -> None:
        """Note that a token was used."""
        used = change(token).where(token.c.id == token_id)
        connection.execute(used.values(used_at=self._now()))

    def get(self, token_id: int) -> Token | None:
        """Read one token."""
        row = self._database.one(select(token).where(token.c.id == token_id))
        return None if row is None else _token(row)

    async def all(self, person_id: int | None = None) -> Sequence[Token]:
        """List tokens, those that were revoked or expired too; of one person or of all."""
        wanted = select(token).order_by(token.c.id)
        if person_id is not None:
            wanted = wanted.where(token.c.person == person_id)
        return [_token(row) for row in await self._database.all(wanted)]

    @write
    def revoke(self, connection: Connection, token_id: int) -> None:
        """End a token."""
        revoked = change(token).where(token.c.id == token_id, token.c.revoked_at.is_(None))
        connection.execute(revoked.values(revoked_at=self._now()))

    def _counting(self) -> Select[Any]:
        owner = [column.label(f"{_OWNER}{column.name}") for column in person.c]
        return (
            select(token, *owner)
            .join(person, token.c.person == person.c.id)
            .where(_ENABLED, token.c.revoked_at.is_(None), token.c.expires_at > self._now())
        )


def _login_row(
    link_hash: str, now: float, until: float, person_id: int | None
) -> dict[str, object]:
    return {
        "id": secrets.token_urlsafe(NAME_BYTES),
        "link_hash": link_hash,
        "created_at": now,
        "expires_at": until,
        "person": person_id,
    }


def _saw(connection: Connection, person_id: int | None, now: float) -> None:
    connection.execute(change(person).where(person.c.id == person_id).values(seen_at=now))


def _person(row: Row[Any], prefix: str = "") -> Person:
    found = {name: getattr(row, f"{prefix}{name}") for name in _PERSON}
    return Person(**{**found, "role": Role(found["role"])})


def _token(row: Row[Any]) -> Token:
    found = {name: getattr(row, name) for name in _TOKEN}
    return Token(**{**found, "role": Role(found["role"])})
