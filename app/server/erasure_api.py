"""Serves what erases on demand, for the bearer of the admin token alone: purges and people."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from pydantic import BaseModel, SecretStr

from app.model.erasure import Erased, Left, Person, Stays
from app.server.filters import ServiceName, find_service
from app.server.login import SignedInRoute, with_token
from app.server.parts import PartsOf
from app.server.problems import RESPONSES
from app.server.shapes import Page

WORDS = {
    Stays.FILE: "A file holds it and cannot be changed. Delete it by hand",
    Stays.UNREAD: "This cannot be read. Look into it by hand",
    Stays.STORE: "The files of the store could not be rewritten. Purge it again later",
    Stays.ADDRESS: "It is part of an id or an address. Delete the conversation that has it",
    Stays.IN_USE: "An agent's entry or credentials hold it. Replace it there",
    Stays.UNSHIPPED: "A clone or repository holds it, with work that is nowhere else. Ship that "
    "work, or purge it again with --discard to delete both",
    Stays.REMOTE: "The remote had it, in its history or the name of a branch, and brings it back "
    "with the next fetch. Rewrite or delete it there, then purge it again",
    Stays.PLATFORM: "A message or its history of edits holds it, which the agent cannot change. "
    "Ask its author to delete it",
    Stays.UNREACHED: "What was posted here could not be changed. Look at it on the platform",
    Stays.THEIRS: "What they wrote on the platforms stays there, and so do commits with their name "
    "and settings that list them. Delete it there, and take them out of ALLOWED_USERS",
    Stays.AWAY: "This machine was not reached. It cleans its disk when its bridge runs again; if "
    "it never does, delete its DATA_DIR",
    Stays.COPIES: "What left this machine before is out of reach: models, logs, notifications and "
    "e-mails, backups, compressed files. Replace the secret where it is used",
}

router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(with_token)],
    responses=RESPONSES,
)


class NewPurge(BaseModel):
    """A text to be purged."""

    text: SecretStr
    discard: bool = False
    """Whether clones that hold it are deleted also with work that is nowhere else."""


class LeftOut(BaseModel):
    """Something that still holds what was to go, or may hold it."""

    why: Stays
    where: str
    words: str

    @classmethod
    def of(cls, left: Left) -> LeftOut:
        """Show it."""
        return cls(why=left.why, where=left.where, words=WORDS[left.why])


class ErasedOut(BaseModel):
    """What was erased, and what was not."""

    rows: int
    files: int
    posts: int
    clones: int
    left: list[LeftOut]

    @classmethod
    def of(cls, erased: Erased) -> ErasedOut:
        """Show it."""
        return cls(
            rows=erased.rows,
            files=erased.files,
            posts=erased.posts,
            clones=erased.clones,
            left=[LeftOut.of(each) for each in erased.left],
        )


@router.post("/purges")
async def purge(parts: PartsOf, new: NewPurge) -> ErasedOut:
    """Take a text out of everything that the bridge keeps and has posted; names what it cannot."""
    done = await parts.purger.purge(new.text.get_secret_value(), discard=new.discard)
    return ErasedOut.of(done)


class PersonOut(BaseModel):
    """A person who said something."""

    service: str
    id: str
    name: str
    messages: int

    @classmethod
    def of(cls, person: Person) -> PersonOut:
        """Show them."""
        (known,), (name,) = person.ids, person.names
        return cls(service=person.service, id=known, name=name, messages=person.messages)


@router.get("/people")
async def list_people(parts: PartsOf, q: str = "", service: ServiceName = None) -> Page[PersonOut]:
    """List the people whose name or id has these words."""
    wanted = find_service(parts, service)
    found = await parts.forgetter.find(q)
    return Page(items=[PersonOut.of(each) for each in found if wanted in {None, each.service}])


@router.delete("/people/{service}/{who:path}")
async def forget(parts: PartsOf, service: str, who: str) -> ErasedOut:
    """Forget a person: what they said and decided goes, their name becomes a pseudonym."""
    return ErasedOut.of(await parts.forgetter.forget(service, who))
