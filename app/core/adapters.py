"""The Protocols of adapters: an agent's presence on one service, and what only some of them can."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

from app.core.inbound import Changed, Delivery, Heard, Inbound, Naming, News
from app.core.keys import PlaceKey, SessionKey
from app.core.posts import PostSend, PostSent
from app.core.types import Earlier, File, Speaker
from app.core.workspaces import (
    Checked,
    Repository,
    Suggestion,
)


class Adapter(Protocol):
    """One agent's presence on one service."""

    @property
    def service_name(self) -> str:
        """The agent-qualified name (`slack:codex`) that stored things are matched by."""
        ...

    @property
    def agent(self) -> str:
        """Whose presence it is."""
        ...

    @property
    def pace(self) -> float:
        """The least number of seconds between two edits of one message."""
        ...

    def parse(self, delivery: Delivery) -> Inbound | None:
        """Understand a delivery; None if it is of no concern.

        Raises:
            DeliveryUnreadable: it makes no sense.
        """
        ...

    def is_shared(self, key: SessionKey) -> bool:
        """Tell whether other agents can answer in a conversation as well."""
        ...

    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        """Ask the platform whether this person may make the agent act here; says why not.

        Whatever else is raised means no as well: that it could not be found out.

        Raises:
            SpeakerUnknown: not now; what was said is kept back until it can be told.
        """
        ...

    async def earlier(self, key: SessionKey, before: str) -> Sequence[Earlier]:
        """Read what was said in a conversation before a message, oldest first.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        ...

    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Tell one person something, where nobody else sees it if the platform can.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        ...

    async def send(self, post: PostSend) -> PostSent:
        """Render and send one post.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        ...

    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for a post that may have been sent although no answer came."""
        ...

    async def close(self) -> None:
        """Let go of whatever is held open."""
        ...


@runtime_checkable
class ListeningAdapter(Adapter, Protocol):
    """An adapter that brings its events in by itself: by a socket, or by a look at missed ones."""

    @property
    def trouble(self) -> str:
        """Why events do not arrive just now, with the remedy; empty if they do."""
        ...

    async def listen(self, take: Callable[[Delivery], Awaitable[None]]) -> None:
        """Bring events in for as long as there are any to come; one that raises is begun anew.

        An event may be acknowledged as soon as `take` returned.

        Raises:
            ServiceRefused: the platform will never let it listen as it is set up.
        """
        ...


@runtime_checkable
class InvitedAdapter(Adapter, Protocol):
    """An adapter whose agent is only where people brought it."""

    async def absence(self, heard: Heard) -> str | None:
        """Say why the agent cannot answer where something was said; None if it can.

        Asked only about what another agent's adapter heard.
        """
        ...


@runtime_checkable
class FileSource(Protocol):
    """An adapter whose files are fetched only when an agent needs them."""

    async def fetch(self, file: File) -> File:
        """Lay a file into the uploads, or a note in its place that says why it is not there."""
        ...


@runtime_checkable
class FileSharer(Protocol):
    """An adapter that shows what an agent made in a post of its own, of the kind `files`."""

    @property
    def shares_files(self) -> Literal[True]:
        """Say so; others show with the answer that there are files."""
        ...


@runtime_checkable
class PreparedAdapter(Adapter, Protocol):
    """An adapter that must find something out before it understands anything."""

    async def prepare(self) -> None:
        """Wait until deliveries can be understood; until then they stay in the inbox."""
        ...


@runtime_checkable
class GatheringAdapter(Adapter, Protocol):
    """An adapter whose messages may come in pieces."""

    async def gather(self, heard: Heard) -> Heard:
        """Bring together what belongs to a message and did not come with it."""
        ...


@runtime_checkable
class RereadingAdapter(Adapter, Protocol):
    """An adapter whose messages may change in pieces."""

    async def reread(self, changed: Changed) -> Changed | None:
        """Tell what a message says as a whole; None if the adapter of another agent tells it.

        Raises:
            PostError: the platform does not say.
        """
        ...


@runtime_checkable
class NamingAdapter(Adapter, Protocol):
    """An adapter whose places are named after repositories, which may get other names."""

    def naming(self, delivery: Delivery) -> Naming | None:
        """Tell which repository a delivery is about, and what that is called; None: about none."""
        ...

    def renamed(self, old: str) -> None:
        """Forget what was known under a name: it may be another repository's from now on."""
        ...


@runtime_checkable
class AnnouncingAdapter(Adapter, Protocol):
    """An adapter whose platform wants to hear of a turn before its agent starts."""

    @property
    def first_word_seconds(self) -> float:
        """How long the agent waits for that: a platform that is down must not keep it for ever."""
        ...


@runtime_checkable
class ReportingAdapter(Adapter, Protocol):
    """An adapter that can look how checks of proposed changes ended."""

    async def checked(self, news: News) -> Checked | None:
        """Look how they ended; None while some run, or if the commit is not the latest.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        ...


@runtime_checkable
class SuggestingAdapter(Adapter, Protocol):
    """An adapter whose service can tell which repository a conversation is about."""

    async def suggestions(
        self, key: SessionKey, repositories: Sequence[Repository]
    ) -> Sequence[Suggestion]:
        """Tell which of these are likely.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
            ServiceRefused: not with these credentials.
        """
        ...


@runtime_checkable
class InstallableAdapter(Adapter, Protocol):
    """An adapter whose application an admin of the platform installs in a browser."""

    def consent_address(self, back: str, state: str) -> str | None:
        """Say where the admin consents and is sent `back` from; None if nothing is to be done."""
        ...

    async def install(self, code: str, back: str) -> str:
        """Take what the admin brings back; returns who the agent is there.

        Raises:
            ServiceRefused: the platform gives nothing for it.
            PostError: not now, or not with what it gives.
        """
        ...


@runtime_checkable
class WebhookAdapter(Adapter, Protocol):
    """An adapter whose events arrive over HTTP."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Where its events arrive."""
        ...

    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        """Check that the platform sent this, without parsing it.

        Raises:
            DeliveryRefused: it did not, or not now.
        """
        ...
