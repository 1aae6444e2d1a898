"""`sessions` and `agents`: lists them, from the running bridge or from store and settings."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from app.acp.card import card_path, read_card
from app.agents.availability import check_entry
from app.agents.catalog import checkout_words, known_agents
from app.agents.exposure import NOT_ISOLATED, shorten_isolation
from app.agents.isolation import shelter_all
from app.agents.origin import label_origin
from app.agents.registry import Registry
from app.cli.invocation import command_name, hint
from app.cli.lines import one_line, transcript_lines
from app.cli.running import is_running
from app.cli.tables import show_json, show_table
from app.config import Configuration
from app.errors import NotFound
from app.model.availability import Availability
from app.model.filters import ListFilter
from app.model.types import Session, SessionState
from app.model.wording import AVAILABILITY
from app.server.agent_shapes import AgentOut, AvailabilityOut, CheckOut
from app.server.shapes import EntryOut, SessionDetail, SessionOut, state_on
from app.store.sessions import SessionStore
from app.store.transcript import TranscriptStore
from app.store.turns import TurnStore

ROWS: Final = 200
"""Rows per read."""
INTERPRETERS: Final = ("python", "node", "npx", "uvx", "bun", "deno")
"""Programs whose name says little about the agent they run."""


class Source(Protocol):
    """Reads conversations."""

    async def sessions(
        self, *, agent: str | None, state: str | None, limit: int
    ) -> list[SessionOut]:
        """List sessions, the one used last first."""

    async def session(self, session: int) -> SessionDetail:
        """Read a session with its turns."""

    async def transcript(self, session: int) -> list[EntryOut]:
        """Read what happened, in order."""


class Shelf:
    """The store itself, while no bridge runs."""

    def __init__(
        self,
        sessions: SessionStore,
        turns: TurnStore,
        transcript: TranscriptStore,
        registry: Registry,
    ) -> None:
        self._registry = registry
        self._sessions = sessions
        self._turns = turns
        self._transcript = transcript

    async def sessions(
        self, *, agent: str | None, state: str | None, limit: int
    ) -> list[SessionOut]:
        """List sessions, the one used last first."""
        wanted = None if agent is None else self._registry.find(agent).id
        found = await self._sessions.recent(ListFilter(agent=wanted, state=state), limit=limit)
        return [self._show(each) for each in found]

    async def session(self, session: int) -> SessionDetail:
        """Read a session with its turns."""
        found = self._sessions.session(session)
        if found is None:
            raise NotFound("session", session)
        return SessionDetail.with_turns(self._show(found), await self._turns.turns(session))

    def _show(self, session: Session) -> SessionOut:
        """Show a session in the state that the page of a running bridge would show."""
        agent, configuration = session.key.agent, self._registry.configuration
        services = {service for service, owner in configuration.credentials if owner == agent}
        state = state_on(session, services) if agent in self._registry else ""
        return SessionOut.of(session, self._registry.name(agent), state)

    async def transcript(self, session: int) -> list[EntryOut]:
        """Read what happened, in order."""
        found: list[EntryOut] = []
        while rows := await self._transcript.read(
            session, after=found[-1].id if found else 0, limit=ROWS
        ):
            found += [EntryOut.of(row) for row in rows]
        return found


class Nothing:
    """Before the first start: there is no store yet."""

    async def sessions(self, **_: object) -> list[SessionOut]:
        """List nothing."""
        return []

    async def session(self, session: int) -> SessionDetail:
        """Find nothing."""
        raise NotFound("session", session)

    async def transcript(self, session: int) -> list[EntryOut]:  # noqa: ARG002 - the port's
        """Read nothing."""
        return []


def sessions_table(
    configuration: Configuration,
    *,
    agent: str | None,
    state: SessionState | None,
    limit: int,
    as_json: bool = False,
) -> None:
    """Show the conversations.

    Raises:
        BridgeError: neither bridge nor store can tell.
    """

    async def read() -> list[SessionOut]:
        async with _source(configuration) as source:
            return await source.sessions(agent=agent, state=state, limit=limit)

    found = asyncio.run(read())
    if as_json:
        show_json([each.model_dump(mode="json") for each in found])
        return
    if not found:
        sys.stderr.write(f"No such sessions. Start one with `{command_name()} ask`.\n")
        return
    show_table(
        ("id", "state", "agent", "thread", "used", "title"),
        [
            (str(each.id), each.state, each.agent, each.thread, when(each.updated_at), each.title)
            for each in found
        ],
    )


def transcript(configuration: Configuration, session: int, *, as_json: bool = False) -> None:
    """Show one conversation.

    Raises:
        BridgeError: there is no such session, or neither bridge nor store can tell.
    """

    async def read() -> tuple[SessionDetail, list[EntryOut]]:
        async with _source(configuration) as source:
            return await source.session(session), await source.transcript(session)

    found, entries = asyncio.run(read())
    if as_json:
        rows = [each.model_dump(mode="json") for each in entries]
        show_json({**found.model_dump(mode="json"), "transcript": rows})
        return
    head = f"Session {found.id} · {found.agent} · {found.state} · {when(found.updated_at)}"
    sys.stdout.write(f"{head}\n{one_line(found.title)}\n")
    for line in transcript_lines(entries, found.agent):
        sys.stdout.write(f"{line}\n")


def agents_table(
    configuration: Configuration, *, hidden: bool = False, as_json: bool = False
) -> None:
    """Show the agents, the hidden ones only if wanted, and which cannot work or are not isolated.

    Raises:
        BridgeError: neither bridge nor settings can tell.
    """
    cards = asyncio.run(_cards(configuration))
    if as_json:
        show_json(
            [
                {
                    **card.model_dump(mode="json"),
                    "found": is_installed(configuration, card.command),
                    "probe": probed(configuration, card.id),
                }
                for card in cards
            ]
        )
        return
    shown = [card for card in cards if hidden or card.visible]
    show_table(
        ("agent", "name", "state", "command", "version", "isolation", "services", "from", "probe"),
        [
            (
                f"{card.name} (default)" if card.default else card.name,
                f"{card.emoji} {card.display_name}".lstrip(),
                AVAILABILITY[card.availability.state],
                show_command(configuration, card.id, card.command),
                card.version or "-",
                shorten_isolation(card.isolation),
                ", ".join(card.services),
                label_origin(card.source, configuration.agents_source),
                probed(configuration, card.id),
            )
            for card in shown
        ],
    )
    for card in shown:
        if card.isolation_change:
            sys.stderr.write(f"! {card.name}: {card.isolation_change}\n")
    for card in shown:
        if words := f"{card.availability.reason} {card.availability.remedy}".strip():
            sys.stderr.write(f"! {card.name}: {hint(words)}\n")
    for line in exposed((card.name, card.isolation) for card in shown):
        sys.stderr.write(f"! {line}\n")
    if len(shown) < len(cards):
        sys.stderr.write(f"{len(cards) - len(shown)} more with --all.\n")


def exposed(isolations: Iterable[tuple[str, str]]) -> Iterator[str]:
    """List the agents that are not isolated: what they can read, and the remedy."""
    told: dict[str, list[str]] = {}
    for name, words in isolations:
        if words.startswith(NOT_ISOLATED):
            told.setdefault(words, []).append(name)
    for words, names in told.items():
        yield f"{', '.join(names)}: {words}"


def is_installed(configuration: Configuration, command: str) -> bool:
    """Tell whether a program is on PATH."""
    return shutil.which(command, path=configuration.path) is not None


def show_command(configuration: Configuration, agent: str, command: str) -> str:
    """Show what an agent runs: of an interpreter also the script; never an argument."""
    if not is_installed(configuration, command):
        return f"{command} (not found)"
    name, entry = Path(command).name, configuration.agents.get(agent)
    if not name.startswith(INTERPRETERS) or entry is None:
        return name
    script = next((word for word in entry.command[1:] if not word.startswith("-")), "")
    return f"{name} {Path(script).name}".rstrip()


def probed(configuration: Configuration, agent: str) -> str:
    """Summarise the last probe of an agent, if it was of the command that is set now."""
    entry = configuration.agents.get(agent)
    card = read_card(card_path(configuration.shared_dir, agent))
    return card.words if card and entry and card.is_about(entry.command) else "not yet"


def when(at: float) -> str:
    """Format a time in local time."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M %Z")


def cards_of(configuration: Configuration) -> list[AgentOut]:
    """Describe the agents, without a bridge."""
    registry = Registry(configuration, known_agents())
    # The isolation of an agent does not depend on the folder, and listing creates none.
    with tempfile.TemporaryDirectory() as folder:
        shelters = shelter_all(configuration.moved(Path(folder)))
    found = {
        entry.id: Availability.of(check_entry(configuration, entry, registry.program(entry.id)))
        for entry in registry
    }
    return [
        AgentOut(
            id=entry.id,
            name=entry.name,
            display_name=registry.display_name(entry.id),
            description=entry.description or "",
            default=entry.id == configuration.default_agent,
            command=entry.command[0],
            isolation=shelters[entry.id].words,
            checkout=checkout_words(registry.program(entry.id)),
            limits=shelters[entry.id].limit_words,
            emoji=entry.emoji or "",
            visible=entry.visible,
            source=entry.source,
            services=["web"],
            availability=AvailabilityOut.of(found[entry.id]),
            checks=CheckOut.all_of(found[entry.id]),
        )
        for entry in registry
    ]


async def _cards(configuration: Configuration) -> list[AgentOut]:
    if is_running(configuration.data_dir):
        from app.cli.client import connected  # noqa: PLC0415 - 0.2 s that the settings do not need

        async with connected(configuration) as client:
            if client is not None:
                return await client.agents()
    return await asyncio.to_thread(cards_of, configuration)


@asynccontextmanager
async def _source(configuration: Configuration) -> AsyncIterator[Source]:
    """Connect to the running bridge, or else open the store for reading."""
    if is_running(configuration.data_dir):
        from app.cli.client import connected  # noqa: PLC0415 - 0.2 s that the store does not need

        async with connected(configuration) as client:
            if client is not None:
                yield client
                return
    from app.cli.stored import read_registry  # noqa: PLC0415 - 0.5 s that a running bridge saves
    from app.store.reading import reading  # noqa: PLC0415 - with the above

    registry = await asyncio.to_thread(read_registry, configuration)
    with reading(configuration.database_url) as stores:
        if stores is None:
            yield Nothing()
        else:
            yield Shelf(stores.sessions, stores.turns, stores.transcript, registry)
