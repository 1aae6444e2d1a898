"""Shapes of people and tokens in the API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from app.model.people import Person, Role, Token
from app.server.login_pages import PersonName
from app.server.rights import Needs

DAYS = 90
"""How long a token lasts if nobody says: a quarter, so that what is forgotten ends."""
MOST_DAYS = 365


class UserOut(BaseModel):
    """Someone who signs in."""

    id: int
    name: str
    role: Role
    provider: str
    """Who vouches for them: `link`."""
    seen_at: float | None
    disabled: bool

    @classmethod
    def of(cls, person: Person) -> UserOut:
        """Show a person."""
        same = {name: getattr(person, name) for name in cls.model_fields if name != "disabled"}
        return cls(**same, disabled=person.disabled_at is not None)


class RightOut(BaseModel):
    """A path or a command, and what it takes to use it."""

    needs: Needs
    kind: Literal["command", "path"]
    name: str


class MeOut(BaseModel):
    """Who sends a request, and what they may do with it."""

    name: str
    role: Role
    user: UserOut | None
    """None for the operator, who has given no name."""


class UserChanges(BaseModel):
    """What to change about someone who signs in."""

    model_config = ConfigDict(extra="forbid")

    role: Role | None = None
    disabled: bool | None = None


class NewToken(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
    """What it is for."""
    role: Role | None = None
    """The most that it may do; without it all that its person may."""
    days: Annotated[int, Field(ge=1, le=MOST_DAYS)] = DAYS
    person: PersonName = Field(default="", alias="as")
    """Whose it is, for the bearer of the admin token; someone new gets the token's role."""


class TokenOut(BaseModel):
    """A token, without its secret."""

    id: int
    name: str
    person: str
    role: Role
    created_at: float
    expires_at: float
    used_at: float | None
    state: str
    """`active`, `expired` or `revoked`."""

    @classmethod
    def of(cls, token: Token, person: str, now: float) -> TokenOut:
        """Show a token under the name of its person."""
        names = ("id", "name", "role", "created_at", "expires_at", "used_at")
        same = {name: getattr(token, name) for name in names}
        return cls(**same, person=person, state=token.state(now))


class MadeToken(TokenOut):
    """A token that was just made; its secret is shown this once."""

    token: str
