"""Values that the pages of a managed conversation show; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from app.model.conversations import Contents
from app.model.file_names import size_words
from app.model.titles import path_of, title_of
from app.model.types import Thread
from app.model.workspaces import Unshipped

Asked = Literal["manage", "clear", "fork", "delete"]


@dataclass(frozen=True, slots=True)
class Managed:
    """A conversation, and what a person is about to do with it."""

    thread: Thread
    asked: Asked
    csrf: str
    assets: Mapping[str, str]
    service: str = ""
    """What people call the platform that it is on; empty for the page itself."""
    quote: str = ""
    """The words after which it is forked; empty for its end."""
    after: int | None = None
    contents: Contents | None = None
    """What is deleted with it."""
    problem: str = ""

    @property
    def title(self) -> str:
        """Its title."""
        return title_of(self.thread)

    @property
    def path(self) -> str:
        """The path of its thread."""
        return path_of(self.thread.place)

    @property
    def lost(self) -> tuple[Unshipped, ...]:
        """The work that would be lost with it."""
        return () if self.contents is None else self.contents.unshipped

    @property
    def goes(self) -> tuple[str, ...]:
        """What is deleted with it, in words."""
        return () if self.contents is None else tuple(_goes(self.contents))

    @property
    def stays(self) -> tuple[str, ...]:
        """What is not deleted with it, in words."""
        return () if self.contents is None else tuple(_stays(self.contents, self.service))


def _goes(found: Contents) -> Iterator[str]:
    held = found.held
    yield f"{_count(held.messages, 'message')} and {_count(held.turns, 'turn')} of its agents"
    if held.uploads:
        names = ", ".join(url.partition("/")[2] for url in held.uploads[:5])
        more = f" and {len(held.uploads) - 5} more" if len(held.uploads) > 5 else ""
        yield f"{_count(len(held.uploads), 'file')}: {names}{more}"
    if found.disk_bytes:
        size = size_words(found.disk_bytes)
        yield f"Workspaces, clones and agents' homes on this machine ({size})"
    if held.schedules:
        yield _count(held.schedules, "schedule")
    if len(held.places) > 1:
        others = ", ".join(each.name for each in held.places if each != found.thread.place)
        yield f"What the bridge keeps of {others}, where the same agents work"


def _stays(found: Contents, service: str) -> Iterator[str]:
    if service:
        posts = f", {_count(found.held.posts, 'post')} of the bridge among them" * bool(
            found.held.posts
        )
        yield f"Messages in {service}{posts}"
    for view in found.workspaces:
        if view.kind == "folder":
            yield f"Your folder {view.name}"
        elif view.sent:
            link = f" ({view.link})" if view.link else ""
            yield f"Branch {view.branch} on {view.name}{link}"
    yield "What agents keep outside of the bridge, the bridge's log, and notes in agents' memory"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
