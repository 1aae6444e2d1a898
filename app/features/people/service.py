"""Decides who may change what about people and tokens, and does it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from app.core.runtime import Runtime
from app.errors import Conflict, NotFound
from app.features.part import Part
from app.features.people.model import MadeToken, NewToken, TokenOut
from app.model.people import Person, Role, Token
from app.server.login import Visitor, require_fresh
from app.server.tokens import Tokens

logger = logging.getLogger(__name__)

NO_NAME = "a token belongs to a person, and you have given no name"


class People(Part):
    """The people of one bridge, and their tokens."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._people = runtime.stores.people
        self._tokens = Tokens(runtime.stores.tokens, runtime.clock, runtime.vault)

    async def all(self) -> Sequence[Person]:
        """List everyone who signed in or was named."""
        return await self._people.all()

    async def name_operator(self, who: Visitor, name: str) -> None:
        """Give the operator's log-in a name, once.

        Raises:
            Conflict: it has one, there is no log-in, or the name is that of someone else.
        """
        if who.person is not None or not who.login:
            raise Conflict("only a log-in without a name can be given one")
        if not name:
            raise Conflict("write a name")
        person = await self._people.ensure_named(name, None)
        if person.role is not Role.ADMIN or person.disabled_at is not None:
            raise Conflict("someone else has this name; choose another one")
        await self.runtime.stores.logins.name_operator(who.login, person.id)

    async def give_role(self, who: Visitor, number: int, role: Role) -> Person:
        """Give a person another role.

        Raises:
            NotFound: there is no such person.
            Conflict: it is the visitor's own, or their log-in is too old.
        """
        person = self.find(number)
        self._refuse_self(who, person)
        if role is Role.ADMIN:
            # An admin who signs in afterwards could decide which programs run.
            require_fresh(who)
        changed = await self._people.give_role(number, role)
        logger.info("%s gave person %d the role %s", who.name, number, role)
        return changed or person

    async def disable(self, who: Visitor, number: int, *, disabled: bool) -> Person:
        """Keep a person out, with their log-ins and tokens, or let them in again.

        Raises:
            NotFound: there is no such person.
            Conflict: it is the visitor.
        """
        person = self.find(number)
        self._refuse_self(who, person)
        changed = await self._people.disable(number, disabled=disabled)
        logger.info("%s %s person %d", who.name, "disabled" if disabled else "enabled", number)
        return changed or person

    async def sign_out(self, who: Visitor, number: int) -> None:
        """End every log-in of a person.

        Raises:
            NotFound: there is no such person.
        """
        await self.runtime.stores.logins.revoke_of(self.find(number).id)
        logger.info("%s ended the log-ins of person %d", who.name, number)

    async def tokens(self, who: Visitor) -> Sequence[TokenOut]:
        """List the visitor's own tokens; an admin sees those of all."""
        own = None if who.role is Role.ADMIN or who.person is None else who.person.id
        names = {each.id: each.name for each in await self.all()}
        now = self.runtime.clock.now()
        found = await self.runtime.stores.tokens.all(own)
        return [TokenOut.of(each, names.get(each.person, ""), now) for each in found]

    async def make_token(self, who: Visitor, new: NewToken) -> MadeToken:
        """Make a token for the visitor's scripts, or for those of a person that is named.

        Raises:
            Conflict: it would be for someone else, or a token asks for it.
        """
        person = await self._owner(who, new)
        token, secret = await self._tokens.make(
            person, name=new.name, role=new.role or person.role, days=new.days
        )
        logger.info("%s made token %d for person %d", who.name, token.id, person.id)
        shown = TokenOut.of(token, person.name, self.runtime.clock.now())
        return MadeToken(**shown.model_dump(), token=secret)

    async def revoke(self, who: Visitor, number: int) -> None:
        """End a token.

        Raises:
            NotFound: there is no such token, or it is someone else's.
        """
        token = self.runtime.stores.tokens.get(number)
        if token is None or not (who.role is Role.ADMIN or _is_own(who, token)):
            raise NotFound("token", number)
        await self.runtime.stores.tokens.revoke(number)
        logger.info("%s revoked token %d", who.name, number)

    async def _owner(self, who: Visitor, new: NewToken) -> Person:
        if who.token is not None:
            raise Conflict("a token cannot make tokens; sign in on the page")
        if new.person:
            if not who.has_admin_token:
                raise Conflict("a token for someone else needs the admin token")
            return await self._people.ensure_named(new.person, None, first=new.role)
        if who.person is None:
            way = "say whose it is with `as`" if who.has_admin_token else "do so on the page You"
            raise Conflict(f"{NO_NAME}; {way}")
        return who.person

    def find(self, number: int) -> Person:
        """Return a person.

        Raises:
            NotFound: there is no such person.
        """
        person = self._people.get(number)
        if person is None:
            raise NotFound("person", number)
        return person

    def _refuse_self(self, who: Visitor, person: Person) -> None:
        if who.person is not None and who.person.id == person.id:
            raise Conflict("this is you; another admin can do that")


def _is_own(who: Visitor, token: Token) -> bool:
    return who.person is not None and who.person.id == token.person
