"""Base class of adapters, an agent's presence on one service, with a default per ability.

A subclass marks every method that it overrides with `typing_extensions.override`: mypy and Python
itself then refuse a misspelt one, which would otherwise silently leave the default in place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from app.errors import DeliveryRefused, PostRejected, ServiceRefused
from app.model.inbound import Begun, Changed, Chore, Delivery, Gap, Heard, Inbound, Naming, News
from app.model.keys import PlaceKey, SessionKey, adapter_name
from app.model.outcomes import Sighting
from app.model.posts import Cleaned, PostSend, PostSent
from app.model.proposals import Checked
from app.model.types import Earlier, File, Speaker
from app.model.workspaces import Repository, Suggestion
from app.vault import Vault

GAPS = 64
"""Gaps of an adapter that are remembered until they are looked at."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where an adapter can read what its platform has: a channel, a thread, a log of deliveries."""

    name: str
    """By which the bridge remembers how far it was read."""
    find: Callable[[float], AsyncGenerator[Delivery, None]]
    """Reads what was sent since a time, as the deliveries that should have arrived, each with
    `sent_at`. Whether they did arrive is not for the adapter to know."""
    used_at: float = 0.0
    """When something was last said there, as far as is known: it is then read more often."""


class Adapter(ABC):
    """One agent's presence on one service."""

    def __init_subclass__(cls) -> None:
        """Refuse a class that overrides what no base class has.

        Raises:
            TypeError: a method is misspelt.
        """
        super().__init_subclass__()
        for name, method in vars(cls).items():
            marked = getattr(getattr(method, "fget", method), "__override__", False)
            if marked and not any(hasattr(base, name) for base in cls.__bases__):
                raise TypeError(f"{cls.__qualname__}.{name} overrides nothing: check its spelling")

    def __init__(
        self,
        service: str,
        agent: str,
        *,
        pace: float,
        paths: tuple[str, ...] = (),
        signature_header: str = "",
        shares_files: bool = False,
        first_word_seconds: float | None = None,
    ) -> None:
        self.agent = agent
        """The agent it belongs to."""
        self.service_name = adapter_name(service, agent)
        """The agent-qualified name (`web:codex`) that stored rows refer to."""
        self.pace = pace
        """Minimum seconds between two edits of one message."""
        self.paths = paths
        """Where its webhooks arrive; `verify` checks them."""
        self.signature_header = signature_header
        """The header without which a webhook is refused before its body is read."""
        self.shares_files = shares_files
        """Whether it shows the files an agent made in a separate post of the kind `files`."""
        self.first_word_seconds = first_word_seconds
        """How long an agent waits until the platform shows its turn; None: no wait."""
        self.gaps: deque[Gap] = deque(maxlen=GAPS)
        """Times in which events may not have arrived: the bridge looks for them soon."""

    # What comes in.

    @abstractmethod
    def parse(self, delivery: Delivery) -> Inbound | None:
        """Parse a delivery; None if there is nothing in it for the agent.

        Raises:
            DeliveryRefused: the agent does not work for its sender.
            DeliveryUnreadable: it cannot be parsed.
        """

    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        """Check that the platform sent this webhook, without parsing it.

        Raises:
            DeliveryRefused: it did not, or not now.
        """
        raise DeliveryRefused("webhooks are not accepted here", status=404)

    @property
    def trouble(self) -> str | None:
        """Why events do not arrive, with the remedy; empty if they do, None if not watched."""
        return None

    async def listen(self, take: Callable[[Delivery], Awaitable[None]]) -> None:
        """Receive events until there are no more; retried if it raises.

        An event may be acknowledged as soon as `take` has returned.

        Raises:
            ServiceRefused: the platform never accepts it with this setup.
        """

    async def sources(self) -> Sequence[Source]:
        """List where events that did not arrive can be looked for; asked every few minutes.

        Raises:
            PostError: the platform does not say now.
            ServiceRefused: not with these credentials.
        """
        return ()

    def adopt(self, twin: Adapter) -> bool:
        """Go on in place of a newly built twin, and know the other agents that it knows.

        Returns whether this adapter can; if not, the twin replaces it.
        """
        del twin
        return False

    async def prepare(self) -> None:
        """Wait until deliveries can be parsed; until then they stay in the inbox."""

    async def gather(self, heard: Heard) -> Heard:
        """Add what belongs to a message and did not come with it.

        Raises:
            SpeakerUnknown: not now; the message is held back until the speaker is known.
        """
        return heard

    async def reread(self, changed: Changed) -> Changed | None:
        """Read an edited message as a whole; None if another agent's adapter reports it.

        Raises:
            PostError: the platform does not say.
        """
        return changed

    async def fetch(self, file: File) -> File:
        """Store a file in the uploads, or in its place a note that says why it is missing."""
        return file

    async def do_chore(self, chore: Chore) -> None:
        """Do what the platform expects of the adapter itself.

        Raises:
            PostError: it could not be done.
        """

    # People and places.

    @abstractmethod
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        """Ask the platform whether this person may trigger the agent here; returns why not.

        Any other exception also means no: the answer could not be found out.

        Raises:
            SpeakerUnknown: not now; the message is held back until the speaker is known.
        """

    def listed_names(self, speaker: Speaker) -> Collection[str]:
        """Return the names under which the operator's lists may mean a person."""
        return (speaker.id,)

    async def name_speaker(self, speaker: Speaker) -> Speaker:
        """Look up the name of a person; the id stays if the look-up fails."""
        return speaker

    def is_group(self, account: str) -> bool:
        """Tell whether an account is that of a group of people, not of one person."""
        return False

    async def reach(self, person: str) -> SessionKey | None:
        """Return the conversation in which one person is told something in private.

        None if there is none: the person is mentioned where everyone reads it.

        Raises:
            PostDelayed: not now.
        """
        return None

    def is_shared(self, key: SessionKey) -> bool:
        """Tell whether other agents can answer in a conversation as well."""
        return True

    async def absence(self, heard: Heard) -> str | None:
        """Say why the agent cannot answer in the place of a message; None if it can.

        Asked only about what another agent's adapter heard.
        """
        return None

    async def earlier(self, key: SessionKey, before: str) -> Sequence[Earlier]:
        """Read what was said in a conversation before a message, oldest first.

        Without the id of a message, read everything.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        return ()

    async def look_up(self, link: str) -> Sighting | None:
        """Ask the platform about the message that a link leads to, and why it may not have arrived.

        None if the link leads elsewhere.

        Raises:
            PostError: the platform does not say.
            ServiceRefused: not with these credentials.
        """
        return None

    # What goes out.

    @abstractmethod
    async def send(self, post: PostSend) -> PostSent:
        """Render and send one post.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """

    @abstractmethod
    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for a post that may have been sent although no answer came."""

    @abstractmethod
    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Tell one person something, in private if the platform can.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """

    async def purge(self, key: SessionKey, vault: Vault) -> Cleaned:
        """Take what the vault knows out of the agent's messages, and name those that still hold it.

        Raises:
            PostError: not now, or never.
            ServiceRefused: not with these credentials.
        """
        raise PostRejected("what was posted there cannot be changed")

    async def accompany(self, begun: Begun) -> SessionKey | None:
        """Open a conversation about work of the agent that begins on another service.

        Returns its key, or None if there is nothing to show here. Asked again for the same work, it
        returns the same key. The last that is posted there is a notice.

        Raises:
            PostError: not now, or never.
            ServiceRefused: not with these credentials.
        """
        return None

    # Repositories.

    def naming(self, delivery: Delivery) -> Naming | None:
        """Tell which repository a delivery is about, and its name; None if it is about none."""
        return None

    def renamed(self, old: str) -> None:
        """Forget what is known under a name: it may now belong to another repository."""

    async def checked(self, news: News) -> Checked | None:
        """Read how the checks of a proposed change ended.

        None while some run, if the commit is not the latest, or if there is nothing to look at.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        return None

    async def suggestions(
        self, key: SessionKey, repositories: Sequence[Repository]
    ) -> Sequence[Suggestion]:
        """Tell which of these repositories a conversation is likely about.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
            ServiceRefused: not with these credentials.
        """
        return ()

    # Set-up and shutdown.

    def consent_address(self, back: str, state: str) -> str | None:
        """Return where an admin installs the application; None if that is not done in a browser.

        The platform sends the admin `back` from there, with the `state`.
        """
        return None

    async def install(self, code: str, back: str) -> str:
        """Finish the installation with the admin's code; returns the agent's identity there.

        Raises:
            ServiceRefused: the platform rejects the code.
            PostError: not now, or not with the tokens it gives.
        """
        raise ServiceRefused(self.service_name, "nothing is installed in a browser here", "")

    async def close(self) -> None:
        """Release everything that is held open."""


def find_presence(adapters: Mapping[str, Adapter], agent: str, service: str) -> Adapter | None:
    """Return the adapter by which people of a service reach an agent; None if they do not.

    Every way to reach an agent asks here: mention, hand-over, button, panel, race, review,
    delegation and schedule.
    """
    return adapters.get(adapter_name(service, agent))
